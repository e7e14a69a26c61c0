#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: restore_dest_info
short_description: "Internal: check where a restore would arrive"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Says whether the destination of a restore and the repository are in each other, on the host that receives the files.
  - Symbolic links are followed, and folders are compared by device and inode.
  - Fails for a destination that leads through a symbolic link of another user to what that user does not own.
  - The action asks the host of the play, whatever C(delegate_to) says, and reads nothing of its answer but the values below.
  - Part of the role P(longhaul.fleet.restore#role). Its options and what it returns may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.info
options:
  repository:
    description:
      - The folder of all backups. It need not exist on this host.
    type: str
    required: true
  dest:
    description:
      - The folder in which the files would arrive. It need not exist.
    type: str
    required: true
  occupies:
    description:
      - What must not be there yet.
    type: str
    required: true
seealso:
  - module: longhaul.fleet.restore_info
"""

EXAMPLES = r"""
- name: See whether a restore would spoil the snapshots
  longhaul.fleet.restore_dest_info:
    repository: /srv/backup
    dest: /home/data
    occupies: /home/data
"""

RETURN = r"""
overlaps:
  description: Whether one of the two is the other, or lies in it.
  returned: success
  type: bool
  sample: false
dest:
  description: The destination, without symbolic links.
  returned: success
  type: str
  sample: /home/data
free:
  description: Whether nothing, or an empty folder, is at O(occupies).
  returned: success
  type: bool
  sample: true
"""

import os
import stat

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.overlap import overlap
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.descent import open_root
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.resolve import real_path, resolve


def is_free(path: str) -> bool:
    """Return whether nothing is at a path, or an empty folder.

    Raises TransferFailed for a symbolic link that is not followed, and OSError.
    """
    found = resolve(os.fsencode(path))
    try:
        if found.error is not None:
            raise found.error
        if found.status is None or not stat.S_ISDIR(found.status.st_mode):
            return found.status is None
        fd = open_root(found.fd)
        try:
            return not os.listdir(fd)
        finally:
            os.close(fd)
    finally:
        os.close(found.fd)


def main() -> None:
    """Look, and say what was found."""
    module = AnsibleModule(
        argument_spec={name: {"type": "str", "required": True} for name in ("repository", "dest", "occupies")},
        supports_check_mode=True,
    )
    repository, dest, occupies = (module.params[name] for name in ("repository", "dest", "occupies"))
    try:
        real, free = os.fsdecode(real_path(os.fsencode(dest))), is_free(occupies)
    except (TransferFailed, OSError) as error:
        module.fail_json(msg=f"Nothing was restored: {dest} cannot be the destination: {error}")
    module.exit_json(changed=False, overlaps=overlap(repository, real), dest=real, free=free)


if __name__ == "__main__":
    main()
