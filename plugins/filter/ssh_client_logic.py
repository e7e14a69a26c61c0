# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role ssh_client asks of its logic in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.role_logic import make_filter

DOCUMENTATION = r"""
name: ssh_client_logic
short_description: "Internal: answer a question of the role ssh_client"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Answers the questions of the role P(longhaul.fleet.ssh_client#role). What it takes and returns may change in any
    release.
positional: _input, question
options:
  _input:
    description:
      - What the question is about.
      - The text of a configuration (V(includes)), the variable ssh_client_peers (V(peers)), or the C(peers) that
        V(peers) returned (V(plan)).
    type: raw
    required: true
  question:
    description:
      - V(includes) asks whether a configuration of ssh or sshd reads a file, by an C(Include) line that counts for all.
      - V(peers) asks for the peers with what the inventory knows of each, and what is wrong with them.
      - V(plan) asks what the client offers to each peer. It orders the ciphers, the fastest first, and adds none, so
        what a policy bans stays banned. For a peer that may use old algorithms, and that shares nothing newer, it adds
        what both ends have, unless the host's own configuration limits the algorithms.
    type: str
    choices: [includes, peers, plan]
    required: true
  ciphers:
    description: For V(plan), the ciphers to offer, in this order, instead of those that are chosen.
    type: list
    elements: str
    default: []
  folder:
    description: For V(includes), where patterns begin that are not absolute.
    type: path
  hostvars:
    description:
      - For V(peers) and V(plan), the variables of all hosts. A peer for which the role has run has told there whether
        it is quick at AES.
    type: dict
    default: {}
  legacy:
    description: For V(peers), the names of the peers that may use old algorithms.
    type: list
    elements: str
    default: []
  local:
    description: For V(plan), what M(longhaul.fleet.ssh_local_offer) returned on this host.
    type: dict
  offers:
    description:
      - For V(plan), what M(longhaul.fleet.ssh_offer) returned for each peer, by its name. Those that did not answer
        have no C(ciphers).
    type: dict
  options:
    description: For V(peers), further options of ssh_config for all peers. A peer's own count more.
    type: dict
    default: {}
  own_name:
    description: For V(peers), the inventory name of the host itself. It is left out of the peers.
    type: str
  path:
    description: For V(includes), the file.
    type: path
"""

EXAMPLES = r"""
- name: Show the peers
  ansible.builtin.debug:
    msg: "{{ ssh_client_peers | longhaul.fleet.ssh_client_logic('peers', hostvars=hostvars, own_name='web1') }}"
"""

RETURN = r"""
_value:
  description:
    - The answer.
    - V(includes) returns V(yes), V(no), or V(late) where the line stands inside a Host or Match block.
    - V(peers) returns the C(peers), and C(problems), a sentence for each.
    - V(plan) returns the C(blocks) of the configuration, C(peers) with the C(cipher) of each, the C(reason) and all
      C(ciphers), and C(problems) and C(warnings).
  type: raw
"""

QUESTIONS: Mapping[str, str] = {
    "includes": "module_utils._ssh.config_text.includes",
    "peers": "plugin_utils.ssh.peers.complete_peers",
    "plan": "plugin_utils.ssh.client_plan.plan_client",
}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"ssh_client_logic": make_filter("ssh_client_logic", QUESTIONS)}
