# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a task failed, in one text: which hook it was, what that ran, and what it said."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from .hooks import TASKS

LONGEST = 2000  # characters of what a program said; its last words count
HIDDEN = "what it said is hidden, because of no_log"


def tell_failure(
    result: Mapping[str, Any], task: str = "", hook: Mapping[str, Any] | None = None, hidden: bool = False
) -> str:
    """Return why a task failed, by its result.

    ``hook`` is what ``tell_hook`` tells of the hook that ran, empty if none did. ``hidden``: the task had
    ``no_log``, so nothing of its result is told.
    """
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
    """Return the command that a task ran. Empty if there was none; a transfer's result names those of both hosts."""
    command = result.get("cmd")
    if isinstance(command, (list, tuple)):
        return shlex.join(str(word) for word in command)
    return command if isinstance(command, str) else ""
