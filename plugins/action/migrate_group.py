# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.migrate_group: what a group decides. See plugin_utils/migrate/groups."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.migrate_group import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_node_action import ControlNodeAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.groups import Gate, State, settle
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.store import Store
from ansible_collections.longhaul.fleet.plugins.plugin_utils.units import now_text


class ActionModule(ControlNodeAction):
    """Decide, and write down what was decided."""

    documentation = DOCUMENTATION

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Judge the group by the states of its jobs. The hosts of a group may ask at the same time."""
        store = Store(options["folder"], writes=write)
        with _locked(options["folder"]):
            states = {name: _read(store, name) for name in options["jobs"]}
            gate = Gate(options["gate"])
            verdict, written = settle(states, options["run_id"], gate, now_text(), options["own"], options["commits"])
            for name, state in written.items():
                store.save(name, state)
        return verdict._asdict()

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of states and reports."""
        return options["folder"], "migrate_report_dir"


def _read(store: Store, name: str) -> State:
    """Return the state of a job, empty if it cannot be read, which the job itself says."""
    try:
        return store.read(name)
    except (OSError, ValueError):
        return {}


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Hold the lock of the decisions. It ends with the process, too."""
    states = os.path.join(folder, "state")
    os.makedirs(states, mode=0o750, exist_ok=True)
    with open(os.path.join(states, ".groups.lock"), "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
