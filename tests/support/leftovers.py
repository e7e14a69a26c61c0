# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a transfer may have left behind on a testbed host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..testbed import Testbed

STATE_FOLDERS = ("var/lib/longhaul", "root/.local/state/longhaul", "home/mover/.local/state/longhaul")
STATE_FOLDERS = (*STATE_FOLDERS, "home/plain/.local/state/longhaul")
SCRATCH = ("tmp", "dev/shm", "run", "var/tmp")


def snapshot(bed: Testbed, host: str) -> set[str]:
    """Return one line for each process, listener, state file, temporary file, key and partial file on a host.

    Taken before and after, the difference is what was left behind. Ansible's folders (``~/.ansible``,
    ``ansible-tmp-*``) and those of the testbed are left out.
    """
    root = bed.root(host)
    lines = {f"process: {' '.join(process.argv)}" for process in bed.processes(host)}
    lines |= {f"listener: {listener.protocol} {listener.port}" for listener in bed.listeners(host)}
    for folder in STATE_FOLDERS:
        lines |= {f"state: {path.relative_to(root)}" for path in _below(root / folder)}
    for folder in SCRATCH:
        for path in (root / folder).iterdir():
            if not path.name.startswith(("ansible", ".ansible", "sshd", "sudo")):
                lines.add(f"temporary: {path.relative_to(root)}")
    for home in (root / "root", *(root / "home").iterdir()):
        for path in (home / ".ssh").glob("*"):
            lines |= {f"ssh: {path.relative_to(root)}: {line}" for line in path.read_text("utf-8").splitlines()}
    for path in _below(root / "data"):
        if path.name.startswith(".longhaul-"):
            lines.add(f"partial: {path.relative_to(root)}")
    return lines


def _below(folder: Path) -> Iterator[Path]:
    """Yield all paths below a folder, which may be missing; what cannot be read is an error."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for path, names, files in os.walk(folder, onerror=refuse):
        yield from (Path(path, name) for name in names + files)


def clean(bed: Testbed, host: str) -> None:
    """Make a host as it was when it came up, but for what was installed or configured there."""
    for process in bed.processes(host):
        bed.exec(host, ["kill", "-9", "--", str(process.pid)], check=False)
    scratch = ["/" + folder for folder in (*STATE_FOLDERS, "tmp", "dev/shm")]
    existing = [folder for folder in scratch if (bed.root(host) / folder.lstrip("/")).is_dir()]
    bed.exec(host, ["find", *existing, "-xdev", "-mindepth", "1", "-delete"])
    for home in (bed.root(host) / "root", *(bed.root(host) / "home").iterdir()):
        keys = home / ".ssh/authorized_keys"
        lines = keys.read_text("utf-8").splitlines(keepends=True) if keys.exists() else []
        if any(" longhaul-" in line for line in lines):
            keys.write_text("".join(line for line in lines if " longhaul-" not in line), "utf-8")
    bed.empty_data(host)
