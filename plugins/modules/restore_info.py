#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: restore_info
short_description: "Internal: list snapshots, or check a path of one before it is restored"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Lists the snapshots of a job. With O(name) it says what a path in a snapshot is, and compares it with the manifest. For what is
    damaged it names the snapshots that have it intact.
  - The action asks O(repository_host), and reads nothing of its answer but the values below.
  - No prune removes the snapshot while it is looked at.
  - Fails for a snapshot or a path that is not there, and says which there are.
  - Part of the role P(longhaul.fleet.restore#role). Its options and what it returns may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.info
options:
  repository_host:
    description:
      - The inventory host that has the repository.
    type: str
    required: true
  repository:
    description:
      - The folder of all backups.
    type: str
    required: true
  host:
    description:
      - The host that was backed up, as its folder is named.
    type: str
    required: true
  job:
    description:
      - What of it was backed up, as its folder is named.
    type: str
    required: true
  name:
    description:
      - The snapshot to look at, as RV(longhaul.fleet.snapshot#module:snapshots[].name) says, or V(unfinished).
      - Without it the snapshots are listed.
    type: str
    default: ""
  path:
    description:
      - The path from the root of the tree that was backed up. Empty for all of it.
    type: str
    default: ""
  level:
    description:
      - How deep it is looked, each level with those before it.
      - V(structure) reads the manifest. V(files) looks at every name below the path. V(contents) reads the files there.
    type: str
    choices: [structure, files, contents]
    default: contents
seealso:
  - module: longhaul.fleet.snapshot
"""

EXAMPLES = r"""
- name: See whether a folder is intact
  longhaul.fleet.restore_info:
    repository: /srv/backup
    host: web1
    job: data
    name: 2026-11-21T173009Z
    path: photos/2026
    repository_host: vault
"""

RETURN = r"""
snapshots:
  description: The snapshots, each with C(name), C(state), C(time), C(age) and C(reason).
  returned: without O(name)
  type: list
  elements: dict
  sample: []
kind:
  description: V(file), V(directory) or V(other), which is a symbolic link or a special file.
  returned: with O(name)
  type: str
  sample: directory
checked:
  description: Depth of the check, as in O(level). Empty if there is no manifest to compare with.
  returned: with O(name)
  type: str
  sample: contents
not_permitted:
  description: The files and folders that this user may not read.
  returned: with O(name)
  type: int
  sample: 0
problems:
  description: What is not as it was, as in RV(longhaul.fleet.snapshot#module:problems). At most 200 are listed.
  returned: with O(name)
  type: list
  elements: dict
  sample: []
problems_total:
  description: How many there are.
  returned: with O(name)
  type: int
  sample: 0
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused, unexpected
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.inspect_path import inspect_path
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.repository import Series

MAX_LISTED = 200


def main() -> None:
    """Look, and say what was found."""
    module = AnsibleModule(
        argument_spec={
            "repository_host": {"type": "str", "required": True},  # which the action asks
            "repository": {"type": "str", "required": True},
            "host": {"type": "str", "required": True},
            "job": {"type": "str", "required": True},
            "name": {"type": "str", "default": ""},  # the action itself lists snapshots
            "path": {"type": "str", "default": ""},
            "level": {"type": "str", "choices": ["structure", "files", "contents"], "default": "contents"},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        with Series(params["repository"], params["host"], params["job"]) as series:
            found = inspect_path(series, params["name"], os.fsencode(params["path"]), params["level"])
    except (Refused, ValueError) as refused:
        module.fail_json(msg=str(refused))
    except OSError as error:
        where = os.path.join(params["repository"], params["host"], params["job"])
        module.fail_json(msg=str(unexpected(error, where)))
    report = found.report
    module.exit_json(
        changed=False,
        kind=found.kind,
        checked=found.checked,
        not_permitted=report.not_permitted,
        problems=[problem.dump() for problem in list(report.problems.values())[:MAX_LISTED]],
        problems_total=report.problems_total,
    )


if __name__ == "__main__":
    main()
