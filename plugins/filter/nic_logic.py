# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role nic asks of its logic in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.role_logic import make_filter

DOCUMENTATION = r"""
name: nic_logic
short_description: "Internal: answer a question of the role nic"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Answers the questions of the role P(longhaul.fleet.nic#role). What it takes and returns may change in any
    release.
positional: _input, question
options:
  _input:
    description:
      - What the question is about.
      - The links that are wanted, as the role's nic_links (V(commands), V(plan)), the results of
        M(longhaul.fleet.nic_path_info) in a loop over peers, from this host to each of them (V(path_problems)), or what
        M(longhaul.fleet.nic_info) returned (V(tcp)).
    type: raw
    required: true
  question:
    description:
      - V(commands) asks for the commands that bring changed network files to life, and those that undo it.
      - V(path_problems) asks which paths do not take the packets that they must take.
      - V(plan) asks for the network files and what stands in their way.
      - V(tcp) asks for the TCP settings of the host.
    type: str
    choices: [commands, path_problems, plan, tcp]
    required: true
  back:
    description: For V(path_problems), the results from the peers to this host.
    type: list
    elements: dict
    default: []
  changed:
    description: For V(commands), the files that will be changed or removed.
    type: list
    elements: str
  congestion_control:
    description: For V(tcp), the congestion control that is wanted. Empty for the one that is set.
    type: str
    default: ""
  current:
    description: For V(tcp), the kernel's values of tcp_rmem, tcp_wmem and tcp_available_congestion_control.
    type: dict
  edit_existing:
    description:
      - For V(plan), whether files that are not the role's may be changed, where the manager knows no additions to them.
    type: bool
    default: false
  facts:
    description: For V(commands) and V(plan), what M(longhaul.fleet.nic_info) returned.
    type: dict
  header:
    description: For V(plan) and V(tcp), a comment for the top of each file.
    type: str
    default: ""
  host:
    description: For V(path_problems), the name of this host.
    type: str
  manager:
    description: For V(plan), the network manager to use, or V(auto).
    type: str
    default: auto
  mtus:
    description: For V(tcp), the MTUs that are wanted, by link. The links that are named count, all where none is.
    type: dict
  plan:
    description: For V(commands), what V(plan) returned.
    type: dict
  qdisc:
    description: For V(tcp), the queueing discipline for links that come up. Empty for the one that is set.
    type: str
    default: fq
  speed:
    description: For V(tcp), the speed in Mbit/s that counts instead of that of the links. V(0) for theirs.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Show what stands in the way
  ansible.builtin.debug:
    msg: "{{ (nic_links | longhaul.fleet.nic_logic('plan', facts=nic)).problems }}"

- name: Show the TCP settings
  ansible.builtin.debug:
    msg: "{{ (nic | longhaul.fleet.nic_logic('tcp', mtus={'eth1': 9000}, current=values)).settings }}"
"""

RETURN = r"""
_value:
  description:
    - The answer.
    - V(commands) returns the lists C(apply), C(restore) and C(boot), of commands that are lists of a program and its
      arguments.
    - V(path_problems) returns a sentence for each direction that does not pass.
    - V(plan) returns the plan, with C(problems), C(files), C(absent), C(live) and more. With problems use nothing else.
    - V(tcp) returns the C(settings) by key, a file's C(content), C(problems), and the C(speed) that counts in Mbit/s.
  type: raw
"""

QUESTIONS: Mapping[str, str] = {
    "commands": "plugin_utils.network.plan.make_commands",
    "path_problems": "plugin_utils.network.path_problems.find_path_problems",
    "plan": "plugin_utils.network.plan.make_plan",
    "tcp": "plugin_utils.network.tcp.plan_tcp",
}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"nic_logic": make_filter("nic_logic", QUESTIONS)}
