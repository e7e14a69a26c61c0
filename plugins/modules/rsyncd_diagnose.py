#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: rsyncd_diagnose
short_description: Test the modules of an rsync daemon as a client would, and report problems
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Runs on the daemon's host, as root. Connects to the daemon as a real rsync client, lists each module, and if it is
    writable, writes a folder with a random name, checks what arrived, and removes it.
  - If C(hosts allow) excludes the host itself, or C(proxy protocol) is set, the module is tested with a private daemon
    with its other options, in the mount namespace of the running daemon.
  - Names the cause of what fails, among them which of the three layers makes a module read-only (rsyncd.conf, the permissions of the
    files, the unit or the mount), the directory that the user of the module cannot pass, changed symlinks, lost owners, refused
    options, a full connection table, wrong passwords, and versions with known holes.
  - Commands of the module (C(pre-xfer exec) and the like) are run by the daemon as for every client.
extends_documentation_fragment:
  - longhaul.fleet._attributes
attributes:
  check_mode:
    support: full
    details:
      - Test files are removed, so check mode makes no difference.
  diff_mode:
    support: N/A
    details:
      - The module leaves no changes.
  idempotent:
    support: full
options:
  config:
    description:
      - Configuration file of the daemon. Included files are read, too.
    type: path
    default: /etc/rsyncd.conf
  modules:
    description:
      - Names of the modules to test. By default all.
    type: list
    elements: str
    default: []
  clients:
    description:
      - Addresses of clients to check against C(hosts allow) and C(hosts deny).
    type: list
    elements: str
    default: []
  options:
    description:
      - Options of rsync that clients will use, to test in a dry run whether writable modules accept them.
    type: list
    elements: str
    default: []
  logins:
    description:
      - Users with the passwords of clients. By default those in the secrets file of the module are used.
    type: list
    elements: dict
    default: []
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
      - The systemd unit of the daemon.
    type: str
    default: rsync.service
  rsync:
    description:
      - The rsync program. By default it is searched in the usual directories.
    type: str
    default: rsync
seealso:
  - module: longhaul.fleet.rsyncd_config
"""

EXAMPLES = r"""
- name: Find out why clients cannot write
  longhaul.fleet.rsyncd_diagnose:
    modules: [data]
    clients: [10.20.0.11]
    options: [--archive, --delete]
  register: diagnosis

- name: Show it
  ansible.builtin.debug:
    msg: "{{ diagnosis.findings | map(attribute='text') }}"
"""

RETURN = r"""
healthy:
  description: Whether no error was found.
  returned: success
  type: bool
findings:
  description: What was found.
  returned: success
  type: list
  elements: dict
  contains:
    module:
      description: The module; empty for the daemon as a whole.
      type: str
      sample: data
    code:
      description: A word for the cause.
      type: str
      sample: read_only_sandbox
    severity:
      description: V(error), V(warning) or V(note).
      type: str
      sample: error
    text:
      description: What was found, why it matters, and what to do.
      type: str
modules:
  description: What was tried with each module.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The module.
      type: str
    path:
      description: Its directory.
      type: str
    read:
      description: Whether it can be listed. V(null) where that was not tried.
      type: bool
    write:
      description: Whether it can be written to. V(null) where that was not tried, since the configuration does not mean it.
      type: bool
    private:
      description: Whether a private daemon was asked.
      type: bool
"""


from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._core.rsync_vulnerabilities import rsync_changelog
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.diagnose import ERROR
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.probe_modules import Diagnosis, DiagnosisRequest


def process_of(module: AnsibleModule, unit: str) -> int:
    """Return the main process of the daemon; 0 if systemd does not know it."""
    systemctl = module.get_bin_path("systemctl")
    if systemctl is None:
        return 0
    said = module.run_command([systemctl, "show", "--property=MainPID", "--value", unit])[1].strip()
    return int(said) if said.isdigit() else 0


def main() -> None:
    """Try, and report."""
    module = AnsibleModule(
        argument_spec={
            "config": {"type": "path", "default": "/etc/rsyncd.conf"},
            "modules": {"type": "list", "elements": "str", "default": []},
            "clients": {"type": "list", "elements": "str", "default": []},
            "options": {"type": "list", "elements": "str", "default": []},
            "logins": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "no_log": False,
                "options": {
                    "name": {"type": "str", "required": True},
                    "password": {"type": "str", "required": True, "no_log": True},
                },
            },
            "unit": {"type": "str", "default": "rsync.service"},
            "rsync": {"type": "str", "default": "rsync"},
        },
        supports_check_mode=True,
    )
    params = module.params
    rsync = module.get_bin_path(params["rsync"])
    if rsync is None:
        module.fail_json(msg="rsync is not installed on this host, so there is no daemon to look at. Install it")
    diagnosis = Diagnosis(
        DiagnosisRequest(
            config=params["config"],
            modules=params["modules"],
            clients=params["clients"],
            options=params["options"],
            logins={login["name"]: login["password"] for login in params["logins"]},
            unit=params["unit"],
            pid=process_of(module, params["unit"]),
            rsync=rsync,
            nsenter=module.get_bin_path("nsenter") or "",
            journalctl=module.get_bin_path("journalctl") or "",
            version=module.run_command([rsync, "--version"])[1],
            changelog=rsync_changelog(),
        )
    )
    try:
        diagnosis.make()
    except OSError as error:
        module.fail_json(
            msg=f"{error.filename}: {error.strerror}. The daemon has no configuration that can be read: write one"
        )
    except ValueError as error:
        module.fail_json(msg=f"clients: {error}. Give addresses")
    module.exit_json(
        changed=False,
        healthy=not any(finding.severity == ERROR for finding in diagnosis.findings),
        findings=[finding._asdict() for finding in diagnosis.findings],
        modules=diagnosis.modules,
    )


if __name__ == "__main__":
    main()
