#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nic_path_test
short_description: Prove that packets of a given size pass to another host
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Sends packets that must not be fragmented, and tells apart what stops them. That is the link of this host, a router that says so, or
    a layer-2 black hole, in which large packets vanish without a word.
  - Proves the direction from this host to the other one. The answer may be fragmented on its way back, so run it on both hosts.
  - Needs C(ping) (that of iputils on Linux), and that ICMP echo is not blocked.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.info
options:
  address:
    description: The address of the other host, IPv4 or IPv6.
    type: str
    required: true
  mtu:
    description:
      - The size of the packets, with their IP headers. Without it, the MTU of the link that they leave by.
    type: int
  count:
    description: How many packets of that size are sent. One that is answered is enough.
    type: int
    default: 3
  patience:
    description:
      - Seconds in which a peer that gives no answer at all is tried again. An IPv6 address that was just set cannot be used at once,
        and a switch port that just came up with the spanning tree protocol takes up to 50 seconds.
    type: float
    default: 0
  required:
    description: Whether the task fails where the packets do not pass.
    type: bool
    default: true
seealso:
  - module: longhaul.fleet.nic_info
"""

EXAMPLES = r"""
- name: Prove that jumbo frames pass to the other host
  longhaul.fleet.nic_path_test:
    address: 10.20.0.12
    mtu: 9000

- name: Find the largest packet that passes
  longhaul.fleet.nic_path_test:
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
    - V(passed), V(local) (the link of this host is too small), V(router) (a router on the way is), V(black_hole) (large packets vanish,
      small ones pass) or V(unreachable) (nothing passes).
  returned: success
  type: str
  sample: black_hole
message:
  description: What was found, and what to do.
  returned: success
  type: str
mtu:
  description: The size of the packets that were sent.
  returned: success
  type: int
  sample: 9000
largest:
  description: The size of the largest packet that passes, V(null) where none does.
  returned: success
  type: int
  sample: 1500
link:
  description: The link by which they left.
  returned: success
  type: str
  sample: eth1
link_mtu:
  description: The MTU of that link.
  returned: success
  type: int
  sample: 9000
source:
  description: The address of this host that they came from.
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

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._network.mtu import LARGEST, SMALLEST_IPV4, SMALLEST_IPV6
from ansible_collections.longhaul.fleet.plugins.module_utils._network.pinging import NoPing, test_path


def main() -> None:
    """Test the path."""
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "required": True},
            "mtu": {"type": "int"},
            "count": {"type": "int", "default": 3},
            "patience": {"type": "float", "default": 0},
            "required": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    address, mtu, count = (module.params[name] for name in ("address", "mtu", "count"))
    try:
        version = ipaddress.ip_address(address).version
    except ValueError as error:
        module.fail_json(msg=f"nic_path_test: {error}; give an address, since a name may stand for several")
    least = SMALLEST_IPV6 if version == 6 else SMALLEST_IPV4
    if mtu is not None and not least <= mtu <= LARGEST:
        module.fail_json(msg=f"nic_path_test: mtu is {mtu}; it must be from {least} to {LARGEST}")
    if count < 1:
        module.fail_json(msg=f"nic_path_test: count is {count}; it must be at least 1")
    try:
        found = test_path(address, mtu, count, module.params["patience"])
    except (NoPing, RuntimeError) as error:
        module.fail_json(msg=f"nic_path_test: {error}")
    if module.params["required"] and not found["passed"]:
        largest = f" The largest that passes has {found['largest']} bytes." if found["largest"] else ""
        module.fail_json(msg=f"to {address}: {found['message']}.{largest}", **found)
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
