# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Practise a restore: choose a share of a snapshot, and compare what arrived of it. Private to the collection.

The repository host chooses: files at random by a seed, and a manifest of just these and of the directories above them.
The other host makes a scratch folder, which looks like the folder of a snapshot, and compares the tree in it with that
manifest. Each scratch folder has a marker that says whose it is, and only what has the marker is ever removed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import heapq
import io
import os
import random
import stat
import time
from typing import Iterator, Mapping, NamedTuple, Sequence

from .._core.disk_full import find_room, usable_room
from .._core.files import rewound
from .._core.json_shape import as_object, member
from .._model.entry import REGULAR, SYMLINK
from .._model.entry_codec import ManifestError
from .._model.paths import order
from .._tree.dirfd import Root
from .._tree.record import UNOWNED, UNTRUSTED, EntryRecord
from .._tree.resolve import ForeignLink, open_folder
from . import names
from .atomic_io import open_directory, read_json, replacing, write_json
from .check import COMPARED, Report, check_files, check_structure
from .check_contents import check_contents
from .errors import Refused
from .manifest import About, ManifestReader, ManifestWriter
from .overlap import is_within
from .read_lock import open_to_read
from .repository import Series, SnapshotFolder
from .subset import ALL

MOST_FILES = 5000  # of a drill: all their names are sent to both hosts
PREFIX = "longhaul-drill-"
NEWEST, RANDOM = "newest", "random"  # snapshots to choose
_MARKER = ".longhaul-drill.json"
_OLD = 86400  # seconds, after which nobody is about to put a marker into an empty scratch folder
_BLOCK = 4096  # bytes that each entry may take besides its contents


class Choice(NamedTuple):
    """The share of a snapshot that a drill restores."""

    snapshot: str
    manifest: bytes  # of that share
    files: int  # that are restored, symbolic links among them
    bytes: int
    files_total: int  # in the snapshot
    bytes_total: int
    is_cut: bool  # there is no room for all of the share, or it has too many files


class ScratchFolder(NamedTuple):
    """A new scratch folder, and the room for what is restored into it."""

    room: int  # bytes that may be used
    entries: int  # that may be made
    removed: list[str]  # leftovers of earlier drills


# The repository host


def choose_share(
    series: Series,
    which: str,
    seed: str,
    share: tuple[int, int],
    room: int,
    entries: int,
    now: int,
    always: Sequence[str] = (),
) -> Choice:
    """Choose files of a snapshot at random: ``share[0]`` of ``share[1]``, at least one, as far as there is room.

    ``which`` is NEWEST or RANDOM. ``room`` is in bytes, and ``entries`` says how many entries can be made. All files in
    the folders ``always`` are chosen, too. Raises Refused if nothing can be chosen, if there is no room for these, and
    for a snapshot that is damaged.
    """
    name = _choose_snapshot(series, which, seed, now)
    try:
        snapshot = open_to_read(series, name)
    except FileNotFoundError:
        raise Refused(f"{name} was removed at this moment. Run the drill again") from None
    with snapshot:
        report = Report()
        if not check_structure(series, snapshot, report):
            raise Refused("; ".join(f"{name}: {problem.detail}" for problem in report.problems.values()))
        try:
            with snapshot.manifest() as manifest:
                files = _Files(seed, [os.fsencode(folder) for folder in always])
                drawn = heapq.nsmallest(MOST_FILES, files.draw(manifest.records()))
            others = files.count - len(files.always)
            wanted = max(1, -(-others * share[0] // share[1])) if others or not always else 0
            _require_always(name, files, always, room, entries)
            chosen = _fit([*files.always, *((path, size) for _drawn, path, size in drawn[:wanted])], room, entries)
            if not chosen:
                raise _nothing_chosen(name, drawn, room)
            wanted += len(files.always)
            with snapshot.manifest() as manifest:
                packed = _pack(manifest, chosen)
        except ManifestError as error:
            raise Refused(f"the manifest of {name} cannot be read: {error}") from None
    return Choice(
        name, packed, len(chosen), sum(chosen.values()), files.count, files.bytes, is_cut=len(chosen) < wanted
    )


def _choose_snapshot(series: Series, which: str, seed: str, now: int) -> str:
    times = series.times()
    at = names.latest_of(now, times)
    if at is None:
        raise Refused(f"there is no complete snapshot in {series.path}, so there is nothing to restore")
    return names.name_of(random.Random(seed).choice(times) if which == RANDOM else at)


class _Files:
    """The files of a manifest that a drill may restore, in the order in which a seed draws them."""

    def __init__(self, seed: str, folders: Sequence[bytes]) -> None:
        self._seed, self._folders = seed.encode(), folders
        self.count = self.bytes = 0
        self.always: list[tuple[bytes, int]] = []  # the files in these folders, with their sizes

    def draw(self, records: Iterator[EntryRecord]) -> Iterator[tuple[bytes, bytes, int]]:
        """Yield for each file its place, its path and its size. Names must be text, as rules of a transfer are."""
        for record in records:
            entry = record.entry
            if entry.type != SYMLINK and not (entry.type == REGULAR and record.content):
                continue
            size = entry.size if entry.type == REGULAR else 0
            self.count += 1
            self.bytes += size
            with contextlib.suppress(UnicodeDecodeError):
                entry.path.decode()
                if any(_is_in(entry.path, folder) for folder in self._folders):
                    if len(self.always) <= MOST_FILES:
                        self.always.append((entry.path, size))
                    continue
                yield hashlib.blake2b(entry.path, key=self._seed, digest_size=8).digest(), entry.path, size


def _is_in(path: bytes, folder: bytes) -> bool:
    """Return whether a path is in a folder of the tree; ``.`` is the tree itself. Pure."""
    return folder == b"." or path.startswith(folder + b"/")


def _require_always(name: str, files: _Files, folders: Sequence[str], room: int, entries: int) -> None:
    """Raise Refused unless each of these folders has a file, and there is room for all of them."""
    for folder in map(os.fsencode, folders):
        if not any(_is_in(path, folder) for path, _size in files.always):
            raise Refused(
                f"{name} has no file in {os.fsdecode(folder)}, so there is nothing to load. It was made without these "
                "dumps: drill the newest snapshot, or take load out"
            )
    if len(files.always) > MOST_FILES:
        raise Refused(f"{name} has more than {MOST_FILES} dumps to load. Name fewer folders in load")
    if len(_fit(files.always, room, entries)) < len(files.always):
        raise Refused(
            f"{name} has {len(files.always)} dumps of {sum(size for _path, size in files.always)} bytes to load, and "
            f"the scratch folder has room for {room} bytes and {entries} entries. Make room there, or name another "
            "folder (into)"
        )


def _fit(files: Sequence[tuple[bytes, int]], room: int, entries: int) -> dict[bytes, int]:
    """Return the files, with their sizes, for which there is room, with the directories above them. Pure."""
    chosen: dict[bytes, int] = {}
    folders = {b""}
    for path, size in files:
        new = [folder for folder in _above(path) if folder not in folders]
        needed = size + _BLOCK * (1 + len(new))
        if needed <= room and 1 + len(new) <= entries:
            chosen[path] = size
            folders.update(new)
            room -= needed
            entries -= 1 + len(new)
    return chosen


def _above(path: bytes) -> Iterator[bytes]:
    """Yield the directories that a path is in, without the root."""
    at = path.rfind(b"/")
    while at > 0:
        yield path[:at]
        at = path.rfind(b"/", 0, at)


def _nothing_chosen(name: str, drawn: Sequence[tuple[bytes, bytes, int]], room: int) -> Refused:
    if not drawn:
        return Refused(f"{name} has no file, so there is nothing to restore")
    return Refused(
        f"the scratch folder has room for {room} bytes, and none of the files that were drawn from {name} fits. Make "
        "room there, or name another folder (into)"
    )


def _pack(manifest: ManifestReader, chosen: Mapping[bytes, int]) -> bytes:
    """Return a manifest of the chosen files and the directories above them."""
    wanted = {b"", *chosen, *(folder for path in chosen for folder in _above(path))}
    about, entries, packed = manifest.about, 0, io.BytesIO()
    writer = ManifestWriter(packed, About(about.algorithm, about.host, about.job))
    for record in manifest.records():
        if record.entry.path in wanted:
            writer.add(record.entry, record.content)
            entries += 1
    writer.finish({"entries": entries, "files": len(chosen), "bytes": sum(chosen.values())})
    return packed.getvalue()


# The host that receives the files


def make_scratch(place: str, name: str, owner: str, avoid: Sequence[str], *, check: bool = False) -> ScratchFolder:
    """Make a scratch folder in the folder ``place``, and remove what earlier drills of this ``owner`` left there.

    ``avoid`` are repositories and sources on this host. With ``check`` nothing is made or removed. Raises Refused for a
    place that is in one of these, that is not there, or that has no room.
    """
    with _opened(place) as fd:
        for folder in avoid:
            if is_within(place, folder):
                raise Refused(
                    f"{place} leads into {folder}, which is a repository or a source of a backup. Name another folder "
                    "for drills (into)"
                )
        removed = _leftovers(fd, owner)
        if not check:
            removed = [one for one in removed if _remove(fd, one, owner)] + _remove_empty(fd)
        found = find_room(fd)
        room = usable_room(found.total, found.free)
        if room <= 0 and not (check and removed):  # their removal makes room
            raise Refused(
                f"the file system of {place} has {found.free} bytes free, and {found.free - room} of these must stay "
                "free, so nothing is restored there. Make room, or name another folder (into)"
            )
        try:
            if not check:
                _create(fd, name, owner)
            elif os.fstatvfs(fd).f_flag & os.ST_RDONLY:
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            elif not os.access(".", os.W_OK | os.X_OK, dir_fd=fd, effective_ids=True):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise Refused(f"no folder can be made in {place}: {error.strerror}") from None
        entries = MOST_FILES * 100 if found.free_inodes is None else found.free_inodes // 2
        return ScratchFolder(max(0, room), entries, removed)


def _create(place_fd: int, name: str, owner: str) -> None:
    os.mkdir(name, 0o700, dir_fd=place_fd)
    fd = open_directory(place_fd, name)
    try:
        write_json(fd, _MARKER, {"owner": owner, "name": name, "made": int(time.time())})
    except OSError:
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=place_fd)
        raise
    finally:
        os.close(fd)


def add_scratch(place: str, name: str, owner: str) -> None:
    """Make a further scratch folder beside that of a drill, which others can enter, for a server. Raises Refused."""
    with _opened(place) as fd:
        try:
            _create(fd, name, owner)
            os.chmod(name, 0o711, dir_fd=fd)
        except OSError as error:
            raise Refused(f"no folder can be made in {place}: {error.strerror}") from None


def compare_scratch(place: str, name: str, owner: str, manifest: bytes) -> Report:
    """Compare the tree in a scratch folder with a manifest. Raises Refused."""
    report = Report([name])
    with _opened(place) as place_fd:
        fd = _open_own(place_fd, name, owner)
        if fd is None:
            raise Refused(f"the scratch folder {os.path.join(place, name)} is gone")
        with SnapshotFolder(fd, name) as scratch:
            try:
                with replacing(fd, names.MANIFEST) as file:
                    file.write(manifest)
                # Only root gives files to others.
                compared = COMPARED if os.geteuid() == 0 else COMPARED - {"owner"} | {UNOWNED, UNTRUSTED}
                check_files(scratch, report, compared=compared)
                check_contents([scratch], ALL, report)
            except (ManifestError, OSError) as error:
                raise Refused(f"what was restored to {os.path.join(place, name)} cannot be read: {error}") from None
    return report


def remove_scratch(place: str, name: str, owner: str) -> bool:
    """Remove a scratch folder of this owner, and return whether there was one. Raises Refused."""
    with _opened(place) as fd:
        return _remove(fd, name, owner)


@contextlib.contextmanager
def _opened(place: str) -> Iterator[int]:
    try:
        fd = open_folder(os.fsencode(place))
    except ForeignLink as refused:
        raise Refused(f"{place} is not used for drills: {refused}") from None
    except OSError as error:
        raise Refused(
            f"{place} cannot be used for drills: {error.strerror}. It is not made here, because its disk may just not "
            "be mounted: make the folder, or mount it"
        ) from None
    try:
        yield fd
    finally:
        os.close(fd)


def _leftovers(place_fd: int, owner: str) -> list[str]:
    """Return the scratch folders of an owner in an open folder."""
    found = []
    for name in sorted(os.listdir(rewound(place_fd))):
        if name.startswith(PREFIX):
            fd = _open_own(place_fd, name, owner)
            if fd is not None:
                os.close(fd)
                found.append(name)
    return found


def _remove_empty(place_fd: int) -> list[str]:
    """Remove empty scratch folders of this user, which a kill left before the marker came or behind its removal."""
    removed = []
    for name in sorted(os.listdir(rewound(place_fd))):
        if name.startswith(PREFIX):
            with contextlib.suppress(OSError):  # it is no folder, or not empty
                status = os.stat(name, dir_fd=place_fd, follow_symlinks=False)
                if status.st_uid == os.geteuid() and status.st_mtime < time.time() - _OLD:
                    os.rmdir(name, dir_fd=place_fd)
                    removed.append(name)
    return removed


def _open_own(place_fd: int, name: str, owner: str) -> int | None:
    """Open a scratch folder that is proven to be one of this owner; return None for anything else."""
    try:
        fd = open_directory(place_fd, name)
    except OSError:
        return None
    try:
        if _is_own(fd, name, owner):
            return fd
    except (OSError, ValueError):
        pass
    os.close(fd)
    return None


def _is_own(fd: int, name: str, owner: str) -> bool:
    status, marker = os.fstat(fd), os.stat(_MARKER, dir_fd=fd, follow_symlinks=False)
    if {status.st_uid, marker.st_uid} != {os.geteuid()} or not stat.S_ISREG(marker.st_mode):
        return False
    return read_json(fd, _MARKER, _parse_marker) == (owner, name)


def _parse_marker(value: object) -> tuple[str, str]:
    values = as_object(value, "the marker")
    return member(values, "owner", str), member(values, "name", str)


def _remove(place_fd: int, name: str, owner: str) -> bool:
    """Remove a scratch folder, the marker last, so that a killed removal is continued by the next drill."""
    fd = _open_own(place_fd, name, owner)
    if fd is None:
        return False
    try:
        with Root(fd) as root:
            for one in sorted(os.listdir(rewound(fd)), key=lambda found: (found == _MARKER, order(os.fsencode(found)))):
                root.remove(os.fsencode(one))
        os.rmdir(name, dir_fd=place_fd)
    except OSError as error:
        raise Refused(f"the scratch folder {name} cannot be removed: {error.strerror or error}") from None
    finally:
        os.close(fd)
    return True
