# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run does with a migration job, and what a person should do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.advice import advice
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.steps import Phase, decide
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.switch import divide

DOCUMENTATION = r"""
name: migrate_decide
short_description: "Internal: decide what a run does with a migration job"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Decides by the state of a job and the phase that was asked for.
  - Part of the role P(longhaul.fleet.migrate#role). What it takes and returns may change in any release.
positional: _input
options:
  _input:
    description: The state of the job, as the role keeps it on the control node.
    type: dict
    required: true
  phase:
    description: The phase that was asked for.
    type: str
    choices: [preflight, seed, sync, cutover, verify]
    required: true
  compares:
    description: Whether the job wants its trees compared.
    type: bool
    default: true
  check_mode:
    description: Whether the run is in check mode.
    type: bool
    default: false
  after_cutover:
    description: The hooks of the switch, as the user wrote them.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Show what a cutover would do
  ansible.builtin.debug:
    msg: "{{ (state | longhaul.fleet.migrate_decide(phase='cutover')).steps }}"
  vars:
    state: "{{ lookup('ansible.builtin.file', 'state/data.json') | from_json }}"
"""

RETURN = r"""
_value:
  description:
    - C(steps) to run, in their order.
    - C(refused) is why the run refuses the job, and C(instead) what to do; both are empty otherwise.
    - C(next) is what a person should do next.
    - C(hooks_done) are the hooks of the switch that ran, with what may be told of them. C(hooks_left) are the others,
      as the user wrote them.
  type: dict
"""


def migrate_decide(
    state: Mapping[str, Any],
    phase: str,
    compares: bool = True,
    check_mode: bool = False,
    after_cutover: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the decision as data."""
    made = decide(state, Phase(phase), compares=compares, check_mode=check_mode)
    hooks = divide(state, after_cutover)
    return {
        "steps": [step.value for step in made.steps],
        "refused": made.refused,
        "instead": made.instead,
        "next": advice(state),
        "hooks_done": hooks.done,
        "hooks_left": hooks.left,
    }


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Return the filters by name."""
        return {"migrate_decide": migrate_decide}
