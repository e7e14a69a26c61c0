# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.migrate_summary: what a run of a migration did, and what failed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.migrate_summary import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_node_action import ControlNodeAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.store import Store
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.summary import all_failures, summarize
from ansible_collections.longhaul.fleet.plugins.plugin_utils.units import now_text


class ActionModule(ControlNodeAction):
    """Sum up a run."""

    documentation = DOCUMENTATION

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Return the figures and the failures. In check mode there are no reports."""
        store, records = Store(options["folder"], writes=False), options["jobs"]
        failures = all_failures(records, options["failures"])
        reports = {}
        for name in [one["name"] for one in records if one["left"]]:
            with contextlib.suppress(OSError, ValueError):  # then its figures are those until the cutover
                reports[name] = store.read_report(name)
        about = {
            "phase": options["phase"],
            "check_mode": not write,
            "at": now_text(),
            "by": options["started_by"],
            "report": store.path_of_report() if write else "",
        }
        summary = summarize(records, reports, failures, about)
        return {"summary": summary, "failures": [one._asdict() for one in failures]}

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the folder of reports: nothing is written."""
        return options["folder"], "migrate_report_dir"
