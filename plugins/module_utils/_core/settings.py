# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that both ends of a transfer share. The control node writes them and a job reads them: JSON, and a dict.

The classes declare each setting once: with its type, by which a job checks its request, and its meaning. A setting that
may be null is null where a request lacks it; for others see parse_settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, cast

from .errors import TransferFailed
from .json_shape import WrongShape, as_object, member

if TYPE_CHECKING:
    from typing import TypedDict
else:

    class TypedDict:
        """Declares members of a dict. A real one compiles each type, which takes a millisecond of each job's start."""

        def __init_subclass__(cls, total: bool = True) -> None:
            """Take what a real one takes."""


class Compression(TypedDict, total=False):
    """An algorithm, which is null for none, and its level."""

    algorithm: str | None
    level: int | None
    auto: bool  # and only where it pays


class SftpTuning(TypedDict, total=False):
    """Options of sftp; null is the client's own value."""

    buffer: int | None
    requests: int | None


class _DaemonModule(TypedDict):
    name: str
    user: str | None
    port: int
    subpath: str  # in the module


class DaemonModule(_DaemonModule, total=False):
    """A module of a daemon that is configured, and where in it the root lies."""

    options: dict[str, str]  # as rsyncd.conf(5) names them


class OptionSettings(TypedDict):
    """Settings that are options of the same name of longhaul.fleet.transfer, as the user wrote them.

    The plan passes them on without naming them. A list that is not set is empty.
    """

    delete: bool  # remove what the source does not have
    max_delete: int | None  # entries that may be removed at most
    checksum: bool  # compare contents, not size and modification time
    inplace: bool  # write into large files instead of replacing them; only stream, rsync, rsyncd
    delta: str  # auto, none, blocks, rsync: what is sent of a changed large file; see transfer/rsync_fallback.py
    congestion: str  # with stream: auto, none, or the congestion control of the data connections
    numeric_ids: bool  # false: the destination gives an id the number of the same name, where it has it
    one_file_system: bool  # list no directory of another file system
    exclude_if_present: list[str]  # names of files: of a directory that has one, only that file is listed
    exclude_caches: bool  # the same for CACHEDIR.TAG
    partial: bool  # keep what has arrived when the transfer fails
    link_dest: list[str]  # absolute paths on the destination
    link_dest_exclude: list[str]  # paths, escaped, of files that are never taken from link_dest
    timeout: int  # seconds without any progress after which the transfer fails
    rsync_opts: list[str]  # appended to rsync's argv


class Settings(OptionSettings):
    """All settings of a transfer: besides options, those that the plan decides or a job finds."""

    id: str  # 16 hex digits, the same for the same pair of hosts and paths
    method: str  # stream, rsync, rsyncd, tar_nc, scp, sftp
    # full, or none: root on either host may attack the other; then extended attributes trusted.* and security.*, other
    # than capabilities, are neither set nor compared.
    trust: str
    check: bool  # predict, write nothing below the destination
    rules: list[str]  # filter rules in rsync's own syntax, first match wins: "- *.tmp", "+ /a/**", "P /keep"
    only: str | None  # the one name below the source root that is transferred (a single file)
    suspects: list[str]  # paths, escaped, of files whose contents are compared whatever checksum says; not for rsync
    compress: Compression
    bwlimit: int  # bytes a second over all streams, 0 none
    streams: int  # parallel shards; with stream the writers of small files, and the data connections at least
    streams_max: int  # with stream and streams: auto the most that are tried; else the same as streams
    streams_first: int  # with stream data connections to begin with: streams, or what the last transfer here ended with
    congestion_first: str  # with auto: what the first data connections begin with, as remembered; empty: the host's own
    encrypt: bool  # with stream: TLS, or authenticated only
    # Of owner, group, permissions, times, acls, xattrs, hardlinks, devices, sparse. Without root at the destination
    # specials stands for the FIFOs and sockets among devices.
    preserve: list[str]
    owner_map: dict[str, list[list[int]]]  # {"users": [[103, 101]], "groups": []}; counts before numeric_ids
    ciphers: str  # comma list for ssh; empty: ssh's own choice
    changes_max: int  # how many changes are listed
    rsync: dict[str, list[int]]  # versions that the probe found: {"source": [3, 2, 7], "dest": [3, 5, 0]}
    tar: dict[str, str | None]  # flavours: {"source": "gnu", "dest": "bsd"}
    nc: dict[str, str]  # the same of netcat; builtin: Python stands in for it
    scp_legacy_flag: bool  # scp at the driving end knows -O
    sftp: SftpTuning
    # Coarsest time in nanoseconds by the paths where file systems of the destination begin, see TimeUnits:
    # {"": 1000000000, "data": 1}. Empty: nanoseconds everywhere. The destination's job puts in what it finds.
    time_units: dict[str, int]
    mounts: list[str]  # mount points inside the destination, escaped; as before
    rsyncd_module: DaemonModule | None  # with rsyncd and a daemon that is configured


COARSEST = 2 * 10**9  # nanoseconds: the unit of FAT, and no file system in use has a larger one

# The types of all settings, as they are written above.
KINDS: Mapping[str, str] = {**Settings.__annotations__, **OptionSettings.__annotations__}


_OR_NULL = " | None"  # at the end of an annotation; inside it, it is of what a dict holds


def _json_type(kind: str) -> type:
    """Return the type of a value of JSON for an annotation, None left out."""
    kind = kind[: -len(_OR_NULL)] if kind.endswith(_OR_NULL) else kind
    if kind in ("str", "int", "bool"):
        return {"str": str, "int": int, "bool": bool}[kind]
    return list if kind.startswith("list") else dict


def check_time_units(value: object) -> dict[str, int]:
    """Return units of modification times by escaped paths, as TimeUnits takes them; raise WrongShape."""
    units = as_object(value, "time_units")
    for path in units:
        if not 1 <= member(units, path, int) <= COARSEST:
            raise WrongShape(f"time_units has an impossible unit for {path!r}")
    return dict(units)


def parse_settings(values: object) -> Settings:
    """Return the settings that a request holds; raise TransferFailed if one is missing or of another type.

    What a request of an earlier version lacks gets the value that its version meant.
    """
    given = values if isinstance(values, dict) else {}
    found: dict[str, Any] = {
        **{name: None for name, kind in KINDS.items() if kind.endswith(_OR_NULL)},
        "trust": "full",
        "suspects": [],
        "link_dest_exclude": [],
        "exclude_if_present": [],
        "exclude_caches": False,
        "inplace": False,
        "delta": "auto",
        "congestion": "none",
        "congestion_first": "",
        "encrypt": False,
        "owner_map": {},
        "rsync": {},
        "tar": {},
        "nc": {},
        "scp_legacy_flag": False,
        "sftp": {},
        "time_units": {},
        "mounts": [],
        "streams_max": given.get("streams"),
        "streams_first": given.get("streams"),
        **given,
    }
    for name, written in KINDS.items():
        value, wanted = found.get(name), _json_type(written)
        if value is None and written.endswith(_OR_NULL):
            continue
        is_right = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
        if not is_right or (isinstance(value, list) and not all(isinstance(text, str) for text in value)):
            raise TransferFailed(f"the job's request has no setting {name} that can be read: run the transfer again")
    try:
        check_time_units(found["time_units"])
    except WrongShape as error:
        raise TransferFailed(f"the job's request cannot be read: {error}. Run the transfer again") from error
    return cast(Settings, found)
