#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nic_path_info
short_description: Test whether packets of a given size reach another host
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Sends packets that must not be fragmented, and determines what stops them. That is the link of this host, a router
    that reports it, or a layer-2 black hole, which silently drops large packets.
  - Tests the direction from this host to the other one. The answer may be fragmented on its way back, so run it on both
    hosts.
  - Needs C(ping) (that of iputils on Linux), and that ICMP echo is not blocked.
  - Its action reads nothing of the host's answer but the values below.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.info
options:
  from_host:
    description:
      - The inventory host that sends the packets, by default the host of the task.
      - Where one is named that cannot be asked, and O(required) is false, RV(verdict) is V(untested).
    type: str
    version_added: 0.2.0
  destination:
    description: The name of the other host in RV(problem). By default O(address).
    type: str
    version_added: 0.2.0
  address:
    description:
      - Address of the other host, IPv4 or IPv6. A name is looked up on the host that sends, and its first address is used,
        as ssh does.
    type: str
    required: true
  mtu:
    description:
      - Size of the packets, with their IP headers. By default the MTU of the outgoing link.
    type: int
  count:
    description: Number of packets of that size that are sent. One answer is enough.
    type: int
    default: 3
  patience:
    description:
      - Seconds during which a peer that does not answer at all is tried again. A new IPv6 address cannot be used at
        once, and a switch port with the spanning tree protocol takes up to 50 seconds to come up.
    type: float
    default: 0
  required:
    description: Whether the task fails if the packets do not pass.
    type: bool
    default: true
seealso:
  - module: longhaul.fleet.nic_info
"""

EXAMPLES = r"""
- name: Test that jumbo frames reach the other host
  longhaul.fleet.nic_path_info:
    address: 10.20.0.12
    mtu: 9000

- name: Find the largest packet that passes
  longhaul.fleet.nic_path_info:
    address: 2001:db8::12
    required: false
  register: path
"""

RETURN = r"""
passed:
  description: Whether packets of that size pass.
  returned: success
  type: bool
verdict:
  description:
    - V(passed), V(local) (the MTU of this host's link is too small), V(router) (that of a router on the path is),
      V(black_hole) (only small packets pass), V(unreachable) (nothing passes) or V(untested) (see O(from_host)).
  returned: success
  type: str
  sample: black_hole
message:
  description: What was found, and what to do.
  returned: success
  type: str
problem:
  description: From where to where packets of that size do not pass, and why. Empty if they pass.
  returned: success
  type: str
  version_added: 0.2.0
mtu:
  description: The size of the packets that were sent.
  returned: success
  type: int
  sample: 9000
largest:
  description: Size of the largest packet that passes, V(null) if none does.
  returned: success
  type: int
  sample: 1500
link:
  description: Outgoing link.
  returned: success
  type: str
  sample: eth1
link_mtu:
  description: The MTU of that link.
  returned: success
  type: int
  sample: 9000
source:
  description: Source address on this host.
  returned: success
  type: str
  sample: 10.20.0.11
sent:
  description: How many packets were sent.
  returned: success
  type: int
  sample: 3
received:
  description: How many of them were answered.
  returned: success
  type: int
  sample: 3
"""

import ipaddress
import socket

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._network.mtu import LARGEST, SMALLEST_IPV4, SMALLEST_IPV6
from ansible_collections.longhaul.fleet.plugins.module_utils._network.ping import NoPing, test_path


def find_address(named: str) -> str:
    """Return an address, or the first one of a name. Raises ValueError if there is none."""
    try:
        return str(ipaddress.ip_address(named))
    except ValueError:
        pass
    try:
        return str(socket.getaddrinfo(named, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as error:
        raise ValueError(f"{named!r} is no address, and this host finds none for it: {error}") from None


def main() -> None:
    """Test the path."""
    module = AnsibleModule(
        argument_spec={
            "from_host": {"type": "str"},  # these three are for the action
            "destination": {"type": "str"},
            "required": {"type": "bool", "default": True},
            "address": {"type": "str", "required": True},
            "mtu": {"type": "int"},
            "count": {"type": "int", "default": 3},
            "patience": {"type": "float", "default": 0},
        },
        supports_check_mode=True,
    )
    address, mtu, count = (module.params[name] for name in ("address", "mtu", "count"))
    try:
        address = find_address(address)
    except ValueError as error:
        module.fail_json(msg=f"nic_path_info: {error}. Correct the name, or give an address")
    least = SMALLEST_IPV6 if ":" in address else SMALLEST_IPV4
    if mtu is not None and not least <= mtu <= LARGEST:
        module.fail_json(msg=f"nic_path_info: mtu is {mtu}; it must be from {least} to {LARGEST}")
    if count < 1:
        module.fail_json(msg=f"nic_path_info: count is {count}; it must be at least 1")
    try:
        found = test_path(address, mtu, count, module.params["patience"])
    except (NoPing, RuntimeError) as error:
        module.fail_json(msg=f"nic_path_info: {error}")
    module.exit_json(changed=False, **found._asdict())


if __name__ == "__main__":
    main()
