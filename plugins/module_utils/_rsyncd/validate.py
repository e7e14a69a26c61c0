# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A new configuration is tried by rsync itself before it is put in place. Private to the collection.

rsync serves one connection over pipes, without a port: ``rsync --server --daemon`` (seen in 3.2.7 and 3.5.0). It reads
the whole configuration, writes into its log what it does not understand, and lists the modules.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from typing import Mapping

from .._core.subprocesses import run
from .conf import folder_names, read_text
from .render import redirected

_GREETING = b"@RSYNCD: 31.0 sha512\n#list\n"
_PATIENCE = 30  # seconds
# What would turn the trial away, or lead it elsewhere, whatever else is right
_IN_THE_WAY = ("proxy protocol", "daemon chroot", "daemon uid", "daemon gid", "motd file")
_COMPLAINT = re.compile(
    r"adly formed|nknown parameter|Global parameter|invalid section|Failed\.|unable to|failed to open|nvalid "
    r"|unknown user|unknown group",
    re.IGNORECASE,
)
_STAMP = re.compile(r"^\d+/\d+/\d+ [\d:]+ \[\d+\] ")


@dataclass(frozen=True)
class Verdict:
    """What rsync thinks of a configuration."""

    serves: bool  # it would talk to clients
    complaints: tuple[str, ...]

    def worse_than(self, other: Verdict) -> tuple[str, ...]:
        """Return the complaints that another configuration does not cause."""
        return tuple(text for text in self.complaints if text not in other.complaints)


def judge(text: str, out: bytes) -> Verdict:
    """Read a trial's log and output. Pure."""
    lines = [_STAMP.sub("", line).strip() for line in text.splitlines()]
    return Verdict(b"@RSYNCD: EXIT" in out, tuple(dict.fromkeys(line for line in lines if _COMPLAINT.search(line))))


def try_files(rsync: str, config: str, folder: str, changes: Mapping[str, str | None], scratch: str) -> Verdict:
    """Let rsync read what the configuration would be after ``changes`` (path → text, None: removed).

    ``config`` is rsyncd.conf, ``folder`` the directory of the drop-ins; both are copied below ``scratch``, and nothing
    else is written. Raises OSError if rsync cannot be started.
    """
    with tempfile.TemporaryDirectory(dir=scratch, prefix="rsyncd-") as place:
        copied = os.path.join(place, "d")
        os.mkdir(copied)
        for name in folder_names(folder) or []:
            path = os.path.join(folder, name)
            if name.endswith((".conf", ".inc")) and os.path.isfile(path) and path not in changes:
                _write(os.path.join(copied, name), read_text(path))
        for path, text in changes.items():
            if path != config and text is not None:
                _write(os.path.join(copied, os.path.basename(path)), text)
        main = changes.get(config)
        if main is None:
            main = read_text(config) if os.path.exists(config) else ""
        main = redirected(main, folder, copied)
        set_here = [name for name in _IN_THE_WAY if re.search(rf"(?mi)^\s*{name.replace(' ', '[ _]*')}\s*=", main)]
        cleared = [f"{name} = {'no' if name == 'proxy protocol' else ''}".rstrip() for name in set_here]
        _write(os.path.join(place, "rsyncd.conf"), "\n".join([main, "[global]", *cleared, ""]))
        return _ask(rsync, place)


def _ask(rsync: str, place: str) -> Verdict:
    log = os.path.join(place, "log")
    argv = [rsync, "--server", "--daemon", f"--log-file={log}", f"--config={place}/rsyncd.conf", "."]
    ran = run(argv, given=_GREETING, timeout=_PATIENCE)
    said = read_text(log) if os.path.exists(log) else ""
    return judge(said.replace(f"{place}/d/", "") + "\n" + ran.stderr.decode(errors="replace"), ran.stdout)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)
