# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request of a job, as the control node writes it and ``request.json`` keeps it: a dict in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, cast

from .._core.context import parse_peer, parse_serve
from .._core.errors import TransferFailed
from .._core.json_shape import WrongShape, as_object, check_members, list_of, number, optional, well_formed
from .._core.settings import check_time_units
from .._tree.directory_tags import DirectoryTags
from .._tree.held_root import parse_probed

if TYPE_CHECKING:
    from typing import TypedDict

    from .._core.context import Peer, Serve
    from .._core.settings import Settings
    from .._tree.held_root import ProbedRoot

    class _RequiredFields(TypedDict):
        side: str  # source or dest
        part: str  # drive, serve, compare, owners, benchmark or consistent
        root: str  # of the tree on this host
        peer_name: str  # the inventory host on the peer

    class TransferRequest(_RequiredFields, total=False):
        settings: Settings
        fingerprint: str  # of the task's options
        peer: Peer  # for the driving end
        serve: Serve  # for the serving end
        probed: ProbedRoot | None  # what the probe found of the root

    class _Walk(_RequiredFields):
        rules: list[str]
        only: str | None
        one_file_system: bool
        exclude_if_present: list[str]
        exclude_caches: bool

    class CensusRequest(_Walk):
        preserve: list[str]  # what the transfer keeps

    class Expected(TypedDict):
        entries: int  # 0: not known
        bytes: int  # that are read

    class DigestRequest(_Walk, total=False):
        fields: list[str]  # that are compared
        owner_map: dict[str, list[list[int]]] | None  # None for the destination, whose own numbers count
        count_owners: list[str] | None  # what a transfer preserves, where the digest must have ``owners``, too
        special_files: list[str]  # devices, specials or neither: others are passed over
        algorithm: str
        content_of: list[str] | None  # the only files whose contents count, where ``fields`` has content; None: all
        content_of_rounded: bool | None  # if content_of is None: only those where the destination keeps coarse times
        time_units: dict[str, int] | None  # of the destination, see TimeUnits
        expects: Expected | None  # the size of the tree, as far as it is known: for the progress alone

    class _StoredSettings(TypedDict, total=False):
        method: str
        check: bool
        rsyncd_module: object

    class BenchmarkRequest(_RequiredFields, total=False):
        """What a benchmark does on a host; ``root`` is the path of the transfer that it is about, as it was given."""

        work: str  # disk, serve, drive or processor
        seconds: float
        bytes: int  # that are read, written or sent, at most
        rules: list[str]
        one_file_system: bool
        streams: int  # of the measurement with several
        ratio: float  # to which made data compress
        peer: Peer
        serve: Serve

    class Request(TypedDict, total=False):
        """What others than its job look at of a request, which may be missing or of another version."""

        part: str
        root: str
        probed: object
        peer_name: str
        fingerprint: str
        settings: _StoredSettings
        serve: Serve

else:  # making such classes takes time at each job's start
    TransferRequest = CensusRequest = DigestRequest = BenchmarkRequest = Expected = Request = dict

_STORED: Mapping[str, type] = {
    **dict.fromkeys(("part", "root", "peer_name", "fingerprint"), str),
    **dict.fromkeys(("settings", "serve"), dict),
}

_TAGS: Mapping[str, type] = {"exclude_if_present": list, "exclude_caches": bool}  # earlier versions had neither


def tags_of(request: CensusRequest | DigestRequest) -> DirectoryTags:
    """Return the files that leave out the rest of their directory."""
    return DirectoryTags.parse(request.get("exclude_if_present") or (), bool(request.get("exclude_caches")))


def parse_transfer_request(value: object) -> TransferRequest:
    """Return the request for one end of a transfer, but for its settings, which parse_settings reads.

    Raises TransferFailed if it cannot be read.
    """
    values = _checked(value, {"side": str, "part": str, "root": str})
    try:
        parse_peer(values.get("peer", {}))
        parse_serve(values.get("serve", {}))
        if values.get("probed") is not None:
            parse_probed(values["probed"])
    except WrongShape as error:
        raise _refusal(error) from error
    return cast(TransferRequest, values)


def parse_census_request(value: object) -> CensusRequest:
    """Return the request for a count of owners; raise TransferFailed if it cannot be read."""
    values = _checked(value, {"root": str, "one_file_system": bool}, ("rules", "preserve"), {"only": str, **_TAGS})
    return cast(CensusRequest, values)


def parse_digest_request(value: object) -> DigestRequest:
    """Return the request for the digest of a tree; raise TransferFailed if it cannot be read."""
    values = _checked(
        value,
        {"root": str, "one_file_system": bool, "algorithm": str},
        ("rules", "fields", "special_files"),
        {
            **dict.fromkeys(("side", "only"), str),
            **dict.fromkeys(("owner_map", "time_units", "expects"), dict),
            **dict.fromkeys(("count_owners", "content_of"), list),
            "content_of_rounded": bool,
            **_TAGS,
        },
    )
    _check_time_units(values.get("time_units") or {})
    if values.get("expects"):
        _checked(values["expects"], {"entries": int, "bytes": int})
    return cast(DigestRequest, values)


def parse_benchmark_request(value: object) -> BenchmarkRequest:
    """Return the request for a measurement; raise TransferFailed if it cannot be read."""
    due = {"side": str, "root": str, "work": str, "bytes": int, "one_file_system": bool, "streams": int}
    values = _checked(value, due, ("rules",))
    try:
        for name in ("seconds", "ratio"):
            number(values, name)
        parse_peer(values.get("peer", {}))
        parse_serve(values.get("serve", {}))
    except WrongShape as error:
        raise _refusal(error) from error
    return cast(BenchmarkRequest, values)


def _checked(
    value: object, due: Mapping[str, type], lists: tuple[str, ...] = (), may_be_none: Mapping[str, type] | None = None
) -> Mapping[str, Any]:
    try:
        values = as_object(value, "it")
        check_members(values, due)
        for name in lists:
            list_of(values.get(name), name, str)
        for name, kind in (may_be_none or {}).items():
            found = optional(values, name, kind)
            if isinstance(found, list):
                list_of(found, name, str)
    except WrongShape as error:
        raise _refusal(error) from error
    return values


def _check_time_units(value: object) -> None:
    try:
        check_time_units(value)
    except WrongShape as error:
        raise _refusal(error) from error


def _refusal(error: WrongShape) -> TransferFailed:
    return TransferFailed(f"the job's request cannot be read: {error}. Run the task again")


def parse_request(value: object) -> Request:
    """Return what stands in ``request.json``, without what is not as Request has it."""
    found = well_formed(value, _STORED)
    settings = found.get("settings", {})
    if not isinstance(settings, dict) or well_formed(settings, {"method": str, "check": bool}) != settings:
        del found["settings"]
    return cast(Request, found)
