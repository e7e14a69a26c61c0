#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: rsyncd_config
short_description: "Internal: write the configuration of the rsync daemon, all of it or none"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Checks modules and options for the rsync daemon, and the host for what they need, before anything is changed.
  - Writes a file for each module below O(include_dir), and the lines into O(path) that make the daemon read them. Files and lines
    of others stay as they are.
  - Lets rsync itself read the new configuration beside the old one. Only when rsync understands all of it, it is put in place.
  - Part of the role P(longhaul.fleet.rsyncd#role).
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - Where rsync is not installed yet, its own opinion of the configuration is not asked for.
options:
  state:
    description:
      - With V(checked) nothing is written. The module fails where V(present) could not work.
    type: str
    choices: [checked, present]
    default: present
  path:
    description:
      - The configuration of the daemon, rsyncd.conf.
    type: path
    default: /etc/rsyncd.conf
  include_dir:
    description:
      - The directory with a file for each module.
    type: path
    default: /etc/rsyncd.d
  mode:
    description:
      - With V(include), the file that is there is kept, and only the lines that are needed are added.
      - With V(whole), the file is written from nothing.
    type: str
    choices: [include, whole]
    default: include
  modules:
    description:
      - The modules. The keys are C(name), the options of C(rsyncd.conf(5\)) in snake case, C(state) (V(present) or V(absent)),
        C(create_path) and C(path_mode) (whether to make a missing directory, and its mode).
    type: list
    elements: dict
    default: []
  options:
    description:
      - Options of the daemon, and defaults for the modules, in snake case.
    type: dict
    default: {}
  defaults:
    description:
      - The same as O(options), but for the daemon they count only where the file says nothing else and has no modules of others.
    type: dict
    default: {}
  user:
    description:
      - The user of a module that names none.
    type: str
    default: nobody
  group:
    description:
      - The group of a module that names none and works as O(user).
    type: str
    default: nogroup
  users:
    description:
      - The users who have a password in O(secrets_file).
    type: list
    elements: str
    default: []
  secrets:
    description:
      - The users with their passwords, to check that rsync can use them. They are not written.
    type: list
    elements: dict
    default: []
    version_added: 0.2.0
    suboptions:
      name:
        description: The user.
        type: str
        required: true
      password:
        description: The password.
        type: str
        required: true
  unit:
    description:
      - The systemd unit of the daemon. RV(drop_in) says what it must open for the modules.
    type: str
    version_added: 0.2.0
  drop_in:
    description:
      - A drop-in of O(unit) that does not count when RV(drop_in) is decided, since it will be replaced.
    type: path
    version_added: 0.2.0
  secrets_file:
    description:
      - The file that the role writes the passwords to. It is used by modules that have C(auth_users) and name no other.
    type: path
  header:
    description:
      - A comment for the top of what is written.
    type: str
    default: ""
  backup:
    description:
      - Keep a copy of O(path) when it is changed.
    type: bool
    default: false
  rsync:
    description:
      - The program. It is looked for where programs are.
    type: str
    default: rsync
  installs:
    description:
      - Where the program is missing, it will be installed before the configuration is put in place. So it may be missing with
        O(state=checked) and in check mode.
    type: bool
    default: false
    version_added: 0.2.0
seealso:
  - module: longhaul.fleet.rsyncd_diagnose
"""

EXAMPLES = r"""
- name: Show a directory
  longhaul.fleet.rsyncd_config:
    modules:
      - name: data
        path: /srv/data
        read_only: true
        hosts_allow: [10.20.0.0/24]
"""

RETURN = r"""
restart_needed:
  description: Whether a running daemon must be restarted. Changed modules are read at the next connection anyway.
  returned: success
  type: bool
modules:
  description: The modules as they will be, with all defaults of the role, without those that are absent.
  returned: success
  type: list
  elements: dict
kept:
  description: The role's modules that were not named and stay, with their options.
  returned: success
  type: list
  elements: dict
daemon:
  description: What the daemon starts with.
  returned: success
  type: dict
log_files:
  description: The log files that the configuration names.
  returned: success
  type: list
  elements: str
unit_found:
  description: Whether systemd knows O(unit). Where it does not, RV(drop_in) is that of the unit of most distributions.
  returned: when O(unit) is given
  type: bool
drop_in:
  description:
    - What O(unit) closes and the modules need. C(settings) are lines for a drop-in, none if it closes nothing of it. C(shut) are
      paths that a drop-in cannot open, since the unit has them in C(InaccessiblePaths).
  returned: when O(unit) is given
  type: dict
created:
  description: The directories that were made.
  returned: success
  type: list
  elements: str
backup_file:
  description: The copy of the file that was there.
  returned: when a copy was made
  type: str
"""

import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.check import secret_problems
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.config_writer import (
    ConfigRefusal,
    ConfigRequest,
    ConfigWriter,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.sandbox import ASSUMED_UNIT, plan_drop_in


def _sandbox(module: AnsibleModule, writer: ConfigWriter) -> dict[str, object]:
    """Return what the unit of the daemon must open for the modules."""
    unit, systemctl = module.params["unit"], module.get_bin_path("systemctl")
    if not unit:
        return {}
    code, text, _err = module.run_command([systemctl, "cat", unit]) if systemctl else (1, "", "")
    values = [*writer.modules, *writer.kept]
    text = ASSUMED_UNIT if code else text
    drop_in = plan_drop_in(text, values, writer.daemon, module.params["drop_in"] or "")
    return {"unit_found": code == 0, "drop_in": drop_in._asdict()}


def main() -> None:
    """Check, and write where that was asked for."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["checked", "present"], "default": "present"},
            "path": {"type": "path", "default": "/etc/rsyncd.conf"},
            "include_dir": {"type": "path", "default": "/etc/rsyncd.d"},
            "mode": {"type": "str", "choices": ["include", "whole"], "default": "include"},
            "modules": {"type": "list", "elements": "dict", "default": []},
            "options": {"type": "dict", "default": {}},
            "defaults": {"type": "dict", "default": {}},
            "user": {"type": "str", "default": "nobody"},
            "group": {"type": "str", "default": "nogroup"},
            "users": {"type": "list", "elements": "str", "default": []},
            "secrets": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "no_log": False,
                "options": {
                    "name": {"type": "str", "required": True},
                    "password": {"type": "str", "required": True, "no_log": True},
                },
            },
            "unit": {"type": "str"},
            "drop_in": {"type": "path"},
            "secrets_file": {"type": "path", "no_log": False},
            "header": {"type": "str", "default": ""},
            "backup": {"type": "bool", "default": False},
            "rsync": {"type": "str", "default": "rsync"},
            "installs": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    params = module.params
    problems = secret_problems(params["secrets"])
    if problems:
        module.fail_json(msg=f"rsyncd_secrets cannot be used, and nothing was changed: {'; '.join(problems)}")
    rsync = module.get_bin_path(params["rsync"]) or ""
    comes = params["installs"] and (params["state"] == "checked" or module.check_mode)
    if not rsync and not comes:
        module.fail_json(
            msg="rsync is not installed on this host, so the configuration cannot be tried before it is put in place. "
            "Nothing was changed. Install it, or set rsyncd_manage_packages: true"
        )
    wanted = ConfigRequest(**{key: params[key] for key in ConfigRequest._fields if key in params})
    try:
        writer = ConfigWriter(wanted, rsync, module.tmpdir)
        result = {**writer.result()._asdict(), **_sandbox(module, writer)}
        for text in writer.warnings:
            module.warn(text)
        if params["state"] == "checked":
            module.exit_json(changed=False, **result)
        done: dict[str, Any] = {}
        replaced = params["path"] in writer.changes and os.path.exists(params["path"])
        if replaced and params["backup"] and not module.check_mode:
            done["backup_file"] = module.backup_local(params["path"])
        if not module.check_mode:
            writer.install(module.atomic_move)
    except ConfigRefusal as refused:
        module.fail_json(msg=str(refused))
    module.exit_json(changed=writer.changed, diff=writer.diff(), **result, **done)


if __name__ == "__main__":
    main()
