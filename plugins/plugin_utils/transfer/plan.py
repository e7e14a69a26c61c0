# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From options and two probes to everything that is to happen. Pure: the same input gives the same plan."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Peer, Serve
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.settings import (
    Compression,
    DaemonModule,
    OptionSettings,
    Settings,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh.sshd_config import authorized_keys_path
from ansible_collections.longhaul.fleet.plugins.module_utils._model.rate import parse_rate
from ansible_collections.longhaul.fleet.plugins.module_utils._ssh.ciphers import choose_ciphers, source_offer

from ..common.refusal import Refusal
from ..hosts.endpoint import Endpoint
from ..hosts.trust import FULL, NONE, refuse_trusting_method
from .link_memory import UNKNOWN, KnownLine
from .methods import METHODS, SSH, Choice, choose_method, no_stream, obstacle
from .options import limiting_options, wanted_ports
from .owners import Table, owner_table, refuse_lost_map
from .roots import (
    Roots,
    link_warnings,
    refuse_deleting_root,
    refuse_empty_source,
    refuse_nesting,
    refuse_unusable,
    resolve_roots,
)
from .rsync_trust import parse_floor, refuse_untrusted_rsync, rsync_warnings
from .rules import filter_rules, refuse_misread_rules

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import TreeSize

    Ends = Mapping[str, Endpoint]  # by side, the source first
else:
    Ends = Mapping  # Python 3.8, with which some tests run this, has no such types at run time
PRESERVE = ("owner", "group", "permissions", "times", "acls", "xattrs", "hardlinks", "devices", "sparse")
_SPECIALS = "specials"  # FIFOs and sockets; never the user's own word, since devices has them, too
_LOST = {"devices": "device nodes"}  # what a warning calls it, where that is less than the word stands for
CHANGES_LISTED = 200
_OPEN_SNAPSHOTS = "the source could write to all that its daemon must reach, and so change the older copies"
_TRIAL = 5.0  # seconds in which a method that ``auto`` chose must reach its port, or another takes its place
_SLOW_LINK = 20 * 2**20  # bytes a second: below it compression saves more time than it costs
STREAMS_UNASKED = 4  # initial maximum by default
ONE_STREAM = ("scp", "sftp")
STREAMS_TRIED = 16  # at most, where more carry more
_READ_AT_ONCE = 32 * 2**20  # bytes of files that are compared by contents in a moment, on most disks


@dataclass(frozen=True)
class Plan:
    """One transfer, decided: which side drives, what both ends are told, and what the user should know."""

    transfer_id: str
    choice: Choice
    trust: str  # between the two hosts: "full" or "none"
    driver: str  # the side that connects: "source" or "dest"
    roots: Roots
    settings: Settings  # the same for both ends
    serve: Serve  # for the serving end
    peer: Peer  # for the driving end; what the serving end publishes comes on top
    started_ns: int  # by the source's clock
    both_root: bool  # or neither
    short: bool  # comparing both trees takes a moment only: the source was counted in the moment that its probe has
    relabel: str = ""  # what to run on the destination once files were made there; empty: nothing
    line_rate: int = 0  # bytes a second of the slower network interface, 0: not known
    warnings: tuple[str, ...] = field(default=())

    @property
    def sides(self) -> tuple[str, str]:
        """The side that connects, and the one that listens."""
        return (self.driver, "dest" if self.driver == "source" else "source")

    @property
    def encrypted(self) -> bool:
        """Whether the data is encrypted on its way."""
        return self.choice.method in SSH or (self.choice.method == "stream" and bool(self.settings["encrypt"]))


def transfer_id(src_host: str, src: str, dest_host: str, dest: str) -> str:
    """Name a transfer: the same whenever the same tree goes to the same place."""
    return hashlib.sha256(json.dumps([src_host, src, dest_host, dest]).encode()).hexdigest()[:16]


def first_look(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the methods whose programs the first probe looks at: the one that is named, or that ``auto`` would like.

    Looking at all of them costs more than a small transfer. Where ``needs_all`` finds that ``auto`` must look further,
    the hosts are probed again.
    """
    named = () if options["method"] == "auto" else (options["method"],)
    if options["delta"] == "rsync":  # which only stream knows, and for which it needs rsync
        return (*(named or ("stream",)), "rsync")
    if named:
        return named
    if options["trust"] == NONE:
        return ("stream",)
    return METHODS if "stream" in _not_knowing(options) else ("stream",)


def needs_all(options: Mapping[str, Any], source: Endpoint, dest: Endpoint) -> bool:
    """Whether the plan must know the programs of all methods, where the probe looked at those of ``first_look``."""
    if first_look(options) != ("stream",) or options["method"] == "stream" or options["trust"] == NONE:
        return False
    return "stream" in _ruled_out(options, source, dest) or bool(no_stream(options["encryption"], source, dest))


def make_plan(
    options: Mapping[str, Any],
    source: Endpoint,
    dest: Endpoint,
    check: bool,
    pull: bool = False,
    avoid: Mapping[str, str] | None = None,
    line: KnownLine = UNKNOWN,
) -> Plan:
    """Decide the whole transfer.

    ``options`` are the module's, with defaults; ``pull`` makes the destination connect where ``connect`` is ``auto``,
    and where ``method`` is, it takes none of ``avoid`` (method and reason). ``line`` is what is known of the line
    between the hosts. Raises Refusal before anything is done on a host.
    """
    names, size = (source.name, dest.name), source.probe["path"].get("measured")
    roots = resolve_roots(options["src"], options["dest"], source.probe["path"], dest.probe["path"], names)
    if dest.probe["not_followed"]:
        raise Refusal(f"link_dest on {dest.name}: {dest.probe['not_followed']}")
    rules = filter_rules(options)
    refuse_misread_rules(options["src"], options["dest"], roots, rules)
    refuse_nesting(source, dest, roots, options["delete"])
    keeps_holes = options["preserve"] is None or "sparse" in options["preserve"]
    refuse_unusable(source, dest, roots, _is_partial(options, dest), keeps_holes)
    if options["delete"] and roots.only is None:
        refuse_deleting_root(roots.dest, options["max_delete"])
    if options["delete"] and not rules:
        refuse_empty_source(source, dest, roots, options["max_delete"])
    unfit = {**_ruled_out(options, source, dest), **(avoid or {})}
    driver = _driver(options, source, dest, pull, unfit)
    driving, serving = (source, dest) if driver == "source" else (dest, source)
    choice = choose_method(options["method"], options["encryption"], driving, serving, unfit, options["trust"])
    refuse_trusting_method(choice.method, options["trust"], bool(options["link_dest"]))
    _refuse_options_of_other_methods(options, choice.method)
    _refuse_open_snapshots(options, choice.method, serving)
    preserve, lost = choose_preserve(options["preserve"], choice.method, source, dest)
    _refuse_unsafe_inplace(options, preserve)
    owner_map, no_owners = _owner_map(options, source, dest, preserve)
    streams = choose_streams(options["streams"], choice.method, source, dest)
    if (choice.method, options["trust"], driver) == ("rsync", NONE, "dest"):
        streams = 1  # lists of names would lie outside the source, to which rsync is confined
    seeks = (options["streams"], choice.method) == ("auto", "stream")
    identity = transfer_id(source.name, options["src"], dest.name, options["dest"])
    settings: Settings = {
        **_as_written(options),
        "id": identity,
        "method": choice.method,
        "trust": options["trust"] or FULL,
        "check": check,
        "rules": rules,
        "only": roots.only,
        "suspects": [],
        "compress": choose_compression(options, choice.method, source, dest),
        "bwlimit": parse_rate(options["bwlimit"]),
        "streams": streams,
        "streams_max": STREAMS_TRIED if seeks else streams,
        "streams_first": max(streams, min(line.streams, STREAMS_TRIED)) if seeks else streams,
        "congestion_first": line.congestion,
        "encrypt": options["encryption"] != "none",
        "preserve": list(preserve),
        "owner_map": owner_map,
        "ciphers": _ciphers(options, choice.method, driving, serving),
        "changes_max": CHANGES_LISTED,
        "rsync": {end.side: list(end.rsync_version) for end in (source, dest)},
        "tar": {end.side: end.programs.get("tar", {}).get("flavour") for end in (source, dest)},
        "nc": {end.side: end.programs.get("nc", {}).get("dialect") or "builtin" for end in (source, dest)},
        "scp_legacy_flag": "scp" in driving.programs and driving.programs["scp"]["legacy_flag"],
        "sftp": {"buffer": options["sftp_buffer_size"], "requests": options["sftp_requests"]},
        "time_units": {},
        "mounts": [],
        "rsyncd_module": _daemon_module(options, serving, roots) if options["rsyncd_module"] else None,
    }
    floor = parse_floor(options["rsync_floor"])
    if choice.method == "rsync":
        refuse_untrusted_rsync(settings, floor, driving, serving)
    return Plan(
        transfer_id=identity,
        choice=choice,
        trust=options["trust"],
        driver=driver,
        roots=roots,
        settings=settings,
        serve=_serve(options, choice.method, driving, serving),
        peer={
            "address": serving.address,
            "timeout": options["timeout"],
            "host": serving.name,
            "patience": _TRIAL if choice.tentative else None,
        },
        started_ns=source.probe["now_ns"],
        both_root=source.is_root == dest.is_root,
        short=_is_short(options["verify"], size),
        relabel=_relabel(dest, roots),
        line_rate=min((rate for rate in _line_rates(source, dest) if rate > 0), default=0),
        warnings=(
            *choice.warnings,
            *lost,
            *no_owners,
            *link_warnings(options, rules, dest, roots),
            *_one_stream(options["streams"], choice.method, streams),
            *(rsync_warnings(options["trust"], floor, source, dest) if "rsync" in choice.method else ()),
            *_open_module(options, choice.method, driving, serving),
        ),
    )


def _is_short(verify: str, size: TreeSize | None) -> bool:
    """Return True if both trees can be compared in a moment. Holes are read as any other content."""
    if size is None or not size["complete"]:
        return False
    return verify != "checksum" or size["apparent"] <= _READ_AT_ONCE


def _as_written(options: Mapping[str, Any]) -> OptionSettings:
    """Return the settings that are options of the same name."""
    kinds = OptionSettings.__annotations__
    found = {
        name: [] if options[name] is None and kind == "list[str]" else options[name] for name, kind in kinds.items()
    }
    return cast(OptionSettings, found)


def _owner_map(
    options: Mapping[str, Any], source: Endpoint, dest: Endpoint, preserve: tuple[str, ...]
) -> tuple[Table, list[str]]:
    """Return ``owner_map`` in numbers, by what both hosts looked up, and warnings. Raises Refusal."""
    refuse_lost_map(options.get("owner_map"), preserve)
    known = {end.side: end.probe["owners"] for end in (source, dest)}
    return owner_table(options.get("owner_map"), known, {end.side: end.name for end in (source, dest)})


def _relabel(dest: Endpoint, roots: Roots) -> str:
    """Return the advice for a destination with SELinux: what is staged gets the label of the root's folder.

    Not tried on a system with SELinux; the policy's own program decides what the labels must be.
    """
    if not dest.probe["selinux"]:
        return ""
    return (
        f"SELinux is enabled on {dest.name}, and new files have the label of {roots.dest} there, whatever the policy "
        f"says of their own paths: run restorecon -R {shlex.quote(roots.dest)} on that host before services use them"
    )


def choose_streams(wanted: str, method: str, source: Endpoint, dest: Endpoint) -> int:
    """Return the number of streams to begin with: as told, else one; for ``stream`` the cores of the smaller host."""
    if method in ONE_STREAM:
        return 1
    if wanted != "auto":
        return int(wanted)
    if method != "stream":
        return 1
    return max(1, min(STREAMS_UNASKED, int(source.probe["cores"]), int(dest.probe["cores"])))


def _one_stream(wanted: str, method: str, used: int) -> tuple[str, ...]:
    if wanted in ("auto", str(used)) or used != 1:
        return ()
    if method not in ONE_STREAM:
        return (
            f"streams is {wanted}, but with trust: none a source that is connected to sends over one with method "
            f"{method}: use method stream, or leave streams out",
        )
    return (f"streams is {wanted}, but method {method} has one: use another method, or leave streams out",)


def _is_partial(options: Mapping[str, Any], dest: Endpoint) -> bool:
    """Return whether less than the source may be written: something is left out, or linked to an older copy."""
    leaves_out = filter_rules(options) or options["exclude_if_present"] or options["exclude_caches"]
    return bool(leaves_out or set(options["link_dest"] or ()) - set(dest.probe["no_folders"]))


def _open_module(options: Mapping[str, Any], method: str, driving: Endpoint, serving: Endpoint) -> tuple[str, ...]:
    """Warn where a module that an administrator configured holds the older copies beside the new one."""
    if (method, serving.side) != ("rsyncd", "dest") or not options["link_dest"]:
        return ()
    return (
        f"link_dest is inside the module {options['rsyncd_module']} on {serving.name}: {driving.name}, which may write "
        "to it, could change the older copies, too",
    )


def _driver(options: Mapping[str, Any], source: Endpoint, dest: Endpoint, pull: bool, unfit: Mapping[str, str]) -> str:
    """Return which side connects: as told, else the source, unless only the other way has what a method needs."""
    if options["connect"] != "auto":
        return "source" if options["connect"] == "push" else "dest"
    if pull:
        return "dest"
    if _usable(options, source, dest, unfit) or not _usable(options, dest, source, unfit):
        return "source"
    return "dest"


def _usable(options: Mapping[str, Any], driving: Endpoint, serving: Endpoint, unfit: Mapping[str, str]) -> bool:
    if options["method"] != "auto":
        return not obstacle(options["method"], driving, serving)
    try:
        choose_method("auto", options["encryption"], driving, serving, unfit, options["trust"])
    except Refusal:
        return False
    return True


def _ruled_out(options: Mapping[str, Any], source: Endpoint, dest: Endpoint) -> dict[str, str]:
    """Return the methods that ``auto`` excludes, and why: they do not support an option, or not its value."""
    found = _not_knowing(options)
    wanted = options["compress"]
    if wanted not in ("auto", "none") and wanted not in _stream_algorithms(source, dest):
        found["stream"] = f"it does not offer {wanted} here"
    return found


def _not_knowing(options: Mapping[str, Any]) -> dict[str, str]:
    """Return which methods do not know an option that is set."""
    found = {}
    for option, methods in limiting_options(options):
        found.update({method: f"it does not know {option}" for method in METHODS if method not in methods})
    if options["link_dest"] and not options["rsyncd_module"]:
        found.setdefault("rsyncd", _OPEN_SNAPSHOTS)
    return found


def _refuse_options_of_other_methods(options: Mapping[str, Any], method: str) -> None:
    for option, methods in limiting_options(options):
        if method not in methods:
            raise Refusal(
                f"{option} is set, and method {method} does not know it: name method {' or '.join(methods)}, "
                f"or leave {option} out"
            )


def _refuse_open_snapshots(options: Mapping[str, Any], method: str, serving: Endpoint) -> None:
    """Refuse a daemon of ours at a destination with older copies."""
    if (method, serving.side) == ("rsyncd", "dest") and options["link_dest"] and not options["rsyncd_module"]:
        raise Refusal(f"link_dest is set, and method rsyncd cannot be used: {_OPEN_SNAPSHOTS}. Name method stream")


def _refuse_unsafe_inplace(options: Mapping[str, Any], preserve: tuple[str, ...]) -> None:
    """Refuse to write into files where that could go unnoticed, or change what others hold."""
    if options["inplace"] and "times" not in preserve:
        raise Refusal(
            "inplace is set, and preserve is without times: a file that was written in part could not be told from a "
            "complete one. Add times to preserve, or leave inplace out"
        )
    if options["inplace"] and options["link_dest"]:
        raise Refusal(
            "inplace and link_dest are set: a file that is linked to an older copy would be changed in both. Leave one "
            "of them out"
        )


def choose_preserve(
    wanted: list[str] | None, method: str, source: Endpoint, dest: Endpoint
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is preserved, and a warning for what the user or a program cannot preserve.

    Raises Refusal if something that was asked for by name cannot be kept.
    """
    cannot: dict[str, str] = {}
    if not dest.is_root:
        who = f"{dest.probe['user']} on {dest.name} is not root"
        cannot.update(owner=who, devices=who)
    if method in ("rsync", "rsyncd"):
        for host in (source, dest):
            for name in ("acls", "xattrs"):
                if not host.programs["rsync"][name]:
                    cannot[name] = f"the rsync on {host.name} was built without {name}"
    for name in wanted or ():
        if name in cannot:
            raise Refusal(f"preserve names {name}, but {cannot[name]}: use become, or leave {name} out")
    if wanted is not None:
        return tuple(name for name in PRESERVE if name in wanted), ()
    lost = []
    for why in dict.fromkeys(cannot.values()):
        names = [_LOST.get(name, name) for name in PRESERVE if cannot.get(name) == why]
        lost.append(f"{' and '.join(names)} cannot be kept: {why}")
    if not dest.is_root:
        lost.append(f"of groups only those are kept that {dest.probe['user']} on {dest.name} is a member of")
    kept = tuple(name for name in PRESERVE if name not in cannot)
    return (kept if "devices" in kept else (*kept, _SPECIALS)), tuple(lost)


def choose_compression(options: Mapping[str, Any], method: str, source: Endpoint, dest: Endpoint) -> Compression:
    """Return the algorithm (None: no compression) and level.

    ``auto`` compresses only where the line is known to be slow: by bwlimit, or by the speed of an interface.
    """
    wanted = options["compress"]
    if method == "stream" and wanted == "auto":  # the engine measures whether it pays
        best = _stream_algorithms(source, dest)[-1]
        return {"algorithm": best, "level": options["compress_level"], "auto": True}
    if wanted == "none" or (wanted == "auto" and not _line_is_slow(options, source, dest)):
        return {"algorithm": None, "level": None}
    if method in ("rsync", "rsyncd"):
        both = [name for name in source.programs["rsync"]["compress"] if name in dest.programs["rsync"]["compress"]]
    elif method == "stream":
        both = _stream_algorithms(source, dest)
    else:
        both = ["zlib"] if method == "tar_nc" else []
    if wanted == "auto":
        wanted = next((name for name in ("zstd", "lz4", "zlibx", "zlib") if name in both), None)
    elif wanted not in both:
        raise Refusal(
            f"compress is {wanted}, which method {method} does not offer on both hosts ({', '.join(both) or 'nothing'} "
            "it does): use auto, none or one of these"
        )
    return {"algorithm": wanted, "level": options["compress_level"]}


def _stream_algorithms(source: Endpoint, dest: Endpoint) -> list[str]:
    """Return what the Pythons of both hosts can compress with, the best last."""
    return ["zlib", "zstd"] if source.probe["zstd"] and dest.probe["zstd"] else ["zlib"]


def _line_is_slow(options: Mapping[str, Any], source: Endpoint, dest: Endpoint) -> bool:
    return any(0 < rate < _SLOW_LINK for rate in (parse_rate(options["bwlimit"]), *_line_rates(source, dest)))


def _line_rates(source: Endpoint, dest: Endpoint) -> list[int]:
    """Return the speeds of both hosts' network interfaces in bytes a second; 0 or less: not known."""
    return [host.probe["link_mbit"] * 125_000 for host in (source, dest)]


def _ciphers(options: Mapping[str, Any], method: str, driving: Endpoint, serving: Endpoint) -> str:
    if method not in SSH:
        return ""
    client = driving.programs["ssh"]
    named = options["ssh_ciphers"] or []
    offer = source_offer(client["configured"] or client["ciphers"], client["ciphers"], named)
    aes = driving.probe["aes"] and serving.probe["aes"]
    try:
        return choose_ciphers(offer, serving.probe["sshd"]["config"].get("ciphers"), aes, named)[0]
    except TransferFailed as error:
        raise Refusal(str(error)) from error


def _daemon_module(options: Mapping[str, Any], serving: Endpoint, roots: Roots) -> DaemonModule:
    """Return where in the daemon's module the serving root lies."""
    name = options["rsyncd_module"]
    module = serving.probe["rsyncd_module"]
    if not module or "path" not in module:
        raise Refusal(
            f"{serving.name} has no rsync daemon module {name!r} with a path in its configuration: name one that is "
            "there, or leave rsyncd_module out to have a daemon started for this transfer"
        )
    root = roots.dest if serving.side == "dest" else roots.source
    path = os.path.normpath(module["path"])
    if root != path and not root.startswith(path.rstrip("/") + "/"):
        raise Refusal(
            f"{root} on {serving.name} is not inside {path}, the path of module {name!r}: the daemon cannot reach it. "
            "Use a path inside it, or another module"
        )
    return {
        "name": name,
        "user": options["rsyncd_user"],
        "port": options["port"] or 873,
        "subpath": os.path.relpath(root, path) if root != path else "",
        "options": dict(module),
    }


def _serve(options: Mapping[str, Any], method: str, driving: Endpoint, serving: Endpoint) -> Serve:
    serve: Serve = {
        "address": serving.address,
        "allow": list(dict.fromkeys([driving.address, *own_addresses(driving, serving)])),
        "ports": wanted_ports(options),
    }
    if method in SSH:
        serve.update(_ssh_server(options, serving))
    return serve


def own_addresses(driving: Endpoint, serving: Endpoint) -> list[str]:
    """Return the addresses from which a host may connect, by its own word.

    Loopback is left out unless both are one machine, or a tunnel ends there: all users of the serving host connect from
    it.
    """
    found = driving.probe["addresses"]
    if driving.probe["machine"] == serving.probe["machine"] or _is_loopback(serving.address):
        return found
    return [address for address in found if not _is_loopback(address)]


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return address == "localhost"


def _ssh_server(options: Mapping[str, Any], serving: Endpoint) -> Serve:
    """Choose between the host's own sshd and one for this transfer alone.

    The host's own needs no open port and is the default. A private one takes its place where port_range asks for it,
    where no sshd answers, or where its configuration would turn the one-time key away.
    """
    sshd = serving.probe["sshd"]
    port = options["port"] or serving.ssh_port
    config, user = sshd["config"], serving.probe["user"]
    keys = authorized_keys_path(config.get("authorizedkeysfile", []), user, sshd["home"], serving.probe["uid"])
    turned_away = (
        keys is None
        or config.get("pubkeyauthentication") == "no"
        or (serving.is_root and config.get("permitrootlogin") == "no")
    )
    if keys is not None and port in sshd["listening"] and not options["port_range"] and not turned_away:
        return {"ssh": "system", "port": port, "authorized_keys": keys}
    if options["port"] and options["port"] not in sshd["listening"] and not options["port_range"]:
        raise Refusal(
            f"nothing that speaks ssh answers at port {port} on {serving.name}: correct port, or leave it out; with "
            "port_range instead an ssh server is started for this transfer"
        )
    if "sshd" not in serving.programs:
        raise Refusal(
            f"nothing that speaks ssh answers at port {port} on {serving.name}, and there is no sshd to start: install "
            "an ssh server, name its port (port, or ansible_port of that host), or use another method"
        )
    return {"ssh": "private", "ports": wanted_ports(options) if options["port_range"] else []}
