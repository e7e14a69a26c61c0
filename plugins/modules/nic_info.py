#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nic_info
short_description: Show a host's network links, who manages them and which one Ansible comes in by
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Lists the links with their MTU, the limits of their drivers, what lies on top of them and below, their addresses, their speed, and
    the program that manages each of them.
  - Says which link carries the connection in use, and whether the host is in a cloud.
  - Needs Python and, on Linux, iproute2. Managers are found only as root where they tell others nothing.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.info
seealso:
  - module: longhaul.fleet.nic_path_info
"""

EXAMPLES = r"""
- name: Look at the links
  longhaul.fleet.nic_info:
  register: nic

- name: Show who manages which link
  ansible.builtin.debug:
    msg: "{{ item.key }}: MTU {{ item.value.mtu }}, managed by {{ item.value.manager or 'nobody' }}"
  loop: "{{ nic.links | dict2items }}"
"""

RETURN = r"""
system:
  description: The operating system's kernel.
  returned: success
  type: str
  sample: Linux
links:
  description:
    - The links by name. Each has C(name), C(kind) (C(physical), C(bond), C(vlan), C(bridge), C(veth) and so on), C(mtu), C(min_mtu)
      and C(max_mtu) (the driver's limits; C(null) where it says none), C(up), C(mac), C(speed) in Mbit/s, C(driver), C(master) (the
      bond or bridge that it is a port of), C(parent) (what a VLAN is on), C(ports), C(children), C(addresses), C(manager) and
      C(manager_detail).
  returned: success
  type: dict
connection:
  description: The C(link) and C(address) by which Ansible came in, and the C(peer) that it came from. All V(null) for a local connection.
  returned: success
  type: dict
cloud:
  description: The name of the cloud that the host is in, V(null) where it is in none.
  returned: success
  type: str
  sample: Amazon EC2
managers:
  description: Which managers of networks are C(present) on the host, and what each is like.
  returned: success
  type: dict
default_manager:
  description: The manager for links that nobody has yet. V(null) where that cannot be told.
  returned: success
  type: str
  sample: netplan
ping:
  description: Whether a C(ping) that can test a path is C(usable) here, and the C(package) that would bring it.
  returned: success
  type: dict
  sample: {usable: true, package: iputils-ping}
own_files:
  description: The files of the role P(longhaul.fleet.nic#role), by path.
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._network.discover import discover
from ansible_collections.longhaul.fleet.plugins.module_utils._network.ping import find_ping


def main() -> None:
    """Gather the facts and exit."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    try:
        host = discover()
        ping = find_ping(host.system)
    except (RuntimeError, OSError, ValueError) as error:
        module.fail_json(msg=f"nic_info: {error}")
    module.exit_json(changed=False, **host.dump(), ping=ping._asdict())


if __name__ == "__main__":
    main()
