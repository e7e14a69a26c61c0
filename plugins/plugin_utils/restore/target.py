# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From where to where a restore goes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypedDict

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.names import DATA

from ..folders import within
from .request import Request


class Target(TypedDict):
    """From where to where a restore goes."""

    src: str
    dest: str
    occupies: str  # what must not be there yet
    problems: list[str]


def find_target(
    request: Request,
    snapshot: Mapping[str, Any],
    kind: str,
    dest: str = "",
    over: bool = False,
    delete: bool = False,
) -> Target:
    """Return ``src`` and ``dest`` for a transfer, ``occupies``, what must not be there yet, and ``problems``.

    The contents of a directory, and a file as itself, arrive in the folder ``dest``. ``kind`` says what is restored:
    ``directory``, ``file`` or ``other``.
    """
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
    # By their paths alone: the host itself says whether symbolic links lead there (restore_dest_info)
    if request["to"] == repository["host"]:
        path = os.path.normpath(repository["path"])
        if within(dest, path) or within(path, dest):
            problems.append(
                f"{dest} and the repository {path} are in each other, and a restore there could spoil the snapshots. "
                "Name another folder in restore_dest"
            )
    # Made here of the name: what the repository host says is shown, and a shown path may be another path.
    tree = os.path.join(repository["path"], request["from"], request["job"], snapshot["name"], DATA)
    src = os.path.join(tree, request["path"]) if request["path"] else tree
    is_file = kind == "file"
    return {
        "src": src if is_file else src + "/",
        "dest": dest.rstrip("/") + "/" if is_file else dest,
        "occupies": os.path.join(dest, name) if is_file else dest,
        "problems": problems,
    }
