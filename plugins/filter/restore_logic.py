# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role restore asks of its logic in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.role_logic import make_filter

DOCUMENTATION = r"""
name: restore_logic
short_description: "Internal: answer a question of the role restore"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Answers the questions of the role P(longhaul.fleet.restore#role). What it takes and returns may change in any
    release.
positional: _input, question
options:
  _input:
    description:
      - What the question is about.
      - The variables of the role, as C(repository), C(from), C(job), C(path), C(to), C(dest), C(over), C(delete) and
        C(transfer) (V(request)), what V(request) returned (V(target)), what the role has found at the place
        (V(decide)), the result of M(longhaul.fleet.restore_info) (V(judge)), or that of a transfer (V(changes)).
    type: dict
    required: true
  question:
    description:
      - V(changes) asks what changed at the source during a transfer, and whether nothing else went wrong with it.
      - V(decide) asks what is left to do, by what is at the place already.
      - V(judge) asks whether a snapshot is restored from.
      - V(request) asks what is to be restored, completed from the jobs of the backup.
      - V(target) asks from where to where it goes.
    type: str
    choices: [changes, decide, judge, request, target]
    required: true
  accepts_damage:
    description: For V(judge), whether what is damaged is restored too.
    type: bool
  delete:
    description: For V(target), whether what is not in the snapshot is removed.
    type: bool
    default: false
  dest:
    description: For V(target), the folder that was asked for. Empty for the place where it was, or one beside it.
    type: str
    default: ""
  groups:
    description: For V(request), the groups of the inventory with their hosts.
    type: dict
  host:
    description: For V(decide), the host that gets it.
    type: str
  jobs:
    description: For V(request), the jobs of the backup, where they are known.
    type: list
    elements: dict
  kind:
    description: For V(decide) and V(target), what the path is, V(file), V(directory) or V(other).
    type: str
  name:
    description: For V(judge), the name of the snapshot.
    type: str
  over:
    description: For V(decide) and V(target), whether it goes over what is there.
    type: bool
    default: false
  path:
    description: For V(decide), the path that must not be there yet.
    type: str
  snapshot:
    description: For V(target), what P(longhaul.fleet.restore_choose#filter) returned.
    type: dict
"""

EXAMPLES = r"""
- name: Show what would be restored
  ansible.builtin.debug:
    msg: "{{ wish | longhaul.fleet.restore_logic('request', jobs=backup_jobs, groups=groups) }}"
  vars:
    wish: {from: web1, job: data, path: photos}
"""

RETURN = r"""
_value:
  description:
    - The answer.
    - V(changes) returns C(count), C(example), C(only) and C(warnings).
    - V(decide) returns the C(steps) in their order, or why it may not go there as C(refused).
    - V(judge) returns why the snapshot is C(refused), and what is C(said) before it is taken. Either may be empty.
    - V(request) returns C(repository), C(from), C(job), C(path), C(to), C(origin) and C(problems).
    - V(target) returns C(src) and C(dest) for a transfer, C(occupies), the path that must not be there yet, and
      C(problems).
  type: dict
"""

QUESTIONS: Mapping[str, str] = {
    "changes": "plugin_utils.fleet.source_changes.tell_changes",
    "decide": "plugin_utils.restore.place.decide",
    "judge": "plugin_utils.restore.integrity.judge",
    "request": "plugin_utils.restore.request.complete_request",
    "target": "plugin_utils.restore.target.find_target",
}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"restore_logic": make_filter("restore_logic", QUESTIONS)}
