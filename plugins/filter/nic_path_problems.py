# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What path tests in both directions came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._network.ping import worst

DOCUMENTATION = r"""
name: nic_path_problems
short_description: "Internal: say which paths do not take the packets that they must take"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Part of the role P(longhaul.fleet.nic#role). Its options and what it returns may change in any release.
positional: _input
options:
  _input:
    description: The results of M(longhaul.fleet.nic_path_test) in a loop over peers, from this host to each of them.
    type: list
    elements: dict
    required: true
  back:
    description: The same from the peers to this host.
    type: list
    elements: dict
    default: []
  host:
    description: The name of this host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show what does not pass
  ansible.builtin.debug:
    msg: "{{ forth.results | longhaul.fleet.nic_path_problems(back=back.results, host=inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: A sentence for each direction that does not pass.
  type: list
  elements: str
"""


def nic_path_problems(
    forth: Sequence[Mapping[str, Any]], host: str, back: Sequence[Mapping[str, Any]] = ()
) -> list[str]:
    """Give the sentences. A test that gave no answer at all, since its host was not reached, has not passed."""
    tests = []
    for results, outward in ((forth, True), (back, False)):
        for result in results:
            if result.get("skipped"):
                continue
            peer = result["item"]
            name = peer.get("host") or peer["address"]
            unanswered = result.get("msg") or "the test gave no answer"
            tests.append(
                {
                    "from": host if outward else name,
                    "to": f"{name} ({peer['address']})" if outward and peer.get("host") else name if outward else host,
                    "passed": result.get("passed", False),
                    "largest": result.get("largest"),
                    "message": result.get("message", unanswered),
                }
            )
    return worst(tests)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"nic_path_problems": nic_path_problems}
