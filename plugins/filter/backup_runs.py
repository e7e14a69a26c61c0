# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which client is backed up by which job, to where, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup_jobs import make_runs

DOCUMENTATION = r"""
name: backup_runs
short_description: "Internal: make the runs of a list of backup jobs"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - A run is one job for one host. Those that go to one repository host are dealt to lanes, which go side by side and
    share its bandwidth.
  - Part of the role P(longhaul.fleet.backup#role). What a run holds may change in any release.
positional: _input
options:
  _input:
    description: The jobs, without problems, and with the options that count for all of them applied.
    type: list
    elements: dict
    required: true
  groups:
    description: The groups of the inventory with their hosts, V(all) among them.
    type: dict
    required: true
  only:
    description: The names of jobs, of hosts, or C(host/job), that shall run alone. Empty for all.
    type: list
    elements: str
    default: []
  concurrency:
    description: The most runs at once on one repository host.
    type: int
    default: 1
  bwlimit:
    description: The most bytes a second that one repository host receives, such as V(100M). V(0) means no limit.
    type: str
    default: "0"
  direction:
    description: Who connects, V(pull) or V(push).
    type: str
    default: pull
  records:
    description: What is known of earlier runs. The longest begin first.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Show what would run
  ansible.builtin.debug:
    msg: "{{ backup_jobs | longhaul.fleet.backup_runs(groups=groups, concurrency=4) | map(attribute='id') }}"
"""

RETURN = r"""
_value:
  description: The runs, those of one lane in their order.
  type: list
  elements: dict
"""


def backup_runs(
    jobs: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Sequence[str]],
    only: Sequence[str] = (),
    concurrency: int = 1,
    bwlimit: str = "0",
    direction: str = "pull",
    records: Sequence[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Give the runs."""
    seconds = {record["id"]: float(record["duration"]) for record in records if record.get("duration")}
    return make_runs(
        jobs,
        groups,
        only=only,
        concurrency=int(concurrency),
        bwlimit=bwlimit,
        direction=direction,
        seconds=seconds,
    )


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"backup_runs": backup_runs}
