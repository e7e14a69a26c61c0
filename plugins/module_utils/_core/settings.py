# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that both ends of a transfer share. The control node writes them and a job reads them: JSON, and a dict.

docs/architecture.md says what each setting means; a unit test holds its table to this type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, cast

from .errors import TransferFailed
from .json_shape import WrongShape, as_object, member

if TYPE_CHECKING:
    from typing import TypedDict

    class Compression(TypedDict, total=False):
        algorithm: str | None
        level: int | None
        auto: bool  # and only where it pays

    class SftpTuning(TypedDict, total=False):  # None: the client's own
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

    class _Always(TypedDict):
        id: str
        method: str
        trust: str
        check: bool
        rules: list[str]
        only: str | None
        delete: bool
        max_delete: int | None
        checksum: bool
        suspects: list[str]
        inplace: bool
        delta: str
        compress: Compression
        bwlimit: int
        streams: int
        streams_max: int
        streams_first: int  # data connections to begin with; streams is more than those
        congestion: str
        congestion_first: str  # what the first connections begin with where it is auto; empty: the host's own
        encrypt: bool
        preserve: list[str]
        numeric_ids: bool
        owner_map: dict[str, list[list[int]]]
        one_file_system: bool
        partial: bool
        link_dest: list[str]
        link_dest_exclude: list[str]
        timeout: int
        rsync_opts: list[str]
        ciphers: str
        changes_max: int
        rsync: dict[str, list[int]]
        tar: dict[str, str | None]
        nc: dict[str, str]
        scp_legacy_flag: bool
        sftp: SftpTuning
        time_units: dict[str, int]  # see TimeUnits; the destination's job puts in what it finds
        mounts: list[str]  # inside the destination, escaped; as before

    class Settings(_Always, total=False):
        rsyncd_module: DaemonModule

else:  # making such classes takes a millisecond of each job's start
    Compression = SftpTuning = DaemonModule = Settings = dict

COARSEST = 2 * 10**9  # nanoseconds: the unit of FAT, and no file system in use has a larger one

_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("id", "method", "trust", "delta", "ciphers", "congestion", "congestion_first"), (str,)),
    **dict.fromkeys(("bwlimit", "streams", "streams_max", "streams_first", "timeout", "changes_max"), (int,)),
    **dict.fromkeys(("check", "delete", "checksum", "inplace", "encrypt", "numeric_ids"), (bool,)),
    **dict.fromkeys(("one_file_system", "partial", "scp_legacy_flag"), (bool,)),
    **dict.fromkeys(
        ("rules", "suspects", "preserve", "link_dest", "link_dest_exclude", "rsync_opts", "mounts"), (list,)
    ),
    **dict.fromkeys(("compress", "owner_map", "rsync", "tar", "nc", "sftp", "time_units"), (dict,)),
    "only": (str, type(None)),
    "max_delete": (int, type(None)),
    "rsyncd_module": (dict, type(None)),
}


def check_time_units(value: object) -> dict[str, int]:
    """Return units of modification times by escaped paths, as TimeUnits takes them; raise WrongShape."""
    units = as_object(value, "time_units")
    for path in units:
        if not 1 <= member(units, path, int) <= COARSEST:
            raise WrongShape(f"time_units has an impossible unit for {path!r}")
    return dict(units)


def parse_settings(values: object) -> Settings:
    """Return the settings that a request holds; raise TransferFailed if one is missing or of another type.

    What a request of an earlier version lacks gets the value that this version then meant.
    """
    given = values if isinstance(values, dict) else {}
    found: dict[str, Any] = {
        "only": None,
        "trust": "full",
        "max_delete": None,
        "suspects": [],
        "link_dest_exclude": [],
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
    for name, types in _TYPES.items():
        value = found.get(name)
        is_right = isinstance(value, types) and (bool in types or not isinstance(value, bool))
        if not is_right or (list in types and not all(isinstance(text, str) for text in found[name])):
            raise TransferFailed(f"the job's request has no setting {name} that can be read: run the transfer again")
    try:
        check_time_units(found["time_units"])
    except WrongShape as error:
        raise TransferFailed(f"the job's request cannot be read: {error}. Run the transfer again") from error
    return cast(Settings, found)
