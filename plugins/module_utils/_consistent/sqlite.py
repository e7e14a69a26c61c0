# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of SQLite databases, made online by SQLite itself while other processes write, and checked.

The copy is made as the owner of the database, by a process of its own: whoever owns the folder of a database could
otherwise lead root elsewhere by links beside it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys

from .._core.errors import TransferFailed
from .._tree.descent import DIRECTORY_FLAGS
from .._tree.dirfd import Root
from .dump_folder import PART, DumpFolder, file_name, find_files
from .made import TREE, MadeList
from .programs import find_account, run_program
from .request import SqliteSource

_WORK = b"copying"  # the folder in which the owner of a database makes its copy
# A copy in parts begins again whenever another process writes. After a few times one whole copy is made, and who writes
# to a database without a write-ahead log waits for it. The engine is sent without comments, also those in a text.
_COPY = """\
import sqlite3, sys, urllib.parse
path = "file:" + urllib.parse.quote(sys.argv[1])
class Restarted(Exception):
    pass
class Counts:
    last = busy = restarts = 0
def watch(status, remaining, _total):
    Counts.busy = Counts.busy + 1 if status in (5, 6) else 0
    if Counts.busy > 6000:
        raise sqlite3.OperationalError("database is locked, for longer than a minute")
    Counts.restarts += remaining > Counts.last > 0
    Counts.last = remaining
    if Counts.restarts == 4:
        raise Restarted
try:
    try:
        source = sqlite3.connect(path + "?mode=rw", uri=True, timeout=60)
        wal = source.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    except sqlite3.OperationalError:
        source = sqlite3.connect(path + "?mode=ro", uri=True, timeout=60)
        wal = source.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    target = sqlite3.connect("copy")
    try:
        source.backup(target, pages=-1 if wal else 2000, progress=watch, sleep=0.01)
    except Restarted:
        target.close()
        target = sqlite3.connect("copy")
        source.backup(target, progress=watch, sleep=0.01)
    source.close()
    target.execute("PRAGMA journal_mode=DELETE").fetchone()
    found = target.execute("PRAGMA integrity_check(3)").fetchall()
    target.close()
    if found != [("ok",)]:
        sys.exit("its copy is damaged, and so is the database: " + "; ".join(str(one[0]) for one in found))
except (sqlite3.Error, OSError) as error:
    sys.exit(str(error))
"""


def copy_sqlite(source: SqliteSource, made: MadeList) -> tuple[int, int]:
    """Copy databases; return how many, and their size in bytes. Raises TransferFailed."""
    with DumpFolder(source.place, made, 0o711) as folder:
        files = find_files(folder.root_fd, source.files)
        found = {file: os.stat(file, dir_fd=folder.root_fd, follow_symlinks=False) for file in files}
        folder.require_room(sum(one.st_size for one in found.values()))
        for file, status in found.items():
            _copy(folder, made, os.path.join(source.place.root, file), file_name(file, ""), status)
        return len(files), folder.publish()


def _copy(folder: DumpFolder, made: MadeList, path: str, name: str, status: os.stat_result) -> None:
    account = find_account(status.st_uid)
    made.add(TREE, folder.path, _WORK)
    _remove_work(folder)
    os.mkdir(_WORK, 0o700, dir_fd=folder.fd)
    work = os.open(_WORK, DIRECTORY_FLAGS, dir_fd=folder.fd)
    try:
        if os.geteuid() == 0:
            os.fchown(work, account.uid, account.gid)
        argv = [sys.executable, "-I", "-S", "-c", _COPY, path]
        run_program(argv, account, f"the copy of the SQLite database {path}", cwd=work)
        # From here on its owner can do nothing to it.
        if os.geteuid() == 0:
            os.fchown(work, 0, 0)
        fd = os.open("copy", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=work)
        try:
            copied = os.fstat(fd)
            if not stat.S_ISREG(copied.st_mode) or copied.st_uid != account.uid or copied.st_nlink != 1:
                raise TransferFailed(f"the copy of the SQLite database {path} was exchanged while it was made")
            os.fchmod(fd, stat.S_IMODE(status.st_mode) & 0o777)
            os.utime(fd, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(fd)
        os.close(folder.create(name))
        os.replace("copy", f"{name}{PART}", src_dir_fd=work, dst_dir_fd=folder.fd)
    finally:
        os.close(work)
    _remove_work(folder)


def _remove_work(folder: DumpFolder) -> None:
    with Root(folder.fd) as root, contextlib.suppress(FileNotFoundError):
        root.remove(_WORK)
