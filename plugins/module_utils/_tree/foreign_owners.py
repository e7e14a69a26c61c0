# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owners of a tree that this host's names do not fit, and the reason. Private to the collection.

A tree with an ``etc/passwd`` of its own, the storage of containers and the ids of user namespaces have owners whom this
host does not know, or knows by another name: their numbers must stay. Asked only where two hosts disagree, at the
source, with the paths where the ids that they disagree about were met first.
"""

from __future__ import annotations

import contextlib
import os
from typing import Iterable, Iterator, Mapping

from .._model.paths import check_path, escape, unescape

_STORAGE = (  # of containers, as parts of a path
    b"/overlay2/",
    b"/containers/storage/",
    b"/var/lib/docker/",
    b"/var/lib/containerd/",
    b"/var/lib/lxc/",
    b"/var/lib/lxd/",
    b"/var/lib/incus/",
    b"/var/lib/machines/",
)
SUBORDINATE = {"users": "/etc/subuid", "groups": "/etc/subgid"}
_MOST = 5  # of each sort that are named


def foreign_owners(root: bytes, paths: Iterable[str], met: Mapping[str, Iterable[int]]) -> list[str]:
    """Return sentences without a full stop about what in the tree has owners of its own.

    ``paths`` are those where the ids in question were met first, escaped; ``met`` are all ids by kind.
    """
    real = os.path.realpath(root)
    systems: dict[bytes, None] = {}
    storage: dict[bytes, None] = {}
    for path in dict.fromkeys([b"", *_inside(paths)]):
        found = _system_around(real, path)
        if found is not None:
            systems.setdefault(found)
        whole = os.path.join(real, path) + b"/"
        for part in _STORAGE:
            if part in whole:
                storage.setdefault(whole[: whole.index(part) + len(part) - 1])
    said = [f"{escape(path)} has an etc/passwd of its own" for path in list(systems)[:_MOST]]
    said += [f"{escape(path)} is the storage of containers" for path in list(storage)[:_MOST]]
    return said + _subordinate(met)


def _inside(paths: Iterable[str]) -> Iterator[bytes]:
    """Return the paths that lie in the tree: the other host has named them."""
    for text in paths:
        with contextlib.suppress(ValueError):
            path = unescape(text)
            check_path(path)
            yield path


def _system_around(real: bytes, path: bytes) -> bytes | None:
    """Return the innermost directory around a path, inside the tree, with an etc/passwd; not this host's own."""
    while True:
        place = os.path.join(real, path) if path else real
        if place != b"/" and os.path.lexists(os.path.join(place, b"etc/passwd")):
            return place
        if not path:
            return None
        path = path.rpartition(b"/")[0]


def _subordinate(met: Mapping[str, Iterable[int]]) -> list[str]:
    """Name the ranges of subordinate ids that some of the ids lie in."""
    said: list[str] = []
    for kind, file in SUBORDINATE.items():
        ids = sorted(met.get(kind, ()))
        for who, first, count in _ranges(file):
            inside = sum(first <= number < first + count for number in ids)
            if inside and len(said) < _MOST:
                said.append(
                    f"{inside} {kind} lie in the range {first} to {first + count - 1} that {file} gives to {who}"
                )
    return said


def _ranges(file: str) -> list[tuple[str, int, int]]:
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        parts = line.split(":")
        if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
            found.append((parts[0], int(parts[1]), int(parts[2])))
    return found
