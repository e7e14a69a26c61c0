# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read one tree for a comparison, and answer questions about what was read. Private to the collection.

The steps of a comparison, and what is sent between the hosts, are described in ``_tree/digest.py``.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Callable, Iterator, Mapping

from .._core.errors import TransferFailed
from .._model.entry import DIRECTORY, REGULAR, SYMLINK, Entry, special_types
from .._model.filters import FilterError, Filters
from .._model.ids import IdMap
from .._model.paths import unescape
from .._model.time_units import TimeUnits
from .._tree.content_hash import ReadMeter, with_contents
from .._tree.digest import TreeDigest
from .._tree.held_root import open_held
from .._tree.owners import OwnerCount
from .._tree.record import Describer
from .._tree.record_store import Listing, RecordStore, RecordWriter
from .._tree.walk import walk
from .confine_job import confine_reader
from .reporter import Reporter
from .request import DigestRequest, parse_digest_request, tags_of
from .state import JobFolder

if TYPE_CHECKING:
    from .steps import DrillDown

_STORE = "spool"
_NOT_READ = b"not read"  # no hash is as short
_WORKERS = 2  # threads that read and hash


class _TooLong(Exception):
    """There is more to read than a quick digest has time for."""


def run_digest(folder: JobFolder, _secrets: dict[str, str], reporter: Reporter) -> int:
    """Be the job that walks the tree which the folder's request names; return the exit code."""
    request = parse_digest_request(folder.request)
    with _held(request) as root:
        confine_reader(root, folder.path, bool({"xattrs", "acls"} & set(request["fields"])))
        make_digest(folder, request, root, reporter)
    return 0


@contextlib.contextmanager
def _held(request: DigestRequest) -> Iterator[int]:
    """Hold the root of the tree; raise TransferFailed if it cannot be opened."""
    try:
        fd = open_held(os.fsencode(request["root"]))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TransferFailed(f"there is no directory {request['root']} to compare") from error
    except OSError as error:
        raise TransferFailed(f"{request['root']} cannot be read: {error.strerror}") from error
    try:
        yield fd
    finally:
        os.close(fd)


def make_digest(folder: JobFolder, request: DigestRequest, root: int, reporter: Reporter) -> None:
    """Walk a tree, keep its records in the folder, and publish its digest."""
    progress = reporter.progress
    progress.phase = "comparing"
    expects = request.get("expects")
    if expects:
        progress.files_total, progress.bytes_total = expects["entries"], expects["bytes"]
    reporter.set(state="running")

    def count(_size: int) -> None:
        progress.files_done += 1

    with RecordWriter(folder.file(_STORE)) as store:
        digest = _read(request, root, store, count, ReadMeter(progress))
    reporter.set(state="finished", digest=digest)


class _Deadline(ReadMeter):
    """Ends the reading of a tree when its time has passed, in the middle of a large file, too."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def begin(self, path: bytes) -> None:
        """Take the name of the file that is read now, which nobody asks for."""

    def count(self, _size: int) -> None:
        """Raise _TooLong if there is no time left."""
        if time.monotonic() > self._at:
            raise _TooLong


def quick_digest(request: DigestRequest, seconds: float) -> Mapping[str, object] | None:
    """Return the digest of a tree that can be read in ``seconds``; None for any other. Nothing is kept on this host.

    It is for two trees that are likely to be small and equal. Where they are not, a job reads them, and keeps what
    questions about the differences need; it also says what is wrong with a tree that cannot be read.
    """
    deadline = _Deadline(seconds)
    try:
        with _held(request) as root:
            return _read(request, root, None, deadline.count, deadline)
    except (TransferFailed, _TooLong):
        return None


class DigestBeside:
    """The digest of a tree that another walk reads: that of a destination, without contents."""

    def __init__(self, request: DigestRequest, sums: str) -> None:
        """Take what is compared, and the sums of the source."""
        self._digest = TreeDigest(_describer(request))
        self._compared = _compared_types(request)
        self._sums = sums

    def add(self, entry: Entry) -> None:
        """Add the next entry of the walk."""
        if entry.type in self._compared:
            self._digest.add(entry)

    @property
    def is_equal(self) -> bool:
        """Whether the tree is equal to that of the source."""
        return self._digest.as_dict()["sums"] == self._sums


def _compared_types(request: DigestRequest) -> set[str]:
    return {REGULAR, DIRECTORY, SYMLINK, *special_types(request["special_files"])}


def _read(
    request: DigestRequest,
    root: int,
    store: RecordWriter | None,
    count: Callable[[int], None],
    meter: ReadMeter | None = None,
) -> Mapping[str, object]:
    """Walk an open tree and give its digest.

    ``count`` is told the size of each entry once it is done, and ``meter`` what is read of contents.
    """
    fields = frozenset(request["fields"])
    try:
        filters = Filters.parse(request["rules"]) if request["rules"] else None
    except FilterError as error:
        raise TransferFailed(str(error)) from error
    digest = TreeDigest(_describer(request), store)
    entries = walk(
        root,
        filters=filters,
        one_file_system=request["one_file_system"],
        tags=tags_of(request),
        xattrs=bool(fields & {"xattrs", "acls"}),
        only=os.fsencode(request["only"]) if request["only"] else None,
        on_staging=(lambda _path: None) if request.get("side") == "source" else None,  # none offers them
        on_error=digest.error,
    )
    if request["only"]:  # the root is not what was transferred
        entries = (entry for entry in entries if entry.path)
    compared = _compared_types(request)
    entries = (entry for entry in entries if entry.type in compared)
    preserve = request.get("count_owners")
    counted = OwnerCount(preserve) if preserve else None
    if counted is not None:
        entries = counted.passing(entries)
    if "content" in fields:
        known = _unread(request)
        for entry, content in with_contents(entries, root, request["algorithm"], _WORKERS, known, meter):
            digest.add(entry, content)
            count(entry.size)
    else:
        for entry in entries:
            digest.add(entry)
            count(entry.size)
    made = dict(digest.as_dict())
    if counted is not None:
        made["owners"] = counted.as_dict(os.fsencode(request["root"]))
    return made


def _describer(request: DigestRequest) -> Describer:
    times = TimeUnits(request.get("time_units") or {})
    return Describer(frozenset(request["fields"]), IdMap.of(request["owner_map"]), times)


def _unread(request: DigestRequest) -> Callable[[Entry], bytes] | None:
    """Return what stands for the contents of the files that are not read: the same on both sides, as if they were."""
    wanted = request.get("content_of")
    if wanted is not None:
        paths = {unescape(path) for path in wanted}
        return lambda entry: b"" if entry.path in paths or entry.type != REGULAR else _NOT_READ
    if request.get("content_of_rounded"):
        times = TimeUnits(request.get("time_units") or {})
        return lambda entry: b"" if times.at(entry.path) > 1 or entry.type != REGULAR else _NOT_READ
    return None


def drill_down(folder: JobFolder, step: DrillDown) -> Mapping[str, object]:
    """Answer a question about a tree that was read."""
    request = parse_digest_request(folder.request)
    store = RecordStore(folder.file(_STORE), _describer(request))
    since = step.get("changed_after_ns")
    if step["ask"] == "listing":
        return store.listing(step["buckets"], changed_after_ns=since).as_dict()
    if step["ask"] == "explain":
        return store.explain(Listing.from_dict(dict(step["listing"])), step["limit"], step["extras"], step["absent"])
    if step["ask"] == "absent":
        return {"absent": store.absent(Listing.from_dict(dict(step["listing"])))}
    return {"details": store.details(step["keys"], since)}
