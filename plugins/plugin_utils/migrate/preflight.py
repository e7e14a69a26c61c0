# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What two hosts' answers mean for a migration that has not begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted, entries_text
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import as_object, member, optional, texts

from ..host_text import harmless_data
from ..owner_problems import owner_problems
from ..units import format_bytes

_MEMBERS: Mapping[str, type] = {
    **dict.fromkeys(("path", "base", "mount", "fstype", "peer"), str),
    **dict.fromkeys(("exists", "root", "case_insensitive"), bool),
    "bytes_free": int,
    "tools": dict,
    "zfs": dict,
}
_MAYBE: Mapping[str, type] = {"files_free": int, "largest_file": int, "xattrs": bool, "acls": bool}
_READ_ELSEWHERE = ("record", "lease")  # by parsers of their own


def parse_discovered(value: object) -> Mapping[str, Any]:
    """Return the answer to the step discover. Untrusted input. Raises WrongShape.

    Its texts are only shown, so they are harmless, without those of the record and the lease of the job.
    """
    values = as_object(value, "what it says of itself")
    found: dict[str, object] = {name: member(values, name, kind) for name, kind in _MEMBERS.items()}
    found.update({name: optional(values, name, kind) for name, kind in _MAYBE.items()})
    found.update({name: texts(values, name) for name in ("problems", "warnings")})
    return {**harmless_data(found), **{name: values[name] for name in _READ_ELSEWHERE if name in values}}


def judge_preflight(
    probes: Mapping[str, Mapping[str, Any]],
    job: Mapping[str, Any],
    needed: Sequence[str],
    predicted: Mapping[str, Any] | None = None,
) -> dict[str, list[str]]:
    """Return the ``problems`` and the ``warnings`` of one job, each a sentence that names its host.

    ``probes`` are what the hosts answered, ``source`` and ``dest``. ``needed`` are the programs that the method needs,
    and ``predicted`` is the result of the transfer in check mode, empty if it was not asked.
    """
    problems, warnings = [], []
    names = {"source": job["src_host"], "dest": job["dest_host"]}
    for side in ("source", "dest"):
        problems += [f"{names[side]}: {text}" for text in probes[side]["problems"]]
        warnings += [f"{names[side]}: {text}" for text in probes[side]["warnings"]]
        missing = [tool for tool in needed if not probes[side]["tools"].get(tool)]
        if missing:
            warnings.append(
                f"{names[side]}: has no {' and no '.join(missing)}; install it there, or let the role do it where "
                "Ansible is root (migrate_manage_packages)"
            )
    problems += _room(names["dest"], probes["dest"], predicted or {})
    problems += owner_problems(job, predicted or {})
    warnings += _features(names, probes["source"], probes["dest"])
    warnings += _ways(names, probes)
    return {"problems": problems, "warnings": warnings}


def _room(host: str, dest: Mapping[str, Any], predicted: Mapping[str, Any]) -> list[str]:
    problems = []
    needed, free = predicted.get("bytes_sent", 0), dest["bytes_free"]
    place = dest["mount"] or "its file system"
    if needed > free:
        problems.append(
            f"{host}: {format_bytes(needed)} would arrive at {dest['base']}, and {place} has {format_bytes(free)} "
            f"free; make room for {format_bytes(needed - free)} more, or choose another dest"
        )
    files = predicted.get("files_created", 0)
    if dest["files_free"] is not None and files > dest["files_free"]:
        problems.append(
            f"{host}: {entries_text(files)} would arrive at {dest['base']}, and {place} has "
            f"{counted(dest['files_free'], 'inode', 'inodes')} free; choose a file system with more"
        )
    return problems


def _features(names: Mapping[str, str], source: Mapping[str, Any], dest: Mapping[str, Any]) -> list[str]:
    warnings = []
    for feature, word in (("xattrs", "extended attributes"), ("acls", "ACLs")):
        if source[feature] and dest[feature] is False:
            warnings.append(f"{names['dest']}: {dest['fstype'] or 'its file system'} keeps no {word}; the source does")
    if dest["case_insensitive"] and not source["case_insensitive"]:
        warnings.append(
            f"{names['dest']}: {dest['fstype']} takes a.txt and A.TXT for one name; of such pairs one is lost"
        )
    if dest["largest_file"] and not source["largest_file"]:
        warnings.append(
            f"{names['dest']}: {dest['fstype']} holds no file larger than {format_bytes(dest['largest_file'])}"
        )
    return warnings


def _ways(names: Mapping[str, str], probes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the host that cannot reach the other one. A closed port answers, so the path is open."""
    blocked = [side for side in ("source", "dest") if probes[side]["peer"] not in ("", "open", "refused")]
    if not blocked:
        return []
    if len(blocked) == 2:
        return [
            f"neither {names['source']} nor {names['dest']} gets an answer from the other one's ssh port "
            f"({probes['source']['peer']}); set longhaul_address where the address is not the right one, or open "
            "a port and name it with port or port_range"
        ]
    side = blocked[0]
    other = "dest" if side == "source" else "source"
    way = "pull" if side == "source" else "push"
    return [
        f"{names[side]} gets no answer from the ssh port of {names[other]} ({probes[side]['peer']}); the other "
        f"direction is open, which is connect: {way}"
    ]
