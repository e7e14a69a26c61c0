# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""TCP settings for the speed of a host's links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.network.tcp import fastest, sysctl_file, tcp_settings

DOCUMENTATION = r"""
name: nic_tcp
short_description: "Internal: give the TCP settings for the speed of a host's links"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Part of the role P(longhaul.fleet.nic#role). Its options and what it returns may change in any release.
positional: _input
options:
  _input:
    description: What M(longhaul.fleet.nic_info) returned.
    type: dict
    required: true
  mtus:
    description: The MTUs that are wanted, by link. The links that are named count, all where none is.
    type: dict
    required: true
  current:
    description: The kernel's values of tcp_rmem, tcp_wmem and tcp_available_congestion_control.
    type: dict
    required: true
  speed:
    description: The speed in Mbit/s that counts instead of that of the links; V(0) for theirs.
    type: int
    default: 0
  congestion_control:
    description: The congestion control that is wanted. Empty for the one that is set.
    type: str
    default: ""
  qdisc:
    description: The queueing discipline for links that come up. Empty for the one that is set.
    type: str
    default: fq
  header:
    description: A comment for the top of the file.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show the settings
  ansible.builtin.debug:
    msg: "{{ (nic | longhaul.fleet.nic_tcp(mtus={'eth1': 9000}, current=values)).settings }}"
"""

RETURN = r"""
_value:
  description: The C(settings) by key, a file's C(content), C(problems), and the C(speed) that counts in Mbit/s.
  type: dict
"""


def nic_tcp(
    facts: Mapping[str, Any],
    mtus: Mapping[str, int],
    current: Mapping[str, str],
    speed: int = 0,
    congestion_control: str = "",
    qdisc: str = "fq",
    header: str = "",
) -> dict[str, Any]:
    """Give the settings, the file's text, and what is wrong with what was asked."""
    links = facts["links"]
    chosen = [link for name, link in links.items() if name in mtus] or list(links.values())
    counts = fastest([link.get("speed") for link in chosen], speed)
    largest = max([*mtus.values(), *(link["mtu"] or 0 for link in chosen if link["kind"] != "loopback")], default=0)
    settings, problems = tcp_settings(counts, largest, current, congestion_control, qdisc)
    return {"settings": settings, "content": sysctl_file(settings, header), "problems": problems, "speed": counts}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"nic_tcp": nic_tcp}
