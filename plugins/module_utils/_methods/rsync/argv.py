# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argv of one run of rsync, decided from the plan alone.

No path of a user ever stands where the far end's shell or rsync's own ``host:path`` reading could touch it: the far
root is always ``./`` (its serving end changes into it), the other far paths are tokens below ``/longhaul/`` that the
serving end replaces (``server_command``), and names are sent by ``--files-from``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..._core.context import staging_name
from ..._core.errors import TransferFailed
from ..._core.settings import Settings
from ..._model.paths import unescape
from .user_options import check_user_options, of_later_pass

TOKENS = "/longhaul/"  # what stands for the serving end's own folders in argv
FAR_TMP, FAR_PARTIAL, FAR_LINK, FAR_LIST = (TOKENS + name for name in ("tmp", "partial", "link", "list"))

OLDEST = (3, 1, 0)  # progress2, --stats that counts deletions, times in nanoseconds: September 2013
_OF_FILE_SYSTEMS = ("system.*", "btrfs.*")  # extended attributes
NEEDS = {  # the first version of rsync that has it, at both ends (rsync's NEWS)
    "nanoseconds": (3, 1, 3),  # --modify-window=-1: compare them; before, times equal to the second are equal
    "sparse in place": (3, 1, 3),  # --sparse with --inplace
    "choose compression": (3, 2, 0),  # --compress-choice, zstd and lz4
}

_SECOND = 10**9  # nanoseconds


@dataclass(frozen=True)
class Far:
    """How the peer is named, and in what terms its folders are."""

    address: str  # "peer:./" over a remote shell, "rsync://user@host:port/module/" of a daemon
    shell: str = ""  # for --rsh
    password_on_stdin: bool = False
    daemon: bool = False
    base: str = TOKENS.rstrip("/")  # of tmp and partial, as the far end reads them
    link_dest: tuple[str, ...] | None = None  # as the far end reads them; None: tokens


@dataclass(frozen=True)
class RsyncRun:
    """Options of one run among those that make a transfer."""

    dry: bool = False
    delete: bool = False
    max_delete: int | None = None
    again: bool = False  # what it sees was sent by runs before it
    settled: bool = False  # and all of that went well: without times nothing else would keep it from being sent again
    files_from: str = ""  # NUL-separated names in a file here; behind a colon: in one of the serving end's own
    directories_only: bool = False  # of files_from
    shares: int = 1  # how many runs share the bandwidth at the same time
    links: bool = True  # to what link_dest names
    exclude_from: str = ""  # NUL-separated patterns in a file here, of what this run leaves to a later one
    item_prefix: str = ""
    left_out: tuple[str, ...] = ()  # paths at which rsync would wait for ever


def versions(settings: Settings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the versions at the source and at the destination; raises where one is missing or too old."""
    found = settings.get("rsync") or {}
    both = []
    for side in ("source", "dest"):
        version = tuple(found.get(side) or ())
        if not version:
            raise TransferFailed(
                f"rsync was not found on the {_name(side)}: install it there, or choose another method"
            )
        if version < OLDEST:
            raise TransferFailed(
                f"rsync on the {_name(side)} is {_dotted(version)}; {_dotted(OLDEST)} or newer is needed to count what "
                "was done. Install a newer rsync there, or choose another method"
            )
        both.append(version)
    return both[0], both[1]


def has(settings: Settings, feature: str) -> bool:
    """Return whether both sides have a feature of ``NEEDS``."""
    return min(versions(settings)) >= NEEDS[feature]


def build_argv(settings: Settings, side: str, root: bytes, far: Far, run: RsyncRun) -> list[str]:
    """Return the argv of one rsync on the driving end, whose ``side`` and ``root`` these are.

    Raises TransferFailed if the plan cannot be said to these versions of rsync.
    """
    versions(settings)
    argv = ["rsync", "--recursive" if not run.files_from else "--dirs", "--links"]
    argv += preserve_options(settings["preserve"])
    argv += owner_options(settings, bool(run.files_from))
    argv += ["--one-file-system"] if settings["one_file_system"] else []
    argv += window_options(settings)
    argv += ["--checksum"] if compares_contents(settings) else []
    argv += ["--size-only"] if run.settled and not settings["checksum"] and "times" not in settings["preserve"] else []
    argv += ["--whole-file"] if settings.get("delta") == "none" else []
    argv += _in_place_options(settings)
    argv += compress_options(settings)
    argv += bandwidth_options(settings["bwlimit"], run.shares)
    argv += timeout_options(settings["timeout"], far.daemon)
    argv += _staging_options(settings, side, root, far, run)
    argv += _link_options(settings["link_dest"], side, far) if run.links else []
    argv += ["--delete-after", "--force"] if run.delete else []
    argv += [f"--max-delete={run.max_delete}"] if run.delete and run.max_delete is not None else []
    argv += ["--dry-run"] if run.dry else []
    # Neither --protect-args (its arguments bypass the serving end's check) nor the user's environment decides:
    argv += ["--no-protect-args", "--no-human-readable", "--no-motd"]
    argv += ["--stats", "--info=progress2", f"--out-format={run.item_prefix}%i %l %n"]
    # The root's name asks for its contents, too: its files are left to the lists.
    argv += ["--filter=-! */"] if run.directories_only else []
    # A source on the serving end is not to send more than what was asked for.
    argv += only_options(settings) if run.files_from and side == "dest" else []
    argv += [f"--filter=- /{pattern_of(path)}" for path in run.left_out]
    argv += [f"--filter={rule}" for rule in withheld_rules(settings, side)]
    argv += ["--from0", f"--exclude-from={run.exclude_from}"] if run.exclude_from else []
    argv += filter_options(settings)
    if run.files_from:
        argv += ["--from0", f"--files-from={run.files_from}", "--no-implied-dirs"]
        # The last run sets the times of directories: what shards write into them would change them again.
        argv += [] if run.directories_only else ["--omit-dir-times"]
    more = check_user_options(settings["rsync_opts"])
    argv += of_later_pass(more) if run.again else more
    argv += [f"--rsh={far.shell}"] if far.shell else []
    argv += ["--password-file=-"] if far.password_on_stdin else []
    near = os.path.join(os.fsdecode(root), "")
    return argv + (["--", near, far.address] if side == "source" else ["--", far.address, near])


def preserve_options(preserve: list[str]) -> list[str]:
    """Name what is preserved in rsync's words."""
    words = {
        "owner": "--owner",
        "group": "--group",
        "permissions": "--perms",
        "times": "--times",
        "acls": "--acls",
        "xattrs": "--xattrs",
        "hardlinks": "--hard-links",
        "devices": "-D",
        "specials": "--specials",
        "sparse": "--sparse",
    }
    return [option for word, option in words.items() if word in preserve]


def owner_options(settings: Settings, is_list: bool) -> list[str]:
    """Return what owners become, in numbers alone: the plan knows what the hosts' names mean.

    With --numeric-ids rsync maps the ids in ACLs only where it does not list the tree while it sends it.
    """
    maps = owner_maps(settings)
    options = ["--numeric-ids"] if keeps_numbers(settings) else []
    for option, word in (("--usermap", "owner"), ("--groupmap", "group")):
        if option in maps:
            options.append(f"{option}={maps[option]}")
            options += [] if word in settings["preserve"] else [f"--no-{word}"]  # which a map would imply
    if "acls" in settings["preserve"] and not is_list and maps:
        options.append("--no-inc-recursive")
    return options


def keeps_numbers(settings: Settings) -> bool:
    """Return whether rsync is to look up no names."""
    return bool(settings["numeric_ids"] or settings.get("owner_map"))


def owner_maps(settings: Settings) -> dict[str, str]:
    """Return the plan's map of owners as rsync writes it, by option; what maps nothing is left out."""
    table = settings.get("owner_map") or {}
    return {
        option: ",".join(f"{old}:{new}" for old, new in table[kind])
        for kind, option in (("users", "--usermap"), ("groups", "--groupmap"))
        if table.get(kind)
    }


def compress_options(settings: Settings) -> list[str]:
    """Name the compression; before 3.2.0 there was only zlib, and no way to name it."""
    algorithm, level = settings["compress"].get("algorithm"), settings["compress"].get("level")
    if algorithm in (None, "none"):
        return []
    if has(settings, "choose compression"):
        options = ["--compress", f"--compress-choice={algorithm}"]
    elif algorithm == "zlib":
        options = ["--compress"]
    else:
        source, dest = versions(settings)
        raise TransferFailed(
            f"compression with {algorithm} needs rsync {_dotted(NEEDS['choose compression'])} at both ends; the source "
            f"has {_dotted(source)}, the destination {_dotted(dest)}. Choose compress: zlib or none"
        )
    return options + ([f"--compress-level={level}"] if level is not None else [])


def bandwidth_options(limit: int, shares: int) -> list[str]:
    """Divide the limit (bytes a second, 0: none) among the runs at work; rsync takes KiB, and 0 would mean no limit."""
    return [f"--bwlimit={max(1, limit // max(1, shares) // 1024)}"] if limit > 0 else []


def window_options(settings: Settings) -> list[str]:
    """Return how far times may be apart, in the seconds that rsync knows: one run compares all file systems alike."""
    coarsest = max(settings["time_units"].values(), default=1)
    if "times" not in settings["preserve"] or not has(settings, "nanoseconds"):
        return []
    if coarsest == 1:
        return ["--modify-window=-1"]
    return ["--modify-window=1"] if coarsest > _SECOND else []  # else those of one second are the same


def compares_contents(settings: Settings) -> bool:
    """Return whether sizes and times do not decide: as told, or where a backup's times are coarse."""
    return settings["checksum"] or bool(settings["link_dest"] and settings["time_units"])


def timeout_options(limit: int, daemon: bool) -> list[str]:
    """Half of the limit (seconds, 0: none) for silence on one connection: the other half is for a new connection."""
    if not limit:
        return []
    silence = max(1, (limit + 1) // 2)
    return [f"--timeout={silence}"] + ([f"--contimeout={min(30, silence)}"] if daemon else [])


def filter_options(settings: Settings) -> list[str]:
    """Return the filter rules in order; ours first: no folder of a transfer is sent, and this one's own stays."""
    own, others = "/" + staging_name(settings["id"]), staging_name("[0-9a-f]" * 16)
    mounts = [f"P /{pattern_of(os.fsdecode(unescape(point)))}" for point in settings["mounts"]]
    return [f"--filter={rule}" for rule in (f"P {own}", f"H {others}", *mounts, *settings["rules"])]


def withheld_rules(settings: Settings, side: str) -> tuple[str, ...]:
    """Return the rules for extended attributes that this side leaves out.

    These are what btrfs says of itself (``btrfs.compression``), which no other file system takes, and at a destination
    that does not trust the source what it believes of its own files. Where there is a rule, rsync no longer leaves out
    ``system.*`` by itself, nor at a receiver without root all but ``user.*``.

    Each rule is for one side alone (``s``, ``r``), so rsync tells the peer nothing of it, which before 3.2.0 took a
    rule for attributes for one for files (its NEWS).
    """
    if "xattrs" not in settings["preserve"]:
        return ()
    if side == "source":
        return tuple(f"-xs {names}" for names in _OF_FILE_SYSTEMS)
    of_file_systems = tuple(f"-xr {names}" for names in _OF_FILE_SYSTEMS)
    if settings["trust"] == "none":
        return ("+xr security.capability", "-xr security.*", "-xr trusted.*", *of_file_systems)
    return of_file_systems if os.geteuid() == 0 else ()


def only_options(settings: Settings) -> list[str]:
    """Return the filter rule that leaves out all but the one name that is transferred."""
    if settings["only"] is None:
        return []
    return [f"--filter=-! /{pattern_of(settings['only'])}"]


def pattern_of(name: str) -> str:
    """Return the pattern of a filter rule that matches this name alone."""
    if not any(letter in name for letter in "*?["):  # else a backslash stands for itself
        return name
    return "".join(f"\\{letter}" if letter in "*?[\\" else letter for letter in name)


def _staging_options(settings: Settings, side: str, root: bytes, far: Far, run: RsyncRun) -> list[str]:
    """One flat folder each; a partial of another file of the same name is a poor basis, but never a wrong one."""
    if not settings["partial"] or run.dry or settings.get("inplace"):  # a dry run finds no staging folder
        return []
    if side == "dest":
        base = os.path.join(os.fsdecode(root), staging_name(settings["id"]))
    else:
        base = far.base
    return [f"--temp-dir={base}/tmp", f"--partial-dir={base}/partial"]


def _in_place_options(settings: Settings) -> list[str]:
    """Let files be written where they are; what is there of one that was interrupted is its next basis."""
    if not settings.get("inplace"):
        return []
    if "sparse" in settings["preserve"] and not has(settings, "sparse in place"):
        source, dest = versions(settings)
        raise TransferFailed(
            f"inplace for sparse files needs rsync {_dotted(NEEDS['sparse in place'])} at both ends; the source has "
            f"{_dotted(source)}, the destination {_dotted(dest)}. Leave sparse out of preserve, or inplace out"
        )
    return ["--inplace"]


def _link_options(link_dest: list[str], side: str, far: Far) -> list[str]:
    if side == "source" and far.link_dest is None:
        return [f"--link-dest={FAR_LINK}/{number}" for number in range(len(link_dest))]
    return [f"--link-dest={path}" for path in (link_dest if side == "dest" else far.link_dest or ())]


def _name(side: str) -> str:
    return {"source": "source", "dest": "destination"}[side]


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
