# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that the control node can ask of a host. Private to the collection.

Several steps make one execution of the module, since each execution costs a fleet time. For the same reason a step
imports what it alone needs.
"""

from __future__ import annotations

import time
from typing import Any, Callable, NamedTuple

from . import launcher
from .state import JobFolder, StateError


class Given(NamedTuple):
    """What came along with the steps."""

    secrets: dict[str, str]
    engine: str  # the path of the archive that jobs are started from


def run_steps(steps: list[dict[str, Any]], given: Given) -> list[dict[str, Any]]:
    """Do the steps in order and give each one's result. Each has ``do``, and what that step reads."""
    return [_STEPS[step["do"]](step, given) for step in steps]


def _folder(step: dict[str, Any]) -> JobFolder:
    return JobFolder(step["id"], step["side"])


def _probe(step: dict[str, Any], _given: Given) -> dict[str, Any]:
    from .probe import probe

    return probe(step)


def _describe(step: dict[str, Any], _given: Given) -> dict[str, Any]:
    """Say what stands at a path, and how fast this host hashes, for a comparison."""
    from .._tree.content_hash import speeds
    from .probe import describe_with_child, numbers_of

    found = {"path": describe_with_child(step), "hash_speeds": speeds(), "now_ns": time.time_ns()}
    return dict(found, owners=numbers_of(step.get("owners") or {}))


def _start(step: dict[str, Any], given: Given) -> dict[str, Any]:
    """Start a job: ``kind``, ``request``, ``until`` and ``wait`` as launcher.start has them.

    ``replace`` is the process id of a job that the probe found and that shall make way. ``then`` are steps that follow
    at once where the job has finished by now; their results stand in the status under the same name, and how long they
    took under ``then_seconds``.
    """
    folder = _folder(step)
    if step.get("replace") and folder.status.get("pid") == step["replace"]:
        launcher.stop(folder, succeeded=False)
    names = step.get("secrets", [])
    status = launcher.start(
        folder,
        given.engine,
        step["kind"],
        step["request"],
        {name: given.secrets[name] for name in names},
        tuple(step["until"]),
        float(step["wait"]),
    )
    if step.get("then") and status["state"] == "finished" and not status["alive"]:
        started = time.monotonic()
        status["then"] = run_steps(step["then"], given)
        status["then_seconds"] = time.monotonic() - started
    return status


def _poll(step: dict[str, Any], _given: Given) -> dict[str, Any]:
    """Give a job's status, at once when it ends, else after ``wait`` seconds."""
    return launcher.watch(_folder(step), tuple(step.get("until", ())), float(step["wait"]))


def _stop(step: dict[str, Any], _given: Given) -> dict[str, Any]:
    """End a job and give its last status and log. Raises StateError where its staging folder could not be removed."""
    folder = _folder(step)
    status = launcher.stop(folder, bool(step["succeeded"]))
    if step["succeeded"] and status.get("staging_left"):
        folder.remove()
        raise StateError(status["failure"])
    return dict(status, log=folder.log_tail())


def _clear(step: dict[str, Any], _given: Given) -> dict[str, Any]:
    """Remove what a job that has ended left in the state folder."""
    folder = _folder(step)
    if folder.is_running():
        raise StateError(f"the job of {folder.transfer_id} on this side ({folder.side}) is still running")
    folder.remove()
    return {}


def _quick_digest(step: dict[str, Any], given: Given) -> dict[str, Any]:
    """Give the ``digest`` of a tree that is read within ``seconds``, None else; after it come the steps ``then``."""
    from .digest_job import quick_digest

    digest = quick_digest(step["request"], float(step["seconds"]))
    if digest is not None:
        run_steps(step["then"], given)
    return {"digest": digest}


def _look_up_owners(step: dict[str, Any], _given: Given) -> dict[str, Any]:
    """Say what this host, the destination, knows of the ids that were ``counted`` at the source."""
    from .._tree.owners import answer

    return answer(step["counted"])


def _drill_down(step: dict[str, Any], _given: Given) -> dict[str, Any]:
    """Answer a question about the differences that two digests show."""
    from .digest_job import drill_down

    return drill_down(_folder(step), step)


_STEPS: dict[str, Callable[[dict[str, Any], Given], dict[str, Any]]] = {
    "probe": _probe,
    "describe": _describe,
    "start": _start,
    "poll": _poll,
    "stop": _stop,
    "clear": _clear,
    "quick_digest": _quick_digest,
    "drill_down": _drill_down,
    "look_up_owners": _look_up_owners,
}
