# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of SQLite databases, made online by SQLite itself while other processes write, and checked.

The copy is made as the owner of the database, by a process of its own. SQLite opens the database and the files beside
it by their paths, so nobody but root and that owner may be able to exchange something on the way.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys

from .._core.errors import TransferFailed
from .._tree.descent import DIRECTORY_FLAGS
from .._tree.dirfd import Root
from .._tree.held_root import open_held
from .dump_folder import DumpFolder, describe_stranger, file_name, find_files, open_source
from .made import TREE, MadeList
from .programs import Account, find_account, run_program
from .request import SqliteSource

_WORK = b"copying"  # the folder in which the owner of a database makes its copy
# A copy in parts begins again whenever another process writes. After a few times one whole copy is made, and who writes
# to a database without a write-ahead log waits for it. The engine is sent without comments, also those in a text.
_COPY = """\
import os, sqlite3, sys, urllib.parse
path = "file:" + urllib.parse.quote(sys.argv[1])
class Restarted(Exception):
    pass
def is_it(fd):
    try:
        found = os.fstat(fd)
    except OSError:
        return False
    return [str(found.st_dev), str(found.st_ino)] == sys.argv[2:]
def connect(mode):
    source = sqlite3.connect(path + "?mode=" + mode, uri=True, timeout=60)
    if not any(map(is_it, range(3, 64))):
        sys.exit("it was exchanged while it was opened")
    try:
        return source, source.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    except sqlite3.Error:
        source.close()
        raise
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
        source, wal = connect("rw")
    except sqlite3.OperationalError:
        source, wal = connect("ro")
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
    root, fd = open_source(source.place)
    try:
        found = find_files(fd, source.files)
    finally:
        os.close(fd)
    accounts = {status.st_uid: find_account(status.st_uid) for status in found.values()}
    paths = {file: os.path.join(os.fsdecode(root), file) for file in found}
    for file, status in found.items():
        _require_trusted_way(paths[file], status, accounts[status.st_uid])
    owner = accounts.popitem()[1] if len(accounts) == 1 else None
    with DumpFolder(source.place, made, owner, 0o711) as folder:
        folder.require_room(sum(one.st_size for one in found.values()))
        for file, status in found.items():
            _copy(folder, made, paths[file], file_name(file, ""), status)
        return len(found), folder.publish()


def _require_trusted_way(path: str, status: os.stat_result, account: Account) -> None:
    """Raise TransferFailed unless a path leads to the file of this status, and only root and its owner can exchange it.

    Nobody else may add files beside it, such as a journal.
    """
    parent = os.fsencode(os.path.dirname(path))

    def check(above: bytes, found: os.stat_result) -> None:
        stranger = describe_stranger(found, account, allow_sticky=above != parent)
        if stranger:
            raise TransferFailed(
                f"the SQLite database {path} is not copied, because {os.fsdecode(above)} {stranger}: a link there "
                f"could lead the copy to a database of {account.name} elsewhere. Let all folders above it belong to "
                f"root or {account.name}, and let nobody else write to them (chmod go-w)"
            )

    fd = open_held(parent, check=check)
    try:
        is_it = os.path.samestat(os.stat(os.path.basename(path), dir_fd=fd, follow_symlinks=False), status)
    finally:
        os.close(fd)
    if not is_it:
        raise TransferFailed(f"the SQLite database {path} was exchanged while it was looked at. Run the backup again")


def _copy(folder: DumpFolder, made: MadeList, path: str, name: str, status: os.stat_result) -> None:
    account = find_account(status.st_uid)
    made.add(TREE, folder.path, _WORK)
    _remove_work(folder)
    os.mkdir(_WORK, 0o700, dir_fd=folder.fd)
    work = os.open(_WORK, DIRECTORY_FLAGS, dir_fd=folder.fd)
    try:
        if os.geteuid() == 0:
            os.fchown(work, account.uid, account.gid)
        argv = [sys.executable, "-I", "-S", "-c", _COPY, path, str(status.st_dev), str(status.st_ino)]
        run_program(argv, account, f"the copy of the SQLite database {path}", cwd=work)
        # From here on its owner can do nothing to it.
        if os.geteuid() == 0:
            os.fchown(work, 0, 0)
        fd = os.open("copy", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=work)
        try:
            copied = os.fstat(fd)
            if not stat.S_ISREG(copied.st_mode) or copied.st_uid != account.uid or copied.st_nlink != 1:
                raise TransferFailed(f"the copy of the SQLite database {path} was exchanged while it was made")
            os.fchmod(fd, 0o600)  # the folders above the database may have kept others out
            os.utime(fd, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(fd)
        folder.take(name, work, "copy", copied)
    finally:
        os.close(work)
    _remove_work(folder)


def _remove_work(folder: DumpFolder) -> None:
    with Root(folder.fd) as root, contextlib.suppress(FileNotFoundError):
        root.remove(_WORK)
