# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files as they were, kept aside and put back. Private to the collection.

Contents lie in a folder of the caller's, beside what records them. Contents, modes, owners,
times, extended attributes (ACLs and SELinux labels are some), symlinks, and what was not there are all kept.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import stat
from typing import Any, Mapping, NamedTuple, Sequence

from .._core.files import missing_of
from .._core.json_shape import WrongShape, as_object, member


class SavedPath(NamedTuple):
    """What a path was. Which members count depends on its type; see ``_MEMBERS``."""

    path: str
    type: str  # absent, link, folder, file
    mode: int = 0
    uid: int = 0
    gid: int = 0
    mtime: int = 0  # nanoseconds
    xattrs: Mapping[str, str] = {}  # base64
    highest: str = ""  # of what is absent: the topmost folder on its way that is missing
    target: str = ""
    names: Sequence[str] = ()
    content: str = ""  # the file in the caller's folder

    def dump(self) -> dict[str, Any]:
        """Return the record as JSON holds it."""
        values = self._asdict()
        return {name: values[name] for name in _MEMBERS[self.type]}


_COMMON = ("path", "mode", "uid", "gid", "mtime", "xattrs", "type")
_MEMBERS: dict[str, tuple[str, ...]] = {
    "absent": ("path", "type", "highest"),
    "link": (*_COMMON, "target"),
    "folder": (*_COMMON, "names"),
    "file": (*_COMMON, "content"),
}
_TYPES = {"mode": int, "uid": int, "gid": int, "mtime": int, "xattrs": dict, "names": list}


def parse_saved_path(value: object) -> SavedPath:
    """Read what ``SavedPath.dump`` returns; raise WrongShape for anything else."""
    values = as_object(value, "a saved path")
    members = _MEMBERS.get(member(values, "type", str))
    if members is None:
        raise WrongShape(f"type is {values['type']!r}, and one of {', '.join(_MEMBERS)} is expected")
    return SavedPath(**{name: member(values, name, _TYPES.get(name, str)) for name in members})


def save(paths: Sequence[str], folder: str) -> list[SavedPath]:
    """Keep files and folders, and return their records. A folder is kept with all that is in it."""
    records: list[SavedPath] = []
    for path in sorted(dict.fromkeys(os.path.normpath(path) for path in paths)):
        _save(path, folder, records)
    return records


def _save(path: str, folder: str, records: list[SavedPath]) -> None:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        records.append(SavedPath(path, "absent", highest=_highest_missing(path)))
        return
    record = SavedPath(
        path,
        "",
        stat.S_IMODE(found.st_mode),
        found.st_uid,
        found.st_gid,
        found.st_mtime_ns,
        _xattrs(path),
    )
    if stat.S_ISLNK(found.st_mode):
        records.append(record._replace(type="link", target=os.readlink(path)))
    elif stat.S_ISDIR(found.st_mode):
        names = sorted(os.listdir(path))
        records.append(record._replace(type="folder", names=names))
        for name in names:
            _save(os.path.join(path, name), folder, records)
    elif stat.S_ISREG(found.st_mode):
        content = str(len(records) + 1)
        records.append(record._replace(type="file", content=content))
        target = os.path.join(folder, content)
        shutil.copyfile(path, target)
        _sync(target)
    else:
        raise ValueError(f"{path} is neither a file, a folder nor a symlink, and cannot be kept")


def restore(records: Sequence[SavedPath], folder: str) -> list[str]:
    """Put everything back, and return the paths that had changed. Raises OSError at the end for what was refused."""
    changed, errors = [], []
    for record in records:  # folders come before what is in them
        try:
            if not is_as_saved(record, folder):
                _put_back(record, folder)
                changed.append(record.path)
        except OSError as error:
            errors.append(f"{record.path}: {error}")
    if errors:
        raise OSError("; ".join(errors))
    for record in reversed(records):  # what was put into a folder changed its times
        if record.type == "folder":
            _attributes(record)
    return changed


def is_as_saved(record: SavedPath, folder: str) -> bool:
    """Return whether a path is what it was."""
    path = record.path
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return record.type == "absent"
    kinds = {"file": stat.S_ISREG, "folder": stat.S_ISDIR, "link": stat.S_ISLNK}
    if record.type == "absent" or not kinds[record.type](found.st_mode):
        return False
    if (found.st_uid, found.st_gid) != (record.uid, record.gid):
        return False
    if record.type == "link":
        return os.readlink(path) == record.target
    if stat.S_IMODE(found.st_mode) != record.mode or _xattrs(path) != record.xattrs:
        return False
    if record.type == "folder":
        return sorted(os.listdir(path)) == record.names
    return found.st_mtime_ns == record.mtime and _same(path, os.path.join(folder, record.content))


def _put_back(record: SavedPath, folder: str) -> None:
    path, kind = record.path, record.type
    if kind == "absent":
        _remove(path)
        highest, parent = record.highest, os.path.dirname(path)
        with contextlib.suppress(OSError):  # somebody else uses the folder by now
            while len(parent) >= len(highest) and parent.startswith(highest):
                os.rmdir(parent)
                parent = os.path.dirname(parent)
        return
    if kind == "folder":
        if os.path.islink(path) or not os.path.isdir(path):
            _remove(path)
            os.makedirs(path)
        for name in set(os.listdir(path)) - set(record.names):
            _remove(os.path.join(path, name))
        _attributes(record)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(path) and not os.path.islink(path):
        _remove(path)
    temporary = f"{path}.longhaul-{os.getpid()}"
    if kind == "link":
        os.symlink(record.target, temporary)
    else:
        shutil.copyfile(os.path.join(folder, record.content), temporary)
    _attributes(record, temporary)
    os.replace(temporary, path)
    _sync(os.path.dirname(path))


def _attributes(record: SavedPath, path: str | None = None) -> None:
    path = path or record.path
    os.chown(path, record.uid, record.gid, follow_symlinks=False)
    if record.type != "link":
        os.chmod(path, record.mode)
        if hasattr(os, "setxattr"):
            for name in set(_xattrs(path)) - set(record.xattrs):
                os.removexattr(path, name)
            for name, value in record.xattrs.items():
                os.setxattr(path, name, base64.b64decode(value))
            os.chmod(path, record.mode)  # an ACL has changed the group's part
    os.utime(path, ns=(record.mtime, record.mtime), follow_symlinks=False)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)


def _highest_missing(path: str) -> str:
    """Return the topmost folder on the way to a path that is not there yet, or the path itself."""
    return [path, *missing_of(os.path.dirname(path))][-1]


def _xattrs(path: str) -> dict[str, str]:
    if not hasattr(os, "listxattr"):
        return {}
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listxattr(path, follow_symlinks=False):
            with contextlib.suppress(OSError):
                found[name] = base64.b64encode(os.getxattr(path, name, follow_symlinks=False)).decode()
    return found


def _same(first: str, second: str) -> bool:
    with open(first, "rb") as one, open(second, "rb") as other:
        return one.read() == other.read()


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
