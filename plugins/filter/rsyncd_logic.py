# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role rsyncd asks of its logic in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.role_logic import make_filter

DOCUMENTATION = r"""
name: rsyncd_logic
short_description: "Internal: answer a question of the role rsyncd"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Answers the questions of the role P(longhaul.fleet.rsyncd#role). What it takes and returns may change in any
    release.
positional: _input, question
options:
  _input:
    description:
      - What the question is about.
      - What C(systemctl cat UNIT) prints (V(drop_in)), or users and their passwords (V(secret_problems)).
    type: raw
    required: true
  question:
    description:
      - V(drop_in) compares what the unit of the daemon closes (C(ProtectSystem), C(ProtectHome), C(PrivateDevices),
        C(PrivateTmp), C(ReadOnlyPaths)) with what the modules need.
      - V(secret_problems) asks what is wrong with the passwords. It says no password.
    type: str
    choices: [drop_in, secret_problems]
    required: true
  config:
    description: For V(drop_in), the result of M(longhaul.fleet.rsyncd_config).
    type: dict
  without:
    description: For V(drop_in), the path of a drop-in that is left out.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: See what the unit must open
  ansible.builtin.debug:
    msg: "{{ unit.stdout | longhaul.fleet.rsyncd_logic('drop_in', config=config) }}"
"""

RETURN = r"""
_value:
  description:
    - The answer.
    - V(drop_in) returns C(settings), lines for a drop-in, empty if none is needed, and C(shut), needed paths that a
      drop-in cannot open, since the unit has them in C(InaccessiblePaths).
    - V(secret_problems) returns a sentence for each problem.
  type: raw
"""

QUESTIONS: Mapping[str, str] = {
    "drop_in": "plugin_utils.rsyncd.sandbox.plan_drop_in",
    "secret_problems": "module_utils._rsyncd.check.secret_problems",
}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"rsyncd_logic": make_filter("rsyncd_logic", QUESTIONS)}
