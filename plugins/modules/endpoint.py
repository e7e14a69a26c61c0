#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: endpoint
short_description: "Internal: do one host's part of a transfer or comparison"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - The action plugins M(longhaul.fleet.transfer) and M(longhaul.fleet.verify) run this module on both of their hosts.
  - It is not meant to be used in tasks. Its options may change in any release.
  - It keeps the engine compiled in C(/var/cache/longhaul), or C(~/.cache/longhaul) of a user who is not root, so that
    jobs start at once. What is there may be removed at any time.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
attributes:
  check_mode:
    details:
      - What a step does is decided by the action plugin, which knows the check mode.
  diff_mode:
    support: none
options:
  steps:
    description:
      - What to do, one after the other. The first step that fails ends the module.
    type: list
    elements: dict
    required: true
  engine:
    description:
      - The code that does the steps, as a zip archive in base64. Jobs are started from it as well.
      - It is no module_utils of this module, since Ansible would parse all of its files in each playbook.
    type: str
    required: true
  secrets:
    description:
      - What the steps need and nobody may see. It goes to the jobs through pipes.
    type: dict
    default: {}
seealso:
  - module: longhaul.fleet.transfer
  - module: longhaul.fleet.verify
"""

EXAMPLES = r"""
# Used by action plugins only.
- name: Ask what this host has
  longhaul.fleet.endpoint:
    engine: "{{ packed_by_the_action_plugin }}"
    steps:
      - do: probe
        id: "0123456789abcdef"
        side: source
        path: /srv/data
"""

RETURN = r"""
results:
  description: What each step gave.
  returned: success
  type: list
  elements: dict
"""

import base64
import contextlib
import hashlib
import importlib
import os
import pwd
import stat
import sys

from ansible.module_utils.basic import AnsibleModule


def kept_name(packed: bytes) -> str | None:
    """Return the path where this Python caches the compiled engine; None for a user without a home."""
    if os.geteuid() == 0:
        folder = "/var/cache/longhaul"
    else:
        try:  # not HOME, which a become may have left another user's
            folder = os.path.join(pwd.getpwuid(os.geteuid()).pw_dir, ".cache", "longhaul")
        except KeyError:
            return None
    digest = hashlib.sha256(packed).hexdigest()[:32]
    return os.path.join(folder, f"engine-{digest}-{sys.implementation.cache_tag}.pyz")


def is_kept(path: str) -> bool:
    """Whether it is there, and no other user can have written it; marks it as in use."""
    try:
        folder, file = os.lstat(os.path.dirname(path)), os.lstat(path)
        own = {folder.st_uid, file.st_uid} == {os.geteuid()} and not (folder.st_mode | file.st_mode) & 0o022
        if not own or not stat.S_ISDIR(folder.st_mode) or not stat.S_ISREG(file.st_mode):
            return False
        os.utime(path)
    except OSError:
        return False
    return True


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "steps": {"type": "list", "elements": "dict", "required": True},
            "engine": {"type": "str", "required": True, "no_log": True},  # no secret, but nothing to read either
            "secrets": {"type": "dict", "default": {}, "no_log": True},
        },
        supports_check_mode=True,
    )
    packed = base64.b64decode(module.params["engine"])
    kept = kept_name(packed)
    if kept is not None and is_kept(kept):
        archive = kept
    else:
        archive = os.path.join(module.tmpdir, "engine.pyz")
        with open(archive, "wb") as file:
            file.write(packed)
    sys.path.insert(0, archive)
    commands = importlib.import_module("longhaul._job.commands")
    try:
        results = commands.run_steps(module.params["steps"], commands.Given(module.params["secrets"], archive))
    except commands.StateError as error:
        module.fail_json(msg=str(error))
    if kept and archive != kept:
        with contextlib.suppress(OSError):  # it is quicker with it, and works without
            importlib.import_module("longhaul._job.bytecode_cache").keep(archive, kept)
    module.exit_json(changed=False, results=results)


if __name__ == "__main__":
    main()
