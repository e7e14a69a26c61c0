# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a task that can be refused before any host is asked. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.user_options import check_user_options
from ansible_collections.longhaul.fleet.plugins.module_utils._model.congestion import AUTO, NONE, parse_congestion
from ansible_collections.longhaul.fleet.plugins.module_utils._model.filters import FilterError, Filters
from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import components, unescape
from ansible_collections.longhaul.fleet.plugins.module_utils._model.rate import parse_rate
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.directory_tags import DirectoryTags

from ..common.refusal import Refusal
from ..hosts.trust import FULL, refuse_trusting_method
from .methods import OWN_WALK, SSH
from .owners import check_owner_map
from .rsync_trust import parse_floor
from .rules import filter_rules, refuse_old_prefixes

_ANY = 2**31
_STREAMS_ALLOWED = 64  # at most, whoever asks for them


class OptionLimit(NamedTuple):
    """Bounds of an option that is a number, and the methods that know an option."""

    low: int = -_ANY
    high: int = _ANY
    methods: tuple[str, ...] = ()  # empty: all
    for_all: tuple[str, ...] = ()  # values that all methods know


_LIMITS: Mapping[str, OptionLimit] = {
    "timeout": OptionLimit(low=1),
    "max_delete": OptionLimit(low=0),
    "port": OptionLimit(low=1, high=65535),
    "compress_level": OptionLimit(),
    "limit": OptionLimit(low=0),  # of the module verify
    # A message names the first of these that a method does not know.
    "rsyncd_module": OptionLimit(methods=("rsyncd",)),
    "rsync_opts": OptionLimit(methods=("rsync", "rsyncd")),
    "inplace": OptionLimit(methods=("stream", "rsync", "rsyncd")),
    "exclude_if_present": OptionLimit(methods=OWN_WALK),
    "exclude_caches": OptionLimit(methods=OWN_WALK),
    "ssh_ciphers": OptionLimit(methods=SSH),
    "sftp_buffer_size": OptionLimit(low=1, methods=("sftp",)),
    "sftp_requests": OptionLimit(low=1, methods=("sftp",)),
    "delta": OptionLimit(methods=("stream",), for_all=("auto", "none")),
    "congestion": OptionLimit(methods=("stream",), for_all=(AUTO, NONE)),
}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse values that no pair of hosts could honour. ``options`` are those of transfer or of verify.

    Raises Refusal.
    """
    for check in _CHECKS:
        check(options)


def find_problems(options: Mapping[str, Any]) -> list[str]:
    """Return all that check_options refuses, where it raises the first."""
    found = []
    for check in _CHECKS:
        try:
            check(options)
        except Refusal as refusal:
            found.append(str(refusal))
    return found


def limiting_options(options: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the options that are set and that only some methods know, with these."""
    for option, limit in _LIMITS.items():
        if limit.methods and options[option] and options[option] not in limit.for_all:
            yield option, limit.methods


def _check_paths(options: Mapping[str, Any]) -> None:
    for option in ("src", "dest"):
        check_path(option, options[option])
    for path in options.get("link_dest") or ():
        check_path("link_dest", path)
    for path in options.get("link_dest_exclude") or ():
        try:
            components(unescape(path))
        except ValueError as error:
            raise Refusal(f"link_dest_exclude: {error}") from error


def _check_numbers(options: Mapping[str, Any]) -> None:
    for option, (low, high, *_methods) in _LIMITS.items():
        value = options.get(option)
        if isinstance(value, int) and not low <= value <= high:
            bounds = f"{low} or more" if high == _ANY else f"a number from {low} to {high}"
            raise Refusal(f"{option} is {value}: give {bounds}")


def _check_streams(options: Mapping[str, Any]) -> None:
    streams = options.get("streams", "auto")
    if streams != "auto" and not (streams.isdigit() and 1 <= int(streams) <= _STREAMS_ALLOWED):
        raise Refusal(f"streams is {streams}: give auto or a number from 1 to {_STREAMS_ALLOWED}")


def _check_congestion(options: Mapping[str, Any]) -> None:
    try:
        parse_congestion(options.get("congestion", AUTO))
    except ValueError as error:
        raise Refusal(f"congestion: {error}") from error


def _check_daemon(options: Mapping[str, Any]) -> None:
    for option in ("rsyncd_user", "rsyncd_password"):
        if options.get(option) and not options["rsyncd_module"]:
            raise Refusal(
                f"{option} is set, but no rsyncd_module. Without a module a daemon is started for this transfer, with "
                f"a secret of its own: name the module, or leave {option} out"
            )


def _check_trust(options: Mapping[str, Any]) -> None:
    refuse_trusting_method(options.get("method", "auto"), options.get("trust", FULL), bool(options.get("link_dest")))
    parse_floor(options.get("rsync_floor"))


def _check_rules(options: Mapping[str, Any]) -> None:
    refuse_old_prefixes(options)
    try:
        Filters.parse(filter_rules(options))
    except FilterError as error:
        raise Refusal(f"{error} (options filter, include, exclude)") from error


def _check_tags(options: Mapping[str, Any]) -> None:
    try:
        DirectoryTags.parse(options.get("exclude_if_present") or (), caches=False)
    except ValueError as error:
        raise Refusal(f"exclude_if_present: {error}") from error


def _check_rsync_opts(options: Mapping[str, Any]) -> None:
    try:
        check_user_options(options.get("rsync_opts") or [], compared=options.get("verify") != "none")
    except TransferFailed as error:
        raise Refusal(str(error)) from error


def _check_bwlimit(options: Mapping[str, Any]) -> None:
    try:
        parse_rate(options.get("bwlimit", "0"))
    except ValueError as error:
        raise Refusal(f"bwlimit: {error}") from error


def _refuse_undecodable(options: Mapping[str, Any]) -> None:
    """Refuse text that is not UTF-8, as a template may make it: Ansible can hand it to no host."""
    for option, value in options.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and any("\ud800" <= char <= "\udfff" for char in text):
                raise Refusal(
                    f"{option} is {text!r}, which is not UTF-8, so Ansible cannot hand it to a host. Name a directory "
                    "above it, whose contents may have any names, and pick with filter, where ? stands for one byte"
                )


def check_path(option: str, path: str) -> None:
    """Refuse a path that is not absolute, or that no file system can hold."""
    if not path.startswith("/"):
        raise Refusal(f"{option} is {path!r}, {_not_absolute(option, path)}")
    if "\0" in path:
        raise Refusal(f"{option} contains a NUL character, which no path can")


def _not_absolute(option: str, path: str) -> str:
    """Return what is wrong with a path that is not absolute, with advice if it is in one of rsync's forms."""
    host = {"src": "src_host", "dest": "dest_host"}.get(option, "dest_host")
    if re.match(r"rsync://|[^/]*::", path):
        return (
            f"which names a module of an rsync daemon. Give the path on the host alone, the host as {host}, and the "
            "module as rsyncd_module, with method: rsyncd"
        )
    if re.match(r"[^/]+:", path):
        return f"which names a host, as rsync does. Give the path alone, and the host, by its inventory name, as {host}"
    if path.startswith("~"):
        return "and no shell is there to replace the ~: give the absolute path"
    return (
        "a relative path. It would mean another directory depending on how the host is reached: give the absolute path"
    )


def wanted_ports(options: Mapping[str, Any]) -> list[int]:
    """Return the ports to listen at, in the order to try; none lets the host choose. Raises Refusal."""
    if options.get("port_range"):
        try:
            low, high = (int(part) for part in options["port_range"].split("-"))
        except ValueError:
            low = high = 0
        if not 0 < low <= high < 65536:
            raise Refusal(f"port_range is {options['port_range']!r}: write two ports, such as 50000-50100")
        return list(range(low, high + 1))
    return [options["port"]] if options.get("port") else []


_CHECKS: tuple[Callable[[Mapping[str, Any]], object], ...] = (
    _refuse_undecodable,
    _check_paths,
    lambda options: check_owner_map(options.get("owner_map")),
    _check_numbers,
    _check_streams,
    _check_congestion,
    _check_daemon,
    _check_trust,
    _check_rules,
    _check_tags,
    _check_rsync_opts,
    _check_bwlimit,
    wanted_ports,
)
