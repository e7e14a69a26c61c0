#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: rsyncd_selinux
short_description: "Internal: let the rsync daemon at its modules through SELinux"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Sets booleans, types of files and the type of the port, now and for the next boot, as far as the modules need them.
  - Part of the role P(longhaul.fleet.rsyncd#role). Needs C(getsebool), C(setsebool), and for types and ports C(semanage) and
    C(restorecon).
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  diff_mode:
    support: none
    details:
      - The commands are in RV(commands).
options:
  how:
    description:
      - With V(boolean), the daemon may reach files of any type. With V(context), the files of the modules get the types
        V(public_content_t) and V(public_content_rw_t).
    type: str
    choices: [boolean, context]
    default: boolean
  port:
    description:
      - The port of the daemon.
    type: int
    default: 873
  modules:
    description:
      - The modules of the daemon, as RV(longhaul.fleet.rsyncd_config#module:modules) gives them.
    type: list
    elements: dict
    default: []
seealso:
  - module: longhaul.fleet.rsyncd_config
"""

EXAMPLES = r"""
- name: Let the daemon write
  longhaul.fleet.rsyncd_selinux:
    modules:
      - {name: data, path: /srv/data, read_only: false}
"""

RETURN = r"""
commands:
  description: What was run, or would be run, to change it.
  returned: success
  type: list
  elements: str
"""

import shlex

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd import selinux


class SelinuxPolicy:
    """SELinux on this host, and what was done to it."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self.commands: list[str] = []

    def meet(self, needs: selinux.SelinuxRequirements) -> None:
        """Change what is not as it must be."""
        for name in needs.booleans:
            if not selinux.boolean_is_on(self._ask(["getsebool", name])):
                self._change(["setsebool", "-P", name, "on"])
        local = self._ask(["semanage", "fcontext", "--list", "--locallist", "--noheading"]) if needs.types else ""
        for path, kind in needs.types:
            if not selinux.has_type(local, path, kind):
                known = any(selinux.has_type(local, path, other) for other in (selinux.READABLE, selinux.WRITABLE))
                action = "--modify" if known else "--add"
                self._change(["semanage", "fcontext", action, "--type", kind, selinux.pattern(path)])
                self._change(["restorecon", "-R", path])
        listed = self._ask(["semanage", "port", "--list", "--noheading"]) if needs.ports else ""
        for port in needs.ports:
            if not selinux.has_port(listed, port):
                self._change(["semanage", "port", "--add", "--type", selinux.PORT_TYPE, "--proto", "tcp", str(port)])

    def _ask(self, argv: list[str]) -> str:
        if self._module.check_mode and self._module.get_bin_path(argv[0]) is None:
            return ""  # it will be installed
        code, out, err = self._module.run_command(argv, environ_update={"LC_ALL": "C"})
        if code:
            self._module.fail_json(
                msg=f"{argv[0]} could not say how SELinux stands: {(err or out).strip()}. Install it, or set "
                "rsyncd_manage_selinux: false"
            )
        return str(out)

    def _change(self, argv: list[str]) -> None:
        self.commands.append(" ".join(shlex.quote(word) for word in argv))
        if self._module.check_mode:
            return
        code, out, err = self._module.run_command(argv, environ_update={"LC_ALL": "C"})
        if code:
            self._module.fail_json(
                msg=f"SELinux was not changed by {self.commands[-1]}: {(err or out).strip()}. The daemon may not reach its modules"
            )


def main() -> None:
    """Ask what is needed, and change what is not there."""
    module = AnsibleModule(
        argument_spec={
            "how": {"type": "str", "choices": ["boolean", "context"], "default": "boolean"},
            "port": {"type": "int", "default": 873},
            "modules": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    params = module.params
    policy = SelinuxPolicy(module)
    policy.meet(selinux.needs(params["modules"], params["how"], params["port"]))
    module.exit_json(changed=bool(policy.commands), commands=policy.commands)


if __name__ == "__main__":
    main()
