# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host says of itself before a transfer or a comparison is planned, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    check_members,
    list_of,
    member,
    number,
    optional,
    texts,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._core.settings import check_time_units
from ansible_collections.longhaul.fleet.plugins.module_utils._job.request import parse_request
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import parse_job_status

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import EndDescription, ProbeFacts

_MEMBERS: Mapping[str, type] = {
    **dict.fromkeys(("system", "user", "machine", "not_followed"), str),
    **dict.fromkeys(("uid", "now_ns", "cores", "link_mbit"), int),
    **dict.fromkeys(("aes", "tls13", "zstd", "selinux"), bool),
}
_TEXTS = ("addresses", "no_folders", "methods")
_PATH: Mapping[str, type] = {
    **dict.fromkeys(("given", "real", "type", "existing"), str),
    **dict.fromkeys(("empty", "existing_is_directory", "readable", "writable"), bool),
}
_MAYBE_PATH: Mapping[str, type] = {
    **dict.fromkeys(("reason", "no_way", "device_path"), str),
    **dict.fromkeys(("free_bytes", "free_inodes"), int),
    "read_only": bool,
}
_MEASURED: Mapping[str, type] = {"entries": int, "content": int, "apparent": int, "complete": bool}
_PROGRAMS: Mapping[str, Mapping[str, type]] = {
    "rsync": {"version": list, "compress": list, "acls": bool, "xattrs": bool, "holes": list},
    "tar": {"text": str},
    "ssh": {"version": str, "ciphers": list, "configured": list},
    "scp": {"legacy_flag": bool},
}
_MAYBE_PROGRAMS: Mapping[str, str] = {"tar": "flavour", "nc": "dialect"}
_SSHD_TEXTS = ("pubkeyauthentication", "permitrootlogin")
_SSHD_LISTS = ("ciphers", "authorizedkeysfile")


def parse_probe(value: object) -> ProbeFacts:
    """Return the answer to the step probe; raise WrongShape if it is none."""
    values = as_object(value, "a host's answer to probe")
    check_members(values, _MEMBERS)
    for name in _TEXTS:
        texts(values, name)
    list_of(values.get("python"), "python", int)
    _check_path(values.get("path"), "path")
    _check_numbers(values.get("owners"))
    programs = as_object(values.get("programs"), "programs")
    for name in programs:
        _check_program(name, as_object(programs[name], name))
    sshd = as_object(values.get("sshd"), "sshd")
    list_of(sshd.get("listening"), "listening", int)
    member(sshd, "home", str)
    config = as_object(sshd.get("config"), "config")
    for name in _SSHD_TEXTS:
        optional(config, name, str)
    for name in _SSHD_LISTS:
        list_of(config.get(name, []), name, str)
    for name, option in (optional(values, "rsyncd_module", dict) or {}).items():
        if not isinstance(option, str):
            raise WrongShape(f"{name} of the module in rsyncd.conf is no text")
    optional(values, "fingerprint", str)
    optional(values, "then", list)
    job = as_object(values.get("job"), "job")
    running = member(job, "running", bool)
    kept = {
        "running": running,
        "request": parse_request(job.get("request")),
        "status": parse_job_status(job.get("status")),
    }
    return cast("ProbeFacts", {**values, "job": kept})


def parse_described(value: object) -> EndDescription:
    """Return the answer to the step describe; raise WrongShape if it is none."""
    values = as_object(value, "a host's answer to describe")
    _check_path(values.get("path"), "path")
    _check_numbers(values.get("owners"))
    member(values, "machine", str)
    member(values, "now_ns", int)
    speeds = as_object(values.get("hash_speeds"), "hash_speeds")
    for name in speeds:
        number(speeds, name)
    return cast("EndDescription", values)


def _check_path(value: object, what: str) -> None:
    values = as_object(value, what)
    check_members(values, _PATH)
    for name, kind in _MAYBE_PATH.items():
        if name in values:
            member(values, name, kind)
    if "measured" in values:
        check_members(as_object(values["measured"], "measured"), _MEASURED)
    check_time_units(values.get("time_units", {}))
    if "child" in values:
        _check_path(values["child"], "child")


def _check_program(name: str, values: Mapping[str, Any]) -> None:
    member(values, "path", str)
    for one, kind in _PROGRAMS.get(name, {}).items():
        found: object = member(values, one, kind)
        if isinstance(found, list):
            list_of(found, one, int if one == "version" else str)
    if name in _MAYBE_PROGRAMS:
        optional(values, _MAYBE_PROGRAMS[name], str)


def _check_numbers(value: object) -> None:
    """Check the numbers of owners by their names."""
    values = as_object(value, "owners")
    for kind in values:
        numbers = as_object(values[kind], kind)
        for name in numbers:
            optional(numbers, name, int)
