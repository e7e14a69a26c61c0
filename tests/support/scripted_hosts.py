# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that answer the steps of a transfer as a test says, without processes, connections and files."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.digest import BUCKETS, HASH_BYTES

SUMS = base64.b64encode(bytes(BUCKETS * HASH_BYTES)).decode()
DIGEST = {"types": {"f": 3}, "entries": 3, "bytes": 7, "sums": SUMS, "errors": [], "errors_total": 0}
SERVING = {"state": "serving", "alive": True, "ready": {"port": 5000}}


def finished(**outcome: Any) -> dict[str, Any]:
    """Return the status of a job that has transferred."""
    return {"state": "finished", "alive": False, "outcome": Outcome(**{"files_total": 3, **outcome}).as_dict()}


def failed(failure: str, **status: Any) -> dict[str, Any]:
    """Return the status of a job that has failed."""
    return {"state": "failed", "alive": False, "failure": failure, **status}


def unreachable(failure: str) -> dict[str, Any]:
    """Return the status of a job that could not reach its peer."""
    return failed(failure, unreachable=True)


class ScriptedHost:
    """What a session knows of a HostRunner. ``done`` names the steps of each execution.

    ``answers`` has the next answers to steps by their names, an exception to be raised; all others go well.
    """

    connection = "ssh"

    def __init__(self, name: str, facts: Mapping[str, Any]) -> None:
        self.name, self.facts = name, facts
        self.variables: dict[str, Any] = {}
        self.done: list[str] = []
        self.requests: list[Mapping[str, Any]] = []  # of the jobs that were started
        self.secrets: list[Mapping[str, str]] = []
        self.answers: dict[str, list[Any]] = {}
        self.off_disks = False

    def keep_off_disks(self) -> None:
        """Keep secrets off disks."""
        self.off_disks = True

    def reset(self) -> None:
        """Forget the connection."""

    def run(self, *steps: Any, secrets: Mapping[str, str] | None = None) -> list[Any]:
        """Answer steps as one execution."""
        self.done.append(", ".join(_named(step) for step in steps))
        self.secrets.append(secrets or {})
        return [self._answer(step) for step in steps]

    def _answer(self, step: Any) -> Any:
        name, then = _name(step), step.get("then", ())
        if name in ("serve", "drive"):
            self.requests.append(step["request"])
        given = self.answers.get(name)
        answer: Any = given.pop(0) if given else self._usual(name, step)
        if isinstance(answer, Exception):
            raise answer
        if then and (answer.get("state") == "finished" or answer.get("digest") or self._is_expected(step)):
            answer = {**answer, "then": [self._answer(one) for one in then]}
        return answer

    def _usual(self, name: str, step: Any) -> dict[str, Any]:
        if name == "probe":
            return {**self.facts, "methods": step["methods"]}
        answers = {
            "serve": SERVING,
            "drive": finished(),
            "poll": finished(),
            "stop": {"state": "served", "alive": False},
            "abort": {"state": "served", "alive": False},
            "digest": {"state": "finished", "alive": False, "digest": DIGEST},
            "quick_digest": {"digest": DIGEST},
            "sync": {"seconds": 0.0},
        }
        return dict(answers.get(name, {}))

    def _is_expected(self, step: Any) -> bool:
        return step["do"] == "probe" and step["expected"] == self.facts.get("fingerprint")


def _name(step: Any) -> str:
    if step["do"] == "start":
        return str(step["request"]["part"] if step["kind"] == "job" else step["kind"])
    return "abort" if step["do"] == "stop" and not step["succeeded"] else str(step["do"])


def _named(step: Any) -> str:
    then = [_named(one) for one in step.get("then", ())]
    return f"{_name(step)}({', '.join(then)})" if then else _name(step)
