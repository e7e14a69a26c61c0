# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which snapshot is meant by a point in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

DOCUMENTATION = r"""
name: restore_choose
short_description: Choose the snapshot of a point in time
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Chooses among the snapshots that M(longhaul.fleet.snapshot) lists. Only complete ones count, unless another one is
    named exactly.
  - The time of a snapshot is the one when it was begun, which is its name.
  - It decides by its arguments alone, so the same question has the same answer everywhere.
positional: _input, when
options:
  _input:
    description: The snapshots, as RV(longhaul.fleet.snapshot#module:snapshots).
    type: list
    elements: dict
    required: true
  when:
    description:
      - V(latest); the name of a snapshot; or a point in time, for which the newest snapshot that is not later counts.
      - V(2026-11-01) is the end of that day, V(before 2026-11-01) its beginning. V(2026-11-01 14:30) is the end of that
        minute. An offset behind it, V(Z) or V(+02:00), counts more than O(timezone).
    type: raw
    default: latest
  timezone:
    description: The time zone of O(when), such as V(Europe/Berlin).
    type: str
    default: UTC
"""

EXAMPLES = r"""
- name: See what snapshots there are
  longhaul.fleet.snapshot:
    action: list
    repository: /srv/backup
    host: web1
    job: data
  register: listed

- name: Show the last one before November
  ansible.builtin.debug:
    msg: "{{ (listed.snapshots | longhaul.fleet.restore_choose('before 2026-11-01', timezone='Europe/Berlin')).name }}"
"""

RETURN = r"""
_value:
  description: What was chosen, or why nothing was.
  type: dict
  contains:
    name:
      description: The name of the snapshot. Empty if there is none.
      type: str
      sample: 2026-10-31T010002Z
    path:
      description: Its tree, as M(longhaul.fleet.snapshot) says.
      type: str
      sample: /srv/backup/web1/data/2026-10-31T010002Z/data
    state:
      description: Its state, as M(longhaul.fleet.snapshot) says.
      type: str
      sample: complete
    why:
      description: Why it is this one.
      type: str
      sample: the newest before 2026-11-01 (Europe/Berlin)
    problem:
      description: Why there is none, and what to do. Empty if there is one.
      type: str
      sample: ""
"""


def restore_choose(snapshots: Any, when: Any = "latest", timezone: str = "UTC") -> Any:
    """Return the snapshot that is meant, as choose_snapshot does."""
    # Ansible loads this file in the process of each task that has a filter of the collection.
    from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.choose import choose_snapshot

    return choose_snapshot(snapshots, when, timezone)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"restore_choose": restore_choose}
