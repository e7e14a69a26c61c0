# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which directory's contents arrive in which directory, and why some pairs are refused. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted, entries_text
from ansible_collections.longhaul.fleet.plugins.module_utils._model.filters import DEST, Filters

from ..common.paths import inside, within
from ..common.refusal import Refusal
from ..common.units import format_bytes
from ..hosts.endpoint import Endpoint

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.probe import PathFacts, TreeSize


@dataclass(frozen=True)
class Roots:
    """The contents of ``source`` arrive in ``dest``; only the name ``only`` where it is set (a single file)."""

    source: str
    dest: str
    target: PathFacts  # what the probe says of dest, or of the directory that it will be made in
    only: str | None = None


def child_name(src: str) -> str:
    """Return the name that ``src`` would have inside ``dest``; empty if its contents go there directly.

    A path that ends in ``/.`` or ``/..`` has no name of its own: it stands for its contents, as with rsync.
    """
    name = os.path.basename(src)
    return "" if name in (".", "..") else name


def resolve_roots(src: str, dest: str, source_path: PathFacts, dest_path: PathFacts, hosts: tuple[str, str]) -> Roots:
    """Return the roots for what the user wrote and what the probe found, by rsync's rule of the trailing slash.

    ``dest_path`` describes ``dest``, and as ``child`` the path inside it that has the name of ``src``. ``hosts`` are
    the names of source and destination.
    """
    kind, (src_host, dest_host) = source_path["type"], hosts
    _refuse_foreign_link("src", src_host, source_path)
    _refuse_foreign_link("dest", dest_host, dest_path)
    if dest_path.get("no_way"):
        raise Refusal(
            f"dest is {dest}, and there is no directory {dest_path['no_way']} on {dest_host}, so what '..' behind it "
            "means is not known. Name the destination without '..'"
        )
    if kind == "directory":
        target = dest_path["child"] if child_name(src) else dest_path
        _refuse_foreign_link("dest", dest_host, target)
        return Roots(source_path["real"], _directory(target, dest_host), target)
    if kind == "file" and not src.endswith("/"):
        return _file_roots(src, dest, source_path, dest_path, hosts)
    if kind == "file":
        raise Refusal(
            f"src is {src}, and the slash at its end asks for the contents of a directory, but on {src_host} it is a "
            "file. Leave the slash out"
        )
    if kind == "unreachable":
        raise Refusal(_unreachable("src", src, src_host, source_path))
    found = {
        "missing": "there is nothing",
        "dangling": f"there is a symbolic link to {source_path['real']}, where nothing is",
        "other": "there is neither a directory nor a regular file",
    }[kind]
    raise Refusal(
        f"src is {src}, but {found} on {src_host}. Check the path, and that its file system is mounted",
        source_missing=kind == "missing",
    )


def _refuse_foreign_link(option: str, host: str, found: PathFacts) -> None:
    if found["type"] == "foreign link":
        raise Refusal(f"{option} is {found['given']} on {host}, and {found.get('reason')}")


def _unreachable(option: str, path: str, host: str, found: PathFacts) -> str:
    return (
        f"{option} is {path}, and it cannot be looked at on {host}: {found.get('reason')}. Use become for that host, "
        "or fix the permissions of the folders above it"
    )


def _file_roots(src: str, dest: str, source_path: PathFacts, dest_path: PathFacts, hosts: tuple[str, str]) -> Roots:
    name = os.path.basename(src)
    folder = os.path.dirname(source_path["real"])
    if os.path.basename(source_path["real"]) != name:
        raise Refusal(
            f"src {src} is a symbolic link to the file {source_path['real']} on {hosts[0]}: name the file itself"
        )
    if dest_path["type"] == "directory" or dest.endswith("/"):
        return Roots(folder, _directory(dest_path, hosts[1]), dest_path, name)
    if os.path.basename(dest) == name:
        return Roots(folder, os.path.dirname(dest_path["real"]), dest_path, name)
    raise Refusal(
        f"src {src} is a file, and dest {dest} is no directory and ends in another name. A transfer does not rename: "
        f"give the directory with a trailing slash, or {os.path.join(os.path.dirname(dest), name)}"
    )


def _directory(path: PathFacts, host: str) -> str:
    kind = path["type"]
    if kind == "unreachable" and path["existing_is_directory"]:
        raise Refusal(_unreachable("dest", path["given"], host, path))
    if kind == "dangling":
        raise Refusal(
            f"{path['given']} on {host} is a symbolic link to {path['real']}, where nothing is: make that directory, "
            "or remove the link"
        )
    if kind in ("directory", "missing") and path["existing_is_directory"]:
        return str(path["real"])
    what = path["real"] if kind in ("file", "other") else path["existing"]
    raise Refusal(f"{what} on {host} is not a directory, so a tree cannot arrive at {path['given']}: change dest")


def refuse_nesting(source: Endpoint, dest: Endpoint, roots: Roots, delete: bool) -> None:
    """Refuse two roots that are one, or one inside the other, where both hosts are the same machine."""
    if source.probe["machine"] != dest.probe["machine"]:
        return
    if roots.source == roots.dest:
        raise Refusal(f"source and destination are the same directory, {roots.source}: there is nothing to move")
    if inside(roots.dest, roots.source) and roots.only is None:
        raise Refusal(
            f"the destination {roots.dest} lies inside the source {roots.source}: the copy would contain itself. "
            "Choose a destination outside of it"
        )
    if inside(roots.source, roots.dest) and delete:
        raise Refusal(
            f"the source {roots.source} lies inside the destination {roots.dest}, and delete would remove it there. "
            "Choose another destination, or leave delete out"
        )
    if roots.only is None:
        _refuse_bind_mount(source.probe["path"].get("device_path", ""), roots, delete)


def _refuse_bind_mount(source: str, roots: Roots, delete: bool) -> None:
    """Refuse two roots that are one folder under two names, or one inside the other.

    ``source`` is the path of the source on its device.
    """
    dest = roots.target.get("device_path", "")
    if not source or not dest or not (within(dest, source) or (inside(source, dest) and delete)):
        return
    raise Refusal(
        f"{roots.source} and {roots.dest} show the same folder, or one shows a part of the other: a bind mount gives "
        "it a second name (`findmnt` lists them). A copy would contain itself, or delete what it copies. Choose "
        "another destination, or name the folders by their paths without the bind mount"
    )


def refuse_deleting_root(dest: str, max_delete: int | None) -> None:
    """Refuse to delete all that a host's root folder has beside the source, unless a limit allows it."""
    if dest == "/" and max_delete is None:
        raise Refusal(
            "dest is / and delete is set, so all of the system that the source does not have would be deleted. An "
            "empty variable in front of a slash is the usual cause: correct dest. Where it is meant, set max_delete"
        )


def refuse_lost_dest(roots: Roots, host: str, entries: int) -> None:
    """Refuse an empty destination where an earlier pass of a migration left entries: it would fill another disk."""
    if entries > 1 and roots.only is None and roots.target["empty"]:
        raise Refusal(
            f"{roots.dest} on {host} is empty, and the last pass left {entries_text(entries)} there. Its disk may not "
            "be mounted: mount it, and run this again. If it was emptied on purpose, begin again with -e "
            "migrate_reset=true"
        )


def refuse_empty_source(source: Endpoint, dest: Endpoint, roots: Roots, max_delete: int | None) -> None:
    """Refuse to make a directory that holds something the copy of an empty one, unless a limit allows it."""
    if roots.only is None and source.probe["path"]["empty"] and not roots.target["empty"] and max_delete is None:
        raise Refusal(
            f"the source {roots.source} on {source.name} is empty, and delete would remove all that {roots.dest} on "
            f"{dest.name} holds: a source that is not mounted looks the same. Where it is meant, set max_delete"
        )


def refuse_unusable(source: Endpoint, dest: Endpoint, roots: Roots, partly: bool, keeps_holes: bool) -> None:
    """Refuse a source that cannot be read, and a destination that cannot be written or is too small to begin with.

    ``partly``: not all that the source holds needs room at the destination. ``keeps_holes``: holes need none.
    """
    origin, target = source.probe["path"], roots.target
    if not origin["readable"]:
        raise Refusal(
            f"{roots.source} on {source.name} cannot be read by user {source.probe['user']}: use become for that host"
        )
    if target.get("read_only"):
        raise Refusal(f"the file system of {roots.dest} on {dest.name} is mounted read-only: mount it read-write")
    if not target["writable"]:
        raise Refusal(
            f"{target['existing']} on {dest.name} cannot be written to by user {dest.probe['user']}: use become for "
            "that host, or fix the permissions"
        )
    size = origin.get("measured")
    if size and not partly and nothing_there(roots, dest.probe["path"]):
        needed = size["content"] if keeps_holes else size["apparent"]
        _refuse_no_space(size, needed, target, dest.name, roots.dest)


def nothing_there(roots: Roots, dest_path: PathFacts) -> bool:
    """Whether all of the source must be written, as far as can be told without comparing."""
    if roots.only is None:
        return bool(roots.target["empty"])
    inside = roots.dest == dest_path["real"]  # dest is the directory, else the file itself
    at = dest_path.get("child") if inside else dest_path
    return at is not None and at["type"] == "missing"


def _refuse_no_space(size: TreeSize, needed: int, target: PathFacts, host: str, root: str) -> None:
    least = "" if size["complete"] else "at least "
    if needed > target.get("free_bytes", needed):
        raise Refusal(
            f"the source holds {least}{format_bytes(needed)}, and {root} on {host} has room for "
            f"{format_bytes(target['free_bytes'])}. Make room, or choose another destination; nothing was written"
        )
    if 0 <= target.get("free_inodes", -1) < size["entries"]:
        raise Refusal(
            f"the source has {least}{entries_text(size['entries'])}, and the file system of {root} on {host} has "
            f"{counted(target['free_inodes'], 'inode', 'inodes')} left. Choose another file system; nothing was written"
        )


def link_warnings(options: Mapping[str, Any], rules: list[str], dest: Endpoint, roots: Roots) -> tuple[str, ...]:
    """Return a warning for each directory that is missing, and for each that ``delete`` removes in the end."""
    missing = tuple(
        f"link_dest {path} is no directory on {dest.name}, so nothing can be linked to it: all files are sent"
        for path in dest.probe["no_folders"]
    )
    if not options["delete"] or roots.only is not None:
        return missing
    filters = Filters.parse(rules)
    return missing + tuple(
        f"link_dest {path} is inside {roots.dest}, and delete is set: what the source does not have is deleted there "
        "in the end. Keep it elsewhere, or exclude it"
        for path in options["link_dest"] or ()
        if _is_deleted(os.fsencode(os.path.relpath(path, roots.dest)), filters)
    )


def _is_deleted(path: bytes, filters: Filters) -> bool:
    """Whether a directory, given from the root, is inside it and no rule protects it or one that it is in."""
    parts = path.split(b"/")
    if parts[0] in (b".", b".."):
        return False
    return all(filters.allows(b"/".join(parts[:end]), True, DEST) for end in range(1, len(parts) + 1))
