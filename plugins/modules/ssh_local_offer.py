#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: ssh_local_offer
short_description: "Internal: decide what the ssh client of a host offers to its peers"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Asks the OpenSSH client, with C(ssh -G), for the algorithms that it would offer to each peer under the system's configuration
    and crypto policy. The user's own configuration is not read.
  - Says whether the processor is quick at AES, which decides what the fastest cipher is.
  - With O(state=planned), asks each peer which algorithms it supports, and orders the ciphers, the fastest first. It adds none, so
    what a policy bans stays banned. For a peer that may use old algorithms, and that shares nothing newer, it adds what both ends
    have, unless the host's own configuration limits the algorithms.
  - Part of the role P(longhaul.fleet.ssh_client#role).
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.info
options:
  state:
    description:
      - V(checked) completes O(peers) from O(inventory) and checks them. It needs no ssh client.
      - V(read) reads what the client offers. V(planned) decides, too.
    type: str
    choices: [checked, read, planned]
    default: read
    version_added: 0.2.0
  peers:
    description:
      - The peers. The C(name) is what a user of ssh would write. With V(checked), the others are as in the role's ssh_client_peers,
        with V(planned) they are RV(completed).
    type: list
    elements: dict
    default: []
  inventory:
    description: By the name of a peer, the C(address), the C(port) and whether it is quick at AES (C(aes)), as far as they are known.
    type: dict
    default: {}
    version_added: 0.2.0
  own_name:
    description: For V(checked), the inventory name of the host itself. It is left out of the peers.
    type: str
    default: ""
    version_added: 0.2.0
  legacy:
    description: For V(checked), the names of the peers that may use old algorithms.
    type: list
    elements: str
    default: []
    version_added: 0.2.0
  options:
    description: For V(checked), further options of ssh_config for all peers. A peer's own count more.
    type: dict
    default: {}
    version_added: 0.2.0
  ciphers:
    description: For V(planned), the ciphers to offer, in this order, instead of those that are chosen.
    type: list
    elements: str
    default: []
    version_added: 0.2.0
  probe:
    description: For V(planned), whether peers are asked. A peer behind a jump host is not.
    type: bool
    default: true
    version_added: 0.2.0
  timeout:
    description: For V(planned), how many seconds a peer may take.
    type: int
    default: 10
    version_added: 0.2.0
  aes:
    description: Whether the processor is quick at AES, where that is known already. It is not measured again.
    type: bool
    version_added: 0.2.0
  aes_reason:
    description: How O(aes) is known.
    type: str
    default: ""
    version_added: 0.2.0
  server_config:
    description: The configuration of the server. RV(server_includes) says whether it includes O(server_drop_in).
    type: path
    version_added: 0.2.0
  server_drop_in:
    description: A file that O(server_config) may include.
    type: path
    version_added: 0.2.0
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
    peers:
      - name: new.example.com
  register: local
"""

RETURN = r"""
completed:
  description: The peers, each with C(name), C(address), C(port), C(patterns), C(options) and C(legacy).
  returned: O(state=checked)
  type: list
  elements: dict
problems:
  description: A sentence for each thing that is wrong with the peers, or with the ciphers for them.
  returned: O(state=checked) and O(state=planned)
  type: list
  elements: str
plan:
  description:
    - The C(blocks) of the configuration, and the C(ciphers) by peer. Beside it are C(said), lines that tell the decision, and
      C(addresses), those of the peers that answered.
  returned: O(state=planned)
  type: dict
installed:
  description: Whether there is an OpenSSH client. Without one, lists are empty.
  returned: O(state=read) and O(state=planned)
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
server_includes:
  description: The same of O(server_config) and O(server_drop_in), or V(missing) where there is no such configuration.
  returned: O(server_config)
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
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Mapping, Sequence, cast

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._methods.ssh.sshd_config import SshdConfig, parse_sshd_config, split_list
from ..module_utils._ssh import local_offer
from ..module_utils._ssh.client_plan import plan_client
from ..module_utils._ssh.peers import SshPeer, complete_peers
from ..module_utils._ssh.probe import NoAnswer, ask

# What `ssh -G` calls the lists, and what `ssh -Q` does; the last of several is the name before OpenSSH 8.5.
LISTS = {
    "ciphers": ("ciphers", ("cipher",)),
    "macs": ("macs", ("mac",)),
    "kex": ("kexalgorithms", ("kex",)),
    "host_keys": ("hostkeyalgorithms", ("key-sig", "key")),
}
Lists = Dict[str, List[str]]  # by the names of LISTS
AT_ONCE = 16  # peers that are asked at the same time
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
    if wanted == "never" or (wanted == "auto" and cpuinfo is not None and local_offer.aes_by_flags(cpuinfo)):
        return {}
    openssl = module.get_bin_path("openssl")
    speeds = {name: _speed(module, openssl, name) for name in local_offer.MEASURED} if openssl else {}
    return {name: speed for name, speed in speeds.items() if speed}


def _speed(module: AnsibleModule, openssl: str, name: str) -> float | None:
    """Return the bytes a second of a cipher; None if openssl cannot measure it."""
    for _attempt in range(ATTEMPTS):
        rc, out, _err = module.run_command([openssl, "speed", "-mr", "-seconds", "1", "-bytes", "16384", "-evp", name])
        if rc:
            break
        speed = local_offer.parse_speed(out)
        if speed:
            return speed
    return None


def judge_processor(module: AnsibleModule) -> dict[str, object]:
    """Return whether the processor is quick at AES, as it was given or by a look at it."""
    params = module.params
    if params["aes"] is not None:
        return {"aes": params["aes"], "aes_reason": params["aes_reason"], "speeds": {}}
    cpuinfo = read("/proc/cpuinfo") or None
    speeds = measured(module, cpuinfo)
    verdict = local_offer.assess_aes(cpuinfo, speeds)
    return {"aes": verdict.aes, "aes_reason": verdict.reason, "speeds": speeds}


def read_client(module: AnsibleModule) -> dict[str, Any]:
    """Return what the client offers to each peer, and what it has at all."""
    params = module.params
    text, folder = read(params["config"]), os.path.dirname(params["config"])
    result: dict[str, Any] = {
        "includes": local_offer.includes(text, params["drop_in"], folder) if params["drop_in"] else "no",
        "fips": read("/proc/sys/crypto/fips_enabled").strip() == "1",
        **judge_processor(module),
    }
    server = params["server_config"]
    if server:
        included = local_offer.includes(read(server), params["server_drop_in"], os.path.dirname(server))
        result["server_includes"] = included if os.path.exists(server) else "missing"
    client = Client(module)
    empty: Lists = {name: [] for name in LISTS}
    if not client.path:
        return {"installed": False, "version": "", "peers": {}, "built_in": empty, "supported": empty, **result}
    # The program reads the system's configuration only by itself, and then the user's own with it; so it gets a copy.
    ignored = params["drop_in"] if params["ignore_drop_in"] else ""
    with tempfile.TemporaryDirectory(dir=module.tmpdir) as temporary:
        copied = os.path.join(temporary, "ssh_config")
        with open(copied, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(local_offer.without(text, ignored, folder, glob.glob))
        names = [peer["name"] for peer in params["peers"]]
        peers = {name: one_peer(client.effective(copied, name), name) for name in names}
    return {
        "installed": True,
        "version": client.version(),
        "peers": peers,
        "built_in": lists_of(client.effective("none", NOBODY)),
        "supported": client.supported(),
        **result,
    }


def decide(module: AnsibleModule, local: dict[str, Any]) -> dict[str, object]:
    """Ask each peer, and decide what it is offered."""
    params = module.params

    def offer_of(peer: SshPeer) -> dict[str, Any]:
        known = local["peers"].get(peer["name"], {})
        if not params["probe"] or known.get("proxied"):
            return {}
        host = peer["address"] or known.get("hostname") or peer["name"]
        try:
            answer = ask(host, peer["port"] or known.get("port") or 22, params["timeout"])
        except NoAnswer as error:
            return {"msg": str(error)}
        return {"address": answer.address, **answer.algorithms()}

    peers = params["peers"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        offers = dict(zip([peer["name"] for peer in peers], pool.map(offer_of, peers)))
    plan = plan_client(peers, local, offers, params["inventory"], params["ciphers"])
    told = [f"{name}: {one['cipher'] or 'no cipher'}, {one['reason']}" for name, one in plan["peers"].items()]
    return {
        "plan": {"blocks": plan["blocks"], "ciphers": {name: one["ciphers"] for name, one in plan["peers"].items()}},
        "problems": plan["problems"],
        "said": told + plan["warnings"],
        "addresses": sorted({offer["address"] for offer in offers.values() if "address" in offer}),
    }


def main() -> None:
    """Check the peers; or read what they are offered, and decide."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["checked", "read", "planned"], "default": "read"},
            "peers": {"type": "list", "elements": "dict", "default": []},
            "inventory": {"type": "dict", "default": {}},
            "own_name": {"type": "str", "default": ""},
            "legacy": {"type": "list", "elements": "str", "default": []},
            "options": {"type": "dict", "default": {}},
            "ciphers": {"type": "list", "elements": "str", "default": []},
            "probe": {"type": "bool", "default": True},
            "timeout": {"type": "int", "default": 10},
            "aes": {"type": "bool"},
            "aes_reason": {"type": "str", "default": ""},
            "config": {"type": "path", "default": "/etc/ssh/ssh_config"},
            "drop_in": {"type": "path"},
            "ignore_drop_in": {"type": "bool", "default": False},
            "server_config": {"type": "path"},
            "server_drop_in": {"type": "path"},
            "measure": {"type": "str", "choices": ["auto", "always", "never"], "default": "auto"},
        },
        required_if=[("ignore_drop_in", True, ["drop_in"])],
        required_together=[("server_config", "server_drop_in")],
        supports_check_mode=True,
    )
    params = module.params
    if params["state"] == "checked":
        given = complete_peers(
            params["peers"], params["inventory"], params["own_name"], params["legacy"], params["options"]
        )
        completed, problems = given["peers"], given["problems"]
        module.exit_json(changed=False, completed=completed, problems=problems, **judge_processor(module))
    local = read_client(module)
    module.exit_json(changed=False, **local, **(decide(module, local) if params["state"] == "planned" else {}))


if __name__ == "__main__":
    main()
