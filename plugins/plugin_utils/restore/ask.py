# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the two hosts of a restore, and parse what they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape, as_object, optional

from ..execution_retry import LONG
from ..host_runner import HostFailed, HostRunner
from ..snapshot_answers import parse_problems, parse_snapshots

if TYPE_CHECKING:
    from ansible.plugins.action import ActionBase
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import SnapshotStep

ROLES = ("restore", "backup")  # whose variables say what is restored
_KINDS = ("directory", "file", "other")
_INSPECT = "longhaul.fleet.restore_info"
_DEST = "longhaul.fleet.restore_dest_info"


def answer_of(
    action: ActionBase, host: str, variables: Mapping[str, Any], ask: Callable[[HostRunner], Mapping[str, object]]
) -> Mapping[str, object]:
    """Return the result of a task that asks a host; a failure of the host is one of the task."""
    runner = None
    try:
        runner = HostRunner(action, host, variables, ROLES)
        return {"changed": False, **ask(runner)}
    except HostFailed as error:
        return {"changed": False, "failed": True, "msg": str(error)}
    except WrongShape as error:
        return {"changed": False, "failed": True, "msg": f"{host}: its answer cannot be read: {error}"}
    finally:
        if runner is not None:
            runner.close()


def list_snapshots(runner: HostRunner, options: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the ``snapshots``, without their paths, which follow from their names."""
    place = [options[name] for name in ("repository", "host", "job")]
    step: SnapshotStep = {"do": "snapshot", "action": "list", "place": place, "options": {}}
    said = as_object(runner.run(step)[0], "its answer")
    refused = optional(said, "refused", str)
    if refused is not None:
        raise HostFailed(refused, runner.name)
    return {"snapshots": parse_snapshots(said.get("snapshots"))}


def inspect(runner: HostRunner, options: Mapping[str, Any]) -> Mapping[str, object]:
    """Return what a path in a snapshot is, and what is not as it was."""
    asked = {name: options[name] for name in ("repository_host", "repository", "host", "job", "name", "path", "level")}
    counts = {"not_permitted": int, "problems_total": int}
    said = runner.run_module(
        _INSPECT, asked, {"kind": str, "checked": str, "problems": list, **counts}, more_seconds=LONG
    )
    if said["kind"] not in _KINDS or said["checked"] not in ("", options["level"]):
        raise WrongShape(f"a {said['kind']!r} that was checked by {said['checked']!r}")
    return {**said, "problems": parse_problems(said["problems"])}


def look_at_dest(runner: HostRunner, options: Mapping[str, Any]) -> Mapping[str, object]:
    """Return whether a destination and the repository are in each other, or whether the destination is free."""
    asked = {name: options[name] for name in ("repository", "dest", "occupies")}
    return runner.run_module(_DEST, asked, {"overlaps": bool, "dest": str, "free": bool})
