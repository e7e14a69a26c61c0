#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nic_config
short_description: "Internal: put the network configuration files of the role nic in place"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Writes a set of files, and removes others, after the network's own program has accepted all of them together. With a file that it
    does not accept, nothing is written.
  - Part of the role P(longhaul.fleet.nic#role). Its options and what it returns may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
options:
  files:
    description: Files that must exist, each with C(path), C(content) and C(mode) as an integer. By default the mode is kept.
    type: list
    elements: dict
    required: true
  absent:
    description: Files that must not exist.
    type: list
    elements: path
    default: []
  backup:
    description: Whether a copy of each file that is changed or removed is kept beside it.
    type: bool
    default: false
  checkpoint:
    description: The checkpoint that must be armed. If it has ended, nothing is written. While files are written, it does not end.
    type: str
    version_added: 0.2.0
seealso:
  - module: longhaul.fleet.network_checkpoint
"""

EXAMPLES = r"""
- name: Put a file for netplan in place
  longhaul.fleet.nic_config:
    files:
      - path: /etc/netplan/95-longhaul-nic-eth1.yaml
        content: "network: {version: 2, ethernets: {eth1: {mtu: 9000}}}\n"
        mode: 384
"""

RETURN = r"""
changed_paths:
  description: The files that were written or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
backups:
  description: The copies that were made, by the path of the file.
  returned: success
  type: dict
"""

import os
import tempfile
from contextlib import contextmanager, nullcontext
from typing import Iterator, NamedTuple

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._network.checkpoint import Checkpoint, CheckpointError
from ansible_collections.longhaul.fleet.plugins.module_utils._network.validate import try_files


class File(NamedTuple):
    """A file that is to be there; without a mode it keeps its own."""

    path: str
    content: str
    mode: int | None


def _now(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read()
    except FileNotFoundError:
        return None


def _mode(path: str) -> int:
    return os.stat(path).st_mode & 0o7777


def _place(module: AnsibleModule, file: File, fresh: bool) -> None:
    """Write a file in one step; one that was there keeps its owner, and its mode where only the content differs."""
    os.makedirs(os.path.dirname(file.path), exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as opened:
        opened.write(file.content)
    if fresh:
        os.chmod(temporary, file.mode or 0o644)
    module.atomic_move(temporary, file.path)
    if file.mode is not None:
        module.set_mode_if_different(file.path, file.mode, False)


@contextmanager
def _armed(name: str) -> Iterator[None]:
    """Keep a checkpoint from ending. Raise CheckpointError if it has ended: nothing would put the files back."""
    checkpoint = Checkpoint(name)
    with checkpoint.locked():
        checkpoint.require()
        yield


def main() -> None:
    """Compare, try out, write."""
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "required": True},
            "absent": {"type": "list", "elements": "path", "default": []},
            "backup": {"type": "bool", "default": False},
            "checkpoint": {"type": "str"},
        },
        supports_check_mode=True,
    )
    before: dict[str, str | None] = {}
    wrong, gone = [], []
    files = [
        File(one["path"], one["content"], None if one.get("mode") is None else int(one["mode"]))
        for one in module.params["files"]
    ]
    for file in files:
        there = _now(file.path)
        if there != file.content or file.mode not in (None, _mode(file.path)):
            before[file.path] = there
            wrong.append(file)
    for path in module.params["absent"]:
        if os.path.lexists(path):
            before[path] = _now(path)
            gone.append(path)
    after = {file.path: file.content for file in wrong}
    if before:
        folder = tempfile.mkdtemp(dir=module.tmpdir)
        problems = try_files({file.path: file.content for file in files}, gone, folder)
        if problems:
            module.fail_json(msg=f"nothing was changed: {'; '.join(problems)}")
    backups = {}
    if not module.check_mode:
        name = module.params["checkpoint"]
        try:
            with _armed(name) if name else nullcontext():
                for path, there in before.items():
                    if module.params["backup"] and there is not None:
                        backups[path] = module.backup_local(path)
                for file in wrong:
                    _place(module, file, before[file.path] is None)
                for path in gone:
                    os.unlink(path)
        except CheckpointError as error:
            module.fail_json(msg=f"nothing was changed: {error}")
    diff = [
        {
            "before_header": path,
            "after_header": path if path in after else f"{path} (removed)",
            "before": there or "",
            "after": after.get(path, ""),
        }
        for path, there in before.items()
    ]
    module.exit_json(changed=bool(before), changed_paths=sorted(before), backups=backups, diff=diff)


if __name__ == "__main__":
    main()
