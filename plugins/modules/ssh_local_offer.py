#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: ssh_local_offer
short_description: "Internal: say what the ssh client of a host offers to its peers"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Asks the OpenSSH client, with C(ssh -G), for the algorithms that it would offer to each peer under the system's configuration
    and crypto policy. The user's own configuration is not read.
  - Says whether the processor is quick at AES, which decides what the fastest cipher is.
  - Part of the role P(longhaul.fleet.ssh_client#role).
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.info
options:
  peers:
    description: The names of the peers, as a user of ssh would write them.
    type: list
    elements: str
    default: []
  config:
    description: The system's configuration of the client.
    type: path
    default: /etc/ssh/ssh_config
  drop_in:
    description: A file that O(config) may include. RV(includes) says whether it does.
    type: path
  ignore_drop_in:
    description: Answer as if O(drop_in) did not exist.
    type: bool
    default: false
  measure:
    description:
      - When to measure the processor with C(openssl speed), which takes two seconds.
      - V(auto) means where F(/proc/cpuinfo) does not say whether there are AES instructions.
    type: str
    choices: [auto, always, never]
    default: auto
seealso:
  - module: longhaul.fleet.ssh_offer
"""

EXAMPLES = r"""
- name: See which ciphers may be used on the way to the new host
  longhaul.fleet.ssh_local_offer:
    peers: [new.example.com]
  register: local
"""

RETURN = r"""
installed:
  description: Whether there is an OpenSSH client. Without one, lists are empty.
  returned: success
  type: bool
version:
  description: What C(ssh -V) says.
  returned: success
  type: str
  sample: OpenSSH_9.2p1 Debian-2+deb12u7, OpenSSL 3.0.17 1 Jul 2025
peers:
  description: What counts for each peer, by its name.
  returned: success
  type: dict
  sample:
    new.example.com:
      hostname: new.example.com
      port: 22
      proxied: false
      ciphers: [chacha20-poly1305@openssh.com, aes128-ctr, aes128-gcm@openssh.com]
      macs: [umac-64-etm@openssh.com]
      kex: [curve25519-sha256]
      host_keys: [ssh-ed25519]
built_in:
  description: What the client would offer without any configuration, with the lists C(ciphers), C(macs), C(kex) and C(host_keys).
  returned: success
  type: dict
supported:
  description: What the client has at all, in the same lists. Much of it is off for good reasons.
  returned: success
  type: dict
fips:
  description: Whether the kernel is in FIPS mode.
  returned: success
  type: bool
includes:
  description:
    - Whether O(config) includes O(drop_in). V(late) means from inside a Host or Match block, so not for all hosts.
  returned: success
  type: str
  sample: "yes"
aes:
  description: Whether the processor is quick at AES.
  returned: success
  type: bool
aes_reason:
  description: How that is known.
  returned: success
  type: str
  sample: the processor has AES instructions
speeds:
  description: What was measured, in bytes a second.
  returned: success
  type: dict
  sample: {}
"""

import glob
import os
import tempfile
from typing import Dict, List, Mapping, Sequence, cast

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._methods.ssh.sshd_config import SshdConfig, parse_sshd_config, split_list
from ..module_utils._ssh import config_text, processor

# What `ssh -G` calls the lists, and what `ssh -Q` does; the last of several is the name before OpenSSH 8.5.
LISTS = {
    "ciphers": ("ciphers", ("cipher",)),
    "macs": ("macs", ("mac",)),
    "kex": ("kexalgorithms", ("kex",)),
    "host_keys": ("hostkeyalgorithms", ("key-sig", "key")),
}
Lists = Dict[str, List[str]]  # by the names of LISTS
ATTEMPTS = 3  # at a measurement: on a busy host openssl may have been given no time at all, and prints no figure
NOBODY = "longhaul.invalid"  # a peer for whom nobody has configured anything


class Client:
    """The OpenSSH client of this host."""

    def __init__(self, module: AnsibleModule) -> None:
        """Find it; ``path`` is None if there is none."""
        self.module = module
        self.path = module.get_bin_path("ssh")

    def version(self) -> str:
        """Return its version string."""
        _rc, out, err = self.module.run_command([self.path, "-V"])
        return str(err or out).strip()

    def effective(self, config: str, peer: str) -> SshdConfig:
        """Return the effective configuration for a peer. Fail the module if ssh cannot read the configuration."""
        # -T, or ssh 10 remarks on stderr that there is no terminal
        rc, out, err = self.module.run_command([self.path, "-T", "-F", config, "-G", "--", peer])
        if rc:
            self.module.fail_json(
                msg=f"ssh cannot read its configuration: {err.strip().replace(config, self.module.params['config'])}. "
                "Every ssh on this host fails with it. Correct that file first."
            )
        return parse_sshd_config(out)

    def supported(self) -> Lists:
        """Return all algorithms that it supports."""
        return {name: self._query(questions) for name, (_keyword, questions) in LISTS.items()}

    def _query(self, questions: Sequence[str]) -> list[str]:
        for question in questions:
            rc, out, _err = self.module.run_command([self.path, "-Q", question])
            if rc == 0 and out.strip():
                return split_list(out)
        return []


def lists_of(found: SshdConfig) -> Lists:
    """Pick the lists of algorithms."""
    lists = cast(Mapping[str, List[str]], found)  # as far as they are picked
    return {name: lists.get(keyword, []) for name, (keyword, _questions) in LISTS.items()}


def one_peer(found: SshdConfig, name: str) -> dict[str, object]:
    """Return what the role needs to know about a peer."""
    proxied = any(found.get(keyword, "none") != "none" for keyword in ("proxyjump", "proxycommand"))
    port = found.get("port") or [22]
    return {"hostname": found.get("hostname", name), "port": port[0], "proxied": proxied, **lists_of(found)}


def read(path: str) -> str:
    """Return the text of a file, or an empty string if it does not exist."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except OSError:
        return ""


def measured(module: AnsibleModule, cpuinfo: str | None) -> dict[str, float]:
    """Measure the processor where that is wanted and openssl can do it."""
    wanted = module.params["measure"]
    if wanted == "never" or (wanted == "auto" and cpuinfo is not None and processor.by_flags(cpuinfo)):
        return {}
    openssl = module.get_bin_path("openssl")
    speeds = {name: _speed(module, openssl, name) for name in processor.MEASURED} if openssl else {}
    return {name: speed for name, speed in speeds.items() if speed}


def _speed(module: AnsibleModule, openssl: str, name: str) -> float | None:
    """Return the bytes a second of a cipher; None if openssl cannot measure it."""
    for _attempt in range(ATTEMPTS):
        rc, out, _err = module.run_command([openssl, "speed", "-mr", "-seconds", "1", "-bytes", "16384", "-evp", name])
        if rc:
            break
        speed = processor.parse_speed(out)
        if speed:
            return speed
    return None


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "peers": {"type": "list", "elements": "str", "default": []},
            "config": {"type": "path", "default": "/etc/ssh/ssh_config"},
            "drop_in": {"type": "path"},
            "ignore_drop_in": {"type": "bool", "default": False},
            "measure": {"type": "str", "choices": ["auto", "always", "never"], "default": "auto"},
        },
        required_if=[("ignore_drop_in", True, ["drop_in"])],
        supports_check_mode=True,
    )
    params = module.params
    text, folder = read(params["config"]), os.path.dirname(params["config"])
    cpuinfo = read("/proc/cpuinfo") or None
    speeds = measured(module, cpuinfo)
    verdict = processor.judge(cpuinfo, speeds)
    result = {
        "changed": False,
        "includes": config_text.includes(text, params["drop_in"], folder) if params["drop_in"] else "no",
        "fips": read("/proc/sys/crypto/fips_enabled").strip() == "1",
        "aes": verdict.aes,
        "aes_reason": verdict.reason,
        "speeds": speeds,
    }
    client = Client(module)
    empty: Lists = {name: [] for name in LISTS}
    if not client.path:
        module.exit_json(installed=False, version="", peers={}, built_in=empty, supported=empty, **result)
    # The program reads the system's configuration only by itself, and then the user's own with it; so it gets a copy.
    ignored = params["drop_in"] if params["ignore_drop_in"] else ""
    with tempfile.TemporaryDirectory(dir=module.tmpdir) as temporary:
        copied = os.path.join(temporary, "ssh_config")
        with open(copied, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(config_text.without(text, ignored, folder, glob.glob))
        peers = {name: one_peer(client.effective(copied, name), name) for name in params["peers"]}
    built_in = lists_of(client.effective("none", NOBODY))
    module.exit_json(
        installed=True,
        version=client.version(),
        peers=peers,
        built_in=built_in,
        supported=client.supported(),
        **result,
    )


if __name__ == "__main__":
    main()
