#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: rsyncd_firewall
short_description: "Internal: open a port in the firewall that is in use"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Finds the firewall that is in use (firewalld, ufw, nftables or pf) and lets clients of the rsync daemon in, now and after the next
    boot. Where none is in use, nothing is done.
  - New rules for nftables and pf are tried by these programs before they are put in place. No rule of others is changed.
  - Part of the role P(longhaul.fleet.rsyncd#role).
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  diff_mode:
    support: none
    details:
      - The commands are in RV(commands).
options:
  port:
    description:
      - The port of the daemon.
    type: int
    default: 873
  sources:
    description:
      - The addresses and networks that are let in. Without any, those of O(modules).
    type: list
    elements: str
    default: []
  modules:
    description:
      - The modules of the daemon, as RV(longhaul.fleet.rsyncd_config#module:modules) gives them. Where each of them has addresses in
        C(hosts_allow), these are let in, otherwise everybody.
    type: list
    elements: dict
    default: []
seealso:
  - module: longhaul.fleet.rsyncd_config
"""

EXAMPLES = r"""
- name: Let the backup server in
  longhaul.fleet.rsyncd_firewall:
    sources: [10.20.0.11]
"""

RETURN = r"""
firewall:
  description: The firewall that is in use; V(none) if there is none.
  returned: success
  type: str
  sample: nftables
sources:
  description: The addresses and networks that are let in; empty for all.
  returned: success
  type: list
  elements: str
commands:
  description: What was run, or would be run, to change it.
  returned: success
  type: list
  elements: str
"""

import json
import os
import shlex
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd import firewall
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.access import sources as sources_of_modules
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.conf import read_text

_NFT_FILES = ("/etc/nftables.conf", "/etc/sysconfig/nftables.conf", "/etc/nftables.nft")
_PF_FILE = "/etc/pf.conf"
_PF_ANCHOR = "longhaul-rsyncd"


class Firewall:
    """The firewall of this host, and what was done to it."""

    def __init__(self, module: AnsibleModule, port: int, sources: list[str]) -> None:
        self._module, self._port, self._sources = module, port, sources
        self.commands: list[str] = []

    def open(self) -> str:
        """Open the port in the firewall that is in use; give its name."""
        if self._says("firewall-cmd", ["--state"], "running"):
            self._firewalld()
            return "firewalld"
        if self._says("ufw", ["status"], "Status: active"):
            self._ufw()
            return "ufw"
        if self._says("pfctl", ["-s", "info"], "Status: Enabled"):
            self._pf()
            return "pf"
        chains = self._nft_chains()
        if chains:
            self._nft(chains)
            return "nftables"
        return "none"

    def _says(self, program: str, arguments: list[str], words: str) -> bool:
        path = self._module.get_bin_path(program)
        if path is None:
            return False
        code, out, _err = self._run([path, *arguments])
        return code == 0 and words in out

    def _run(self, argv: list[str], data: str | None = None) -> tuple[int, str, str]:
        code, out, err = self._module.run_command(argv, data=data, environ_update={"LC_ALL": "C", "LANGUAGE": "C"})
        return code, out, err

    def _change(self, argv: list[str]) -> None:
        """Run a command that changes something; raises through fail_json where it fails."""
        self.commands.append(" ".join(shlex.quote(word) for word in argv))
        if self._module.check_mode:
            return
        code, out, err = self._run(argv)
        if code:
            said = (err or out).strip()
            self._module.fail_json(
                msg=f"the firewall did not take the rule: {said or f'exit code {code}'}. The port {self._port} is not open. "
                f"Open it by hand and set rsyncd_manage_firewall: false. The command was: {self.commands[-1]}"
            )

    def _firewalld(self) -> None:
        for ask in firewall.firewalld(self._port, self._sources):
            if self._run(list(ask.query))[0]:
                self._change(list(ask.add))

    def _ufw(self) -> None:
        for rule in firewall.ufw(self._port, self._sources):
            if not firewall.ufw_has(self._run(["ufw", "--dry-run", *rule])[1]):
                self._change(["ufw", *rule])

    def _nft_chains(self) -> list[firewall.Chain]:
        nft = self._module.get_bin_path("nft")
        if nft is None:
            return []
        code, out, _err = self._run([nft, "--json", "list", "ruleset"])
        chains = firewall.input_chains(json.loads(out)) if code == 0 and out.strip() else []
        return [chain for chain in chains if chain.closed]

    def _nft(self, chains: list[firewall.Chain]) -> None:
        kept: list[str] = []
        for chain in chains:
            rules = firewall.nft_rules(chain, self._port, self._sources)
            kept += rules
            wanted = [firewall.comment_of(rule) for rule in rules]
            for rule in rules:
                if firewall.comment_of(rule) not in [comment for _handle, comment in chain.ours]:
                    self._change(["nft", f"insert rule {rule}"])
            for handle, comment in chain.ours:
                if comment not in wanted:
                    self._change(["nft", f"delete rule {chain.family} {chain.table} {chain.name} handle {handle}"])
        main = next((path for path in _NFT_FILES if os.path.exists(path)), None)
        if main is None:
            self._module.warn(
                "nftables is in use, and none of its files is where distributions have it: the port is open until the next "
                f"boot. Add to your ruleset: {firewall.nft_file(kept).strip()}"
            )
            return
        own = os.path.join(os.path.dirname(main), "longhaul-rsyncd.nft")
        text, before = firewall.nft_file(kept), read_text(main)
        self._keep({own: text, main: firewall.nft_main(before, own)}, main, ["nft", "--check", "--file"], own)

    def _pf(self) -> None:
        own = f"/etc/pf.{_PF_ANCHOR}.conf"
        files = {
            own: firewall.pf_rules(self._port, self._sources),
            _PF_FILE: firewall.pf_main(read_text(_PF_FILE), _PF_ANCHOR, own),
        }
        if self._keep(files, _PF_FILE, ["pfctl", "-n", "-f"], own):
            self._change(["pfctl", "-f", _PF_FILE])

    def _keep(self, files: dict[str, str], main: str, check: list[str], own: str) -> bool:
        """Write the files for the next boot, when the program takes them together; give whether any changed."""
        changed = {path: text for path, text in files.items() if not os.path.exists(path) or read_text(path) != text}
        if not changed:
            return False
        with tempfile.TemporaryDirectory(dir=self._module.tmpdir) as place:
            trial, beside = os.path.join(place, "main"), os.path.join(place, "own")
            for path, text in ((beside, files[own]), (trial, files[main].replace(f'"{own}"', f'"{beside}"'))):
                with open(path, "w", encoding="utf-8") as stream:
                    stream.write(text)
            code, out, err = self._run([*check, trial])
        if code:
            self._module.warn(
                f"{main} was left as it is: with a rule for the rsync daemon it would not be understood "
                f"({(err or out).strip()}). Open port {self._port} there by hand, or it is closed after the next boot"
            )
            return False
        for path, text in changed.items():
            self.commands.append(f"write {path}")
            if not self._module.check_mode:
                handle, fresh = tempfile.mkstemp(dir=self._module.tmpdir)
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    stream.write(text)
                os.chmod(fresh, os.stat(path).st_mode & 0o7777 if os.path.exists(path) else 0o644)
                self._module.atomic_move(fresh, path)
        return True


def main() -> None:
    """Find the firewall, and open the port in it."""
    module = AnsibleModule(
        argument_spec={
            "port": {"type": "int", "default": 873},
            "sources": {"type": "list", "elements": "str", "default": []},
            "modules": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        asked = module.params["sources"] or sources_of_modules(module.params["modules"])
        sources = firewall.addresses(asked)
    except ValueError as error:
        module.fail_json(msg=f"rsyncd_firewall_sources: {error}. Nothing was changed")
    found = Firewall(module, module.params["port"], sources)
    name = found.open()
    module.exit_json(changed=bool(found.commands), firewall=name, sources=sources, commands=found.commands)


if __name__ == "__main__":
    main()
