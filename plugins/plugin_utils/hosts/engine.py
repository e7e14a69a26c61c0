# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine: what runs on hosts, packed into one file that any Python there can run.

It is sent to the hosts as an argument of the module ``longhaul.fleet.endpoint``, which keeps it there: afterwards its
digest is sent in its place. Where a module imports module_utils,
Ansible parses each file that it may need, for their imports, in each playbook: with more than a hundred of them
that took most of the time before the first byte. And a job outlives the module that starts it, and Ansible removes its
module's files at once, so that it needs a file of its own anyway.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import re
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.archives import build_archive

PACKAGE = "longhaul"  # its name in the archive
# Below module_utils: packages, and what jobs need of one that is for modules otherwise.
_PARTS = (
    *("_core", "_model", "_tree", "_engine", "_methods", "_snapshot", "_migrate", "_benchmark", "_consistent", "_job"),
    *(f"_rsyncd/{name}.py" for name in ("access", "check", "conf", "options")),
)
_LICENCE = re.compile(rb"\A(?:#.*\n)+")
_TYPES = re.compile(rb"^if TYPE_CHECKING:.*\n((?:    .*\n|\n)+)", re.MULTILINE)
# Where a docstring can be: at the top, and behind the line that ends the head of a function or class.
_DOCSTRING = re.compile(
    rb'''(\A\n*|^ *(?:def |class |\) ?[-:])[^\n]*:(?:  #[^\n]*)?\n *)r?"""((?:[^"\\]|\\.|"(?!""))*)"""(?=\n)''',
    re.MULTILINE,
)
_COMMENT = re.compile(rb"""(?:^ *|  )#[^\n"']*$""", re.MULTILINE)  # with a quote it may be part of a string
MODULE_UTILS = Path(__file__).resolve().parents[2] / "module_utils"
_MAIN = f"""\
# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This holds for all files of the archive.

import sys

if len(sys.argv) > 1 and sys.argv[1] == "gate":  # started by sshd for each session: imports nothing else
    from {PACKAGE}._methods.ssh import forced_command
    sys.exit(forced_command.main(sys.argv[2:]))
from {PACKAGE}._core.garbage import rest_from_garbage
rest_from_garbage()
from {PACKAGE}._job import main
sys.exit(main.main(sys.argv[1:]))
"""


def pack_engine() -> bytes:
    """Return the archive (zip, as Python runs it): what is below module_utils and needs the standard library alone.

    It is the same for the same sources: hosts keep it compiled under its digest.
    """
    files = {"__main__.py": _MAIN.encode(), f"{PACKAGE}/__init__.py": b""}
    for file in _sources():
        name = os.path.relpath(file, MODULE_UTILS)
        is_map = os.path.basename(file) == "__init__.py"  # which tells people what is where, and holds no code
        files[f"{PACKAGE}/{name}"] = b"" if is_map else shorten(Path(file).read_bytes())
    return build_archive(files)


def _sources() -> list[str]:
    """Return the paths of the files that are packed."""
    found: list[str] = []
    for part in _PARTS:
        place = os.path.join(MODULE_UTILS, part)
        if part.endswith(".py"):
            found += [os.path.join(os.path.dirname(place), "__init__.py"), place]
        for folder, _folders, names in os.walk(place):
            found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
    return sorted(found)


def shorten(source: bytes) -> bytes:
    """Return a module without what people and type checkers alone read: each execution on a host has to carry it.

    All lines keep their numbers, for tracebacks. ``__main__.py`` has the notice of the licence for all.
    """
    source = _LICENCE.sub(lambda found: b"\n" * found[0].count(b"\n"), source)
    source = _DOCSTRING.sub(lambda found: found[1] + b'""' + b"\n" * found[2].count(b"\n"), source)
    source = _COMMENT.sub(b"", source)
    return _TYPES.sub(lambda found: b"if TYPE_CHECKING:\n    pass\n" + b"\n" * (found[1].count(b"\n") - 1), source)


class Packed(NamedTuple):
    """The engine as the module takes it."""

    digest: str
    argument: str  # the archive in base64


@functools.lru_cache(maxsize=1)
def packed_engine() -> Packed:
    """Return the engine, packed once in a process."""
    packed = pack_engine()
    return Packed(hashlib.sha224(packed).hexdigest(), base64.b64encode(packed).decode())


def state_of_sources() -> str:
    """Return a digest of what changes whenever somebody writes or replaces a file that is packed, or what packs it."""
    found = hashlib.sha224(f"{sys.version}\0{zlib.ZLIB_RUNTIME_VERSION}".encode())
    for file in (__file__, *_sources()):
        status = os.stat(file)
        times = (status.st_mtime_ns, status.st_ctime_ns)
        found.update(repr((file, status.st_dev, status.st_ino, status.st_size, *times)).encode())
    return found.hexdigest()
