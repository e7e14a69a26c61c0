# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be told of a hook: a command or a file of tasks that a user's list runs at one point of a role."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, TypedDict

TASKS = "tasks of "


class Told(TypedDict):
    """What messages and reports may tell of a hook."""

    kind: str  # the list that it is in
    host: str  # where it runs
    name: str
    what: str  # it runs; empty if it is hidden
    hidden: bool


def tell_hook(hook: Mapping[str, Any], kind: str = "", host: str = "") -> Told:
    """Return what messages and reports may tell: kind, host, name, what it runs, and whether it is hidden.

    ``hook`` is what the user wrote, ``kind`` the list that it is in, ``host`` where it runs. A hook that has no name is
    called by what it runs. With ``no_log`` nothing but its name is told, and ``what`` is empty.
    """
    hidden = is_hidden(hook)
    command = [str(word) for word in hook.get("command") or []]
    what = "" if hidden else shlex.join(command) if command else f"{TASKS}{hook.get('tasks')}"
    name = str(hook.get("name") or "") or what or "a hook without a name"
    return {"kind": kind, "host": host, "name": name, "what": what, "hidden": hidden}


def is_hidden(hook: Mapping[str, Any]) -> bool:
    """Return whether nothing but the name may be told. What is not clearly a no is a yes."""
    return str(hook.get("no_log") or "no").strip().lower() not in ("no", "false", "off", "n", "f", "0", "0.0")
