# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From where to where a restore goes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.folders import within

DOCUMENTATION = r"""
name: restore_target
short_description: "Internal: say from where to where a restore goes"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Gives the two ends of the transfer that restores a path of a snapshot.
  - Part of the role P(longhaul.fleet.restore#role). Its options and what it returns may change in any release.
positional: _input
options:
  _input:
    description: What P(longhaul.fleet.restore_request#filter) gave.
    type: dict
    required: true
  snapshot:
    description: What P(longhaul.fleet.restore_choose#filter) gave.
    type: dict
    required: true
  kind:
    description: What the path is, V(file), V(directory) or V(other).
    type: str
    required: true
  dest:
    description: The folder that was asked for. Empty for the place where it was, or one beside it.
    type: str
    default: ""
  over:
    description: Whether it goes over what is there.
    type: bool
    default: false
  delete:
    description: Whether what is not in the snapshot is removed.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show where it goes
  ansible.builtin.debug:
    msg: "{{ request | longhaul.fleet.restore_target(chosen, 'directory') }}"
"""

RETURN = r"""
_value:
  description:
    - C(src) and C(dest) for a transfer, C(occupies), the path that must not be there yet, and C(problems), a sentence
      for each.
  type: dict
"""


def restore_target(
    request: Mapping[str, Any],
    snapshot: Mapping[str, Any],
    kind: str,
    dest: str = "",
    over: bool = False,
    delete: bool = False,
) -> dict[str, Any]:
    """Give the two ends. The contents of a directory, and a file as itself, arrive in the folder ``dest``."""
    origin, name = request["origin"], os.path.basename(request["path"])
    if not dest and over:
        dest = origin if kind == "directory" else os.path.dirname(origin)
    elif not dest:
        suffix = f"restored-{snapshot['name'].lstrip('.')}"
        dest = f"{origin}.{suffix}" if origin != "/" else f"/{suffix}"
    dest = os.path.normpath(dest)
    problems = []
    if kind == "other":
        problems.append(
            f"'{request['path']}' is a symbolic link or a special file, which is not restored by itself. Restore the "
            "folder that it is in (restore_path), beside the original, and take it from there"
        )
    if kind == "file" and delete:
        problems.append("restore_delete is for folders, and this is a single file. Leave it out")
    repository = request["repository"]
    if request["to"] == repository["host"]:
        path = os.path.normpath(repository["path"])
        if within(dest, path) or within(path, dest):
            problems.append(
                f"{dest} and the repository {path} are in each other, and a restore there could spoil the snapshots. "
                "Name another folder in restore_dest"
            )
    src = os.path.join(snapshot["path"], request["path"]) if request["path"] else snapshot["path"]
    is_file = kind == "file"
    return {
        "src": src if is_file else src + "/",
        "dest": dest.rstrip("/") + "/" if is_file else dest,
        "occupies": os.path.join(dest, name) if is_file else dest,
        "problems": problems,
    }


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"restore_target": restore_target}
