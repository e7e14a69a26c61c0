# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.control_files: write files on the control node, each at once and as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.control_files import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_files import as_json, write_whole
from ansible_collections.longhaul.fleet.plugins.plugin_utils.control_node_action import (
    ControlNodeAction,
    refuse_unwritable,
)


class ActionModule(ControlNodeAction):
    """Write reports, and what was done already."""

    documentation = DOCUMENTATION

    def act(self, options: Mapping[str, Any], *, write: bool) -> Mapping[str, object]:
        """Write the files, and show the warnings."""
        refused = options["writable"] and write and refuse_unwritable(options["writable"], options["option"])
        if refused:
            return {"failed": True, "msg": refused}
        for file in options["files"] if write else []:
            mode = int(file["mode"], 8) if file["mode"] else None
            write_whole(file["path"], as_json(file["data"]) if file["text"] is None else file["text"], mode)
        return {"warnings": options["warnings"]} if options["warnings"] else {}

    def place(self, options: Mapping[str, Any]) -> tuple[str, str]:
        """Return the first file."""
        return next((file["path"] for file in options["files"]), options["writable"]), options["option"]
