# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What leaves an action: texts of hosts are harmless in its result, its errors, and all that is displayed meanwhile."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions import fleet_action
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.fleet_action import FleetAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.comparison import ComparisonFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError

ACTIONS = Path(__file__).parents[5] / "plugins/action"
PACKAGE = "ansible_collections.longhaul.fleet.plugins.action"
HOSTILE, SHOWN = "\x1b]0;t\x07\u202e", r"\x1b]0;t\x07\u202e"


@pytest.mark.parametrize("name", sorted(path.stem for path in ACTIONS.glob("[a-z]*.py")))
def test_every_action_is_a_fleet_action(name: str) -> None:
    action = importlib.import_module(f"{PACKAGE}.{name}").ActionModule
    assert issubclass(action, FleetAction) and action.run is FleetAction.run


class Queue:
    """The queue to ansible's own process."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send_display(self, method: str, *texts: Any, **named: Any) -> None:
        self.sent.append((method, texts, named))


def run(monkeypatch: pytest.MonkeyPatch, work: Any, **given: Any) -> tuple[dict[str, Any], Queue]:
    class Action(FleetAction):
        documentation = "options: {bwlimit: {type: str}, streams: {type: int}}"

        def work(self, *_given: Any) -> Mapping[str, object]:
            result: Mapping[str, object] = work()
            return result

    queue, display = Queue(), Display()
    monkeypatch.setattr(display, "_final_q", queue)
    monkeypatch.setattr(ActionBase, "run", lambda *_given: {})
    monkeypatch.setattr(fleet_action, "watch_for_end", lambda: None)
    action = Action.__new__(Action)
    action._task = SimpleNamespace(action="longhaul.fleet.transfer", args=given)
    action.validate_argument_spec = lambda **_given: (None, {})
    result = action.run()
    assert display._final_q is queue
    return result, queue


def test_a_result_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _queue = run(monkeypatch, lambda: {"errors": ({"path": HOSTILE},), "msg": HOSTILE})
    assert result == {"errors": ({"path": SHOWN},), "msg": SHOWN}


def test_all_mistakes_in_the_options_are_told_at_once_and_no_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _queue = run(monkeypatch, lambda: pytest.fail("it worked"), bwlimt="1M", streams="many", waits=True)
    assert result == {
        "failed": True,
        "msg": "The options of longhaul.fleet.transfer are not valid, and nothing was done:\n"
        "- bwlimt is no option. Did you mean bwlimit?\n"
        "- streams is many. Write a whole number\n"
        "- waits is no option. There are bwlimit, streams",
    }


def test_an_action_of_a_role_has_its_variables_with_their_types_and_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"part": "begin", "variables": {"sync_max_passes": "3"}}

    class Action(FleetAction):
        documentation, role = "options: {part: {type: str}, variables: {type: dict}}", "migrate"

        def work(self, options: Mapping[str, Any], *_variables: Any) -> Mapping[str, object]:
            return {name: options[name] for name in ("part", "sync_max_passes", "phase")}

    monkeypatch.setattr(ActionBase, "run", lambda *_given: {})
    monkeypatch.setattr(fleet_action, "watch_for_end", lambda: None)
    action = Action.__new__(Action)
    action._task = SimpleNamespace(action="longhaul.fleet.migrate_run", args=given)
    action.validate_argument_spec = lambda **_given: (None, given)
    assert action.run() == {"part": "begin", "sync_max_passes": 3, "phase": "sync"}
    given["variables"]["sync_max_passes"] = "x"
    result = action.run()
    assert result["failed"] and str(result["msg"]).startswith("variables of the role migrate: ")


def test_what_a_later_task_uses_stays_as_the_user_wrote_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FleetAction, "users_own", ("variables",))
    own = {"jobs": [{"dest": HOSTILE}]}
    result, _queue = run(monkeypatch, lambda: {"variables": own, "msg": HOSTILE})
    assert result == {"variables": own, "msg": SHOWN}


def test_only_variables_of_the_user_are_returned_unaltered() -> None:
    found = {
        path.stem: importlib.import_module(f"{PACKAGE}.{path.stem}").ActionModule.users_own
        for path in ACTIONS.glob("[a-z]*.py")
    }
    assert {name: own for name, own in found.items() if own} == {
        "backup_run": ("hooks", "folder", "hook_folder"),
        "migrate_run": ("hooks", "folder"),
        "restore_run": ("request",),
        "role_variables": ("variables",),
    }


def test_all_that_is_displayed_is_harmless_whoever_displays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> Mapping[str, object]:
        Display().display(HOSTILE)
        Display().warning(HOSTILE, formatted=True)
        return {}

    _result, queue = run(monkeypatch, work)
    assert len(queue.sent) == 2 and SHOWN in queue.sent[0][1]
    assert all(SHOWN in str(one).replace("\\\\", "\\") for one in queue.sent)
    assert not any(r"'\x1b" in str(one) for one in queue.sent)


def test_an_error_is_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> Mapping[str, object]:
        raise TypeError(HOSTILE)

    with pytest.raises(AnsibleError) as raised:
        run(monkeypatch, work)
    assert SHOWN in str(raised.value) and raised.value.__cause__ is None


@pytest.mark.parametrize("kind", [HostFailed, Refusal, TransferError, ComparisonFailed])
def test_a_failure_that_goes_into_a_report_is_harmless(kind: type[Exception]) -> None:
    error = kind(HOSTILE)
    assert str(error) == SHOWN and getattr(error, "reason", SHOWN) == SHOWN
