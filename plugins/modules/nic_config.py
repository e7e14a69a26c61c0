#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nic_config
short_description: "Internal: plan the network configuration of the role nic, and put its files in place"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - With O(state=planned), decides what the links that are wanted need on this host, and changes nothing.
  - With O(state=present), writes a set of files, and removes others, after the network's own program has accepted all of them together. With a file that it
    does not accept, nothing is written.
  - Part of the role P(longhaul.fleet.nic#role). Its options and what it returns may change in any release.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.change
options:
  state:
    description: Whether the change is planned or made.
    type: str
    choices: [planned, present]
    default: present
    version_added: 0.2.0
  links:
    description: For V(planned), the links that are wanted, as the role's nic_links.
    type: list
    elements: dict
    default: []
    version_added: 0.2.0
  manager:
    description: For V(planned), the network manager to use, or V(auto).
    type: str
    default: auto
    version_added: 0.2.0
  edit_existing:
    description:
      - For V(planned), whether files that are not the role's may be changed, where the manager knows no additions to them.
    type: bool
    default: false
    version_added: 0.2.0
  header:
    description: For V(planned), a comment for the top of each file.
    type: str
    default: ""
    version_added: 0.2.0
  tcp:
    description: For V(planned), what is asked of TCP. Without it, nothing is planned for TCP.
    type: dict
    version_added: 0.2.0
    suboptions:
      congestion_control:
        description: The congestion control. Empty for the one that is set.
        type: str
        default: ""
      qdisc:
        description: The queueing discipline for links that come up. Empty for the one that is set.
        type: str
        default: fq
      speed:
        description: The speed in Mbit/s that counts instead of that of the links. V(0) for theirs.
        type: int
        default: 0
  files:
    description:
      - Files that must exist, each with C(path), C(content) and C(mode) as an integer. By default the mode is kept.
      - Required for V(present).
    type: list
    elements: dict
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
- name: Plan a larger MTU
  longhaul.fleet.nic_config:
    state: planned
    links:
      - name: eth1
        mtu: 9000
  register: plan

- name: Put a file for netplan in place
  longhaul.fleet.nic_config:
    files:
      - path: /etc/netplan/95-longhaul-nic-eth1.yaml
        content: "network: {version: 2, ethernets: {eth1: {mtu: 9000}}}\n"
        mode: 384
"""

RETURN = r"""
changed_paths:
  description: The files that were written or removed, or would be in check mode or by a plan.
  returned: success
  type: list
  elements: str
backups:
  description: The copies that were made, by the path of the file.
  returned: O(state=present)
  type: dict
problems:
  description:
    - Sentences that say why nothing can be done. Without any, the rest of the plan says what is done, in C(files), C(absent),
      C(apply), C(restore), C(live) and more.
  returned: O(state=planned)
  type: list
  elements: str
stopped:
  description: Sentences that say why C(apply) would fail, since a network manager does not run.
  returned: O(state=planned)
  type: list
  elements: str
  version_added: 0.3.0
"""

import os
import tempfile
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from typing import Iterator, Sequence

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._network.checkpoint import Checkpoint, CheckpointError
from ansible_collections.longhaul.fleet.plugins.module_utils._network.discover import discover
from ansible_collections.longhaul.fleet.plugins.module_utils._network.ping import find_ping
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.files import File
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.plan import make_commands, make_plan
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.problems import find_stopped
from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.tcp import (
    KERNEL_VALUES,
    Tuning,
    plan_tcp,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._network.validate import try_files


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


def _compare(files: Sequence[File], absent: Sequence[str]) -> tuple[list[File], list[str], dict[str, str | None]]:
    """Return the files that differ, the paths to remove, and the present text of both."""
    before: dict[str, str | None] = {}
    wrong, gone = [], []
    for file in files:
        there = _now(file.path)
        if there != file.content or file.mode not in (None, _mode(file.path)):
            before[file.path] = there
            wrong.append(file)
    for path in absent:
        if os.path.lexists(path):
            before[path] = _now(path)
            gone.append(path)
    return wrong, gone, before


def _plan(module: AnsibleModule) -> dict[str, object]:
    """Return everything that one run of the role does to this host."""
    params, host = module.params, discover()
    plan = make_plan(params["links"], host, params["manager"], params["edit_existing"], params["header"])
    changed = sorted(_compare(plan.files, plan.absent)[2])
    apply, restore = make_commands(plan, host, changed)
    result: dict[str, object] = {
        "cloud": host.cloud,
        "ping": find_ping(host.system)._asdict(),
        "problems": plan.problems,
        "stopped": find_stopped(apply, host),
        "files": [asdict(file) for file in plan.files],
        "absent": plan.absent,
        "save": plan.save,
        "managers": sorted(set(plan.managers.values())) or [one for one in [host.default_manager] if one],
        "links": plan.links,
        "made": plan.made,
        "mtu_only": plan.mtu_only,
        "live": plan.live,
        "installs_ifenslave": plan.installs_ifenslave,
        "changed_paths": changed,
        "apply": apply,
        "restore": restore,
    }
    if params["tcp"]:
        current = {name: _now(f"/proc/sys/net/ipv4/{name}") or "" for name in KERNEL_VALUES}
        content, problems = plan_tcp(host, plan.mtus, current, Tuning(**params["tcp"]), params["header"])
        result["tcp"] = {"content": content, "problems": problems}
    return result


def main() -> None:
    """Plan; or compare, try out, write."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["planned", "present"], "default": "present"},
            "links": {"type": "list", "elements": "dict", "default": []},
            "manager": {"type": "str", "default": "auto"},
            "edit_existing": {"type": "bool", "default": False},
            "header": {"type": "str", "default": ""},
            "tcp": {
                "type": "dict",
                "options": {
                    "congestion_control": {"type": "str", "default": ""},
                    "qdisc": {"type": "str", "default": "fq"},
                    "speed": {"type": "int", "default": 0},
                },
            },
            "files": {"type": "list", "elements": "dict"},
            "absent": {"type": "list", "elements": "path", "default": []},
            "backup": {"type": "bool", "default": False},
            "checkpoint": {"type": "str"},
        },
        required_if=[("state", "present", ["files"])],
        supports_check_mode=True,
    )
    if module.params["state"] == "planned":
        try:
            module.exit_json(changed=False, **_plan(module))
        except (RuntimeError, OSError, ValueError) as error:
            module.fail_json(msg=f"nic_config: {error}")
    files = [
        File(one["path"], one["content"], None if one.get("mode") is None else int(one["mode"]))
        for one in module.params["files"]
    ]
    wrong, gone, before = _compare(files, module.params["absent"])
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
