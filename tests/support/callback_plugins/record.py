# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A callback for the tests: each task's result as a line of JSON in the file that LONGHAUL_TEST_RECORD names."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: record
    type: notification
    short_description: Record task results for the tests
    description:
      - Writes one JSON object a line for each result.
"""


class CallbackModule(CallbackBase):
    """Writes what each task gave on each host."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "record"
    CALLBACK_NEEDS_ENABLED = True

    def _record(self, status: str, result: Any) -> None:
        line = {
            "status": status,
            "task": result._task.get_name(),
            "host": result._host.get_name(),
            "result": result.result if hasattr(result, "result") else result._result,  # before core 2.19
        }
        with open(os.environ["LONGHAUL_TEST_RECORD"], "a", encoding="utf-8") as record:
            record.write(json.dumps(line, default=str) + "\n")

    def v2_runner_on_ok(self, result: Any) -> None:
        self._record("ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._record("ignored" if ignore_errors else "failed", result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._record("skipped", result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._record("unreachable", result)
