#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: ssh_offer
short_description: Ask an ssh server which algorithms it offers
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Connects to an ssh server from the host that the task runs on, reads the algorithms that the server names unasked, and closes
    the connection. It does not log in, and needs no account, key or ssh client.
  - The server writes one line to its log about a connection that was closed before a login. OpenSSH 9.8 and newer count it with
    one second against the address that it came from, which has no effect before they are fifteen.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.info
options:
  host:
    description: The name or address of the server.
    type: str
    required: true
  port:
    description: Its port.
    type: int
    default: 22
  timeout:
    description: How many seconds all of it may take.
    type: int
    default: 10
seealso:
  - module: longhaul.fleet.ssh_local_offer
"""

EXAMPLES = r"""
- name: See what the old machine offers
  longhaul.fleet.ssh_offer:
    host: old.example.com
  register: offer

- name: Say which ciphers it takes
  ansible.builtin.debug:
    var: offer.ciphers
"""

RETURN = r"""
version:
  description: The line by which the server says what it is.
  returned: success
  type: str
  sample: SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7
address:
  description: The address that answered.
  returned: success
  type: str
  sample: 10.20.0.12
ciphers:
  description: The ciphers that it takes in both directions, in its own order.
  returned: success
  type: list
  elements: str
  sample: [chacha20-poly1305@openssh.com, aes128-ctr, aes128-gcm@openssh.com]
macs:
  description: The message authentication codes that it takes in both directions.
  returned: success
  type: list
  elements: str
  sample: [umac-64-etm@openssh.com, hmac-sha2-256]
kex:
  description: Its key exchanges.
  returned: success
  type: list
  elements: str
  sample: [curve25519-sha256, diffie-hellman-group14-sha256]
host_keys:
  description: The algorithms of its host keys.
  returned: success
  type: list
  elements: str
  sample: [rsa-sha2-512, ssh-ed25519]
compression:
  description: Its compressions.
  returned: success
  type: list
  elements: str
  sample: [none, zlib@openssh.com]
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._ssh.probe import NoAnswer, ask


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "host": {"type": "str", "required": True},
            "port": {"type": "int", "default": 22},
            "timeout": {"type": "int", "default": 10},
        },
        supports_check_mode=True,
    )
    host, port, timeout = (module.params[name] for name in ("host", "port", "timeout"))
    if not 0 < port < 65536 or timeout < 1:
        module.fail_json(msg=f"port must be from 1 to 65535 and timeout at least 1, not {port} and {timeout}.")
    try:
        answer = ask(host, port, timeout)
    except NoAnswer as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, version=answer.offer.version, address=answer.address, **answer.algorithms())


if __name__ == "__main__":
    main()
