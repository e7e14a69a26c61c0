# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a task failed, in one text: which hook it was, what that ran, and what it said."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.hooks import TASKS

DOCUMENTATION = r"""
name: migrate_failure
short_description: "Internal: say why a task of a migration or a backup failed"
version_added: 0.1.1
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Puts what a failed task said into one text. Of a hook it names the hook and its command, unless that is hidden.
  - Part of the roles P(longhaul.fleet.migrate#role) and P(longhaul.fleet.backup#role). What it takes and returns may
    change in any release.
positional: _input
options:
  _input:
    description: The result of the task that failed.
    type: dict
    required: true
  task:
    description: The name of that task.
    type: str
    default: ""
  hook:
    description: What P(longhaul.fleet.migrate_hook#filter) tells of the hook that ran, empty where none did.
    type: dict
    default: {}
  hidden:
    description: Whether the task had C(no_log), so that nothing of its result is told.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Say why it failed
  ansible.builtin.debug:
    msg: "{{ ansible_failed_result | longhaul.fleet.migrate_failure(task=ansible_failed_task.name) }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: str
"""

LONGEST = 2000  # characters of what a program said; its last words count
HIDDEN = "what it said is hidden, because of no_log"


def migrate_failure(
    result: Mapping[str, Any], task: str = "", hook: Mapping[str, Any] | None = None, hidden: bool = False
) -> str:
    """Return the text."""
    hook = hook or {}
    kind = f" ({hook['kind']})" if hook.get("kind") else ""
    parts = [f"hook {hook['name']}{kind} on {hook['host']} failed"] if hook else []
    if hook.get("hidden") or hidden or "censored" in result:
        return ": ".join([*parts, HIDDEN] if hook else [f"{task or 'a task'} failed", HIDDEN])
    command = _command(result)
    if hook:
        inside = [task, command] if hook["what"].startswith(TASKS) else []
        parts += [text for text in dict.fromkeys([hook["what"], *inside]) if text and text != hook["name"]]
    said = str(result.get("msg") or "").strip() or f"{task or 'a task'} failed"
    if command and result.get("rc") is not None:
        said = f"{said.rstrip('.')} (rc {result['rc']})"
    words = str(result.get("stderr") or "").strip() or (str(result.get("stdout") or "").strip() if command else "")
    words = words or str(result.get("module_stderr") or "").strip()
    return ": ".join([*parts, said, *([words[-LONGEST:]] if words and words not in said else [])])


def _command(result: Mapping[str, Any]) -> str:
    """Return the command that a task ran. Empty where there was none; a transfer's result names those of both hosts."""
    command = result.get("cmd")
    if isinstance(command, (list, tuple)):
        return shlex.join(str(word) for word in command)
    return command if isinstance(command, str) else ""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Return the filters by name."""
        return {"migrate_failure": migrate_failure}
