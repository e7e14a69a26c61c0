# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be told of a hook."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

DOCUMENTATION = r"""
name: migrate_hook
short_description: "Internal: say what may be told of a hook"
version_added: 0.1.1
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Names a hook for messages and reports. Of one with C(no_log) nothing but its name is told.
  - Part of the roles P(longhaul.fleet.migrate#role) and P(longhaul.fleet.backup#role). What it takes and returns may
    change in any release.
positional: _input
options:
  _input:
    description: The hook, as the user wrote it.
    type: dict
    required: true
  kind:
    description: The list that the hook is in.
    type: str
    default: ""
  host:
    description: Where it runs.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Name the hooks
  ansible.builtin.debug:
    msg: "{{ (item | longhaul.fleet.migrate_hook).name }}"
  loop: "{{ before_cutover }}"
"""

RETURN = r"""
_value:
  description:
    - C(kind), C(host), C(name), C(what) it runs, and whether it is C(hidden).
    - A hook that has no name is called by what it runs. Of one with C(no_log) C(what) is empty.
  type: dict
"""


TASKS = "tasks of "


def migrate_hook(hook: Mapping[str, Any], kind: str = "", host: str = "") -> dict[str, Any]:
    """Return what may be told."""
    hidden = is_hidden(hook)
    command = [str(word) for word in hook.get("command") or []]
    what = "" if hidden else shlex.join(command) if command else f"{TASKS}{hook.get('tasks')}"
    name = str(hook.get("name") or "") or what or "a hook without a name"
    return {"kind": kind, "host": host, "name": name, "what": what, "hidden": hidden}


def is_hidden(hook: Mapping[str, Any]) -> bool:
    """Whether nothing but the name may be told. What is not clearly a no is a yes."""
    return str(hook.get("no_log") or "no").strip().lower() not in ("no", "false", "off", "n", "f", "0", "0.0")


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Return the filters by name."""
        return {"migrate_hook": migrate_hook}
