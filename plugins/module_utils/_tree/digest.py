# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare two trees on two hosts that have no link between them. Private to the collection.

Each side walks its own tree. What the control node carries between them is small, in three steps:

1. Each side makes a :class:`TreeDigest`: counts, and 1024 sums over its entries (22 kB, whatever the size of the
   tree), and writes its records to a record store, so the tree is not read again. The control node asks
   :func:`differing_buckets`; where that gives none, the trees are equal.
2. The source gives the listing of the buckets that differ (:meth:`RecordStore.listing`, 16 bytes for each entry in
   them, in portions of whole buckets). The destination lays it beside its own store (:meth:`RecordStore.explain`),
   counts what is missing, differs or is extra, and gives the details of its own entries, up to a limit.
3. The source gives the details of its entries for the same paths (:meth:`RecordStore.details`), and :func:`report`
   makes the list of differences of both.

So a million equal entries cost 22 kB a side, and one difference among them 16 kB more: a bucket's listing. A
destination that holds more than the source is equal, unless extras are asked for. Then all buckets may
differ in step 1 and the whole listing is sent, 16 MB for a million entries; what it names are real differences only.

Hard links are compared by the first name, in the order of the walk, that shares the file: where a link became a
copy, its name is now the first of its own. Names that the destination alone has do not count: where the digests
differ, the destination leaves them out (:meth:`RecordStore.absent`), and compares once more what shared a file with
them.

Entries whose ctime at the source is later than the time given to ``listing`` and ``details`` are marked as unstable:
they changed after the transfer began, and may be different for that reason alone.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, NamedTuple

from .._core.json_shape import WrongShape, as_object, member, texts
from .._model.entry import DIRECTORY, REGULAR, Entry
from .._model.ids import NUMERIC, IdMap
from .._model.paths import escape
from .content_hash import Content
from .record import HASH_BYTES, Describer, LinkTable, path_hash
from .record_store import BUCKETS, RecordStoreError, RecordWriter, bucket_of

if TYPE_CHECKING:
    from typing import TypedDict

    class PackedDigest(TypedDict):
        """A TreeDigest in JSON."""

        entries: int
        types: dict[str, int]  # entries by type
        bytes: int
        sums: str  # base64
        errors: list[dict[str, str]]  # path (escaped) and reason of the first
        errors_total: int

    class Difference(TypedDict):
        """One entry that is not the same on both hosts."""

        path: str  # escaped
        kind: str  # missing, extra or differs
        fields: list[str]  # that differ
        source: dict[str, object]  # their values; all of them for what the other side lacks
        dest: dict[str, object]
        unstable: bool  # it changed at the source after the transfer began

else:  # making such classes takes time at each job's start
    PackedDigest = Difference = dict

MAX_ERRORS = 100  # listed; all are counted

_MODULUS = 1 << (8 * HASH_BYTES)


class TreeDigest:
    """What one side says of its tree: small, and independent of the order of the entries."""

    def __init__(self, describer: Describer, store: RecordWriter | None = None) -> None:
        self._describer = describer
        self._store = store
        self._links = LinkTable()
        # Sums, not exclusive ors: the same record twice would vanish in those.
        self._sums = [0] * BUCKETS
        self.types: dict[str, int] = {}
        self.bytes = 0
        self.errors: list[dict[str, str]] = []
        self.errors_total = 0

    @classmethod
    def of(
        cls,
        entries: Iterable[Entry],
        fields: frozenset[str],
        content_hash: Callable[[Entry], bytes] | None = None,
        *,
        ids: IdMap = NUMERIC,
        store: RecordWriter | None = None,
    ) -> TreeDigest:
        """Make the digest of a walk. ``content_hash`` is asked for regular files; it may raise OSError."""
        digest = cls(Describer(fields, ids), store)
        for entry in entries:
            content: Content = b""
            if content_hash is not None and entry.type == REGULAR:
                try:
                    content = content_hash(entry)
                except OSError as error:
                    content = error
            digest.add(entry, content)
        return digest

    def add(self, entry: Entry, content: Content = b"") -> None:
        """Add the next entry of a walk, with the hash of its contents or why they could not be read."""
        if isinstance(content, OSError):
            self.error(entry.path, content)
        record = self._links.record(entry, content)
        of_path, of_record = path_hash(entry.path), self._describer.record_hash(record)
        bucket = bucket_of(of_path)
        self._sums[bucket] = (self._sums[bucket] + int.from_bytes(of_record, "big")) % _MODULUS
        self.types[entry.type] = self.types.get(entry.type, 0) + 1
        if entry.type != DIRECTORY:
            self.bytes += entry.size
        if self._store is not None:
            self._store.add(of_path, of_record, record)

    def error(self, path: bytes, error: OSError) -> None:
        """Count what could not be read; fits as the walk's ``on_error``."""
        self.errors_total += 1
        if len(self.errors) < MAX_ERRORS:
            self.errors.append({"path": escape(path) or ".", "reason": error.strerror or str(error)})

    def as_dict(self) -> PackedDigest:
        """Return plain data for JSON."""
        sums = b"".join(value.to_bytes(HASH_BYTES, "big") for value in self._sums)
        return {
            "entries": sum(self.types.values()),
            "types": self.types,
            "bytes": self.bytes,
            "sums": base64.b64encode(sums).decode(),
            "errors": self.errors,
            "errors_total": self.errors_total,
        }


def differing_buckets(source: Mapping[str, object], dest: Mapping[str, object]) -> list[int]:
    """Name the buckets in which two digests (as_dict) differ. Raises RecordStoreError for what is no digest."""
    ours, theirs = _sums(source), _sums(dest)
    return [bucket for bucket in range(BUCKETS) if ours[bucket] != theirs[bucket]]


def _sums(digest: Mapping[str, object]) -> list[bytes]:
    try:
        data = base64.b64decode(member(digest, "sums", str), validate=True)
    except ValueError as error:
        raise RecordStoreError(f"the digest of a tree is damaged: {error}") from None
    if len(data) != BUCKETS * HASH_BYTES:
        raise RecordStoreError("the digest of a tree is cut short")
    return [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]


class _EntryReport(NamedTuple):
    """Description of an entry by a host."""

    key: str
    path: str
    values: Mapping[str, object]
    unstable: bool


def _parse_told(value: object) -> _EntryReport:
    values = as_object(value, "the details of an entry")
    described = as_object(values.get("values"), "values")
    return _EntryReport(
        member(values, "key", str), member(values, "path", str), described, bool(values.get("unstable"))
    )


def report(explained: Mapping[str, Any], details: Iterable[Mapping[str, Any]]) -> list[Difference]:
    """Make the list of differences from what the destination explained and the source's details, sorted by path.

    Both are what hosts sent (``RecordStore.explain`` and ``details``). Raises RecordStoreError for anything else.
    """
    try:
        at_source = {one.key: one for one in map(_parse_told, details)}
        at_dest = {one.key: one for one in map(_parse_told, member(explained, "found", list))}
        extras = [_parse_told(one) for one in member(explained, "extras", list)]
        asked = texts(explained, "ask")
    except WrongShape as error:
        raise RecordStoreError(f"what a host says of its entries is damaged: {error}") from None
    differences = [_difference("extra", one.path, None, one) for one in extras]
    for key in asked:
        source, dest = at_source.get(key), at_dest.get(key)
        if source is not None:
            differences.append(_difference("differs" if dest else "missing", source.path, source, dest))
    return sorted(differences, key=lambda difference: difference["path"])


def _difference(kind: str, path: str, source: _EntryReport | None, dest: _EntryReport | None) -> Difference:
    ours: Mapping[str, object] = source.values if source else {}
    theirs: Mapping[str, object] = dest.values if dest else {}
    fields = sorted(name for name in set(ours) | set(theirs) if ours.get(name) != theirs.get(name))
    if kind == "differs" and "type" in fields:
        fields = ["type"]  # what else there is of another type says nothing
    return {
        "path": path or ".",  # the root, as rsync names it
        "kind": kind,
        "fields": fields if kind == "differs" else [],
        "source": {name: ours[name] for name in fields if name in ours},
        "dest": {name: theirs[name] for name in fields if name in theirs},
        "unstable": bool(source and source.unstable),
    }
