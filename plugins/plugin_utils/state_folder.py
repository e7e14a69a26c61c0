# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where reports and states are on the control node, and whether they can be written there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable

VARIABLE = "longhaul_state_dir"  # of the user: the folder that has those of all roles
REPORTS = "_report_dir"  # how the variables for one role end


def state_folder(name: str, configured: str, inventory: str, sources: Iterable[str] = ()) -> str:
    """Return the folder ``name``: in the one that the user ``configured``, else beside the inventory.

    ``inventory`` is the folder of the inventory, empty if it has none, and ``sources`` are the inventories of the run.
    If such a source is the folder itself, Ansible reads all files in it as inventories. Then the folder is beside that
    one, unless an earlier release has made it in there.
    """
    if configured:
        return os.path.join(configured, name)
    beside = os.path.join(inventory or os.environ.get("PWD") or os.getcwd(), name)
    if inventory and os.path.realpath(inventory) in map(os.path.realpath, sources) and not os.path.isdir(beside):
        return os.path.join(os.path.dirname(os.path.realpath(inventory)), name)
    return beside


def try_writing(folder: str) -> None:
    """Raise OSError if a folder cannot be written, or cannot be made. Leaves nothing behind."""
    existing = os.path.abspath(folder)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    with tempfile.TemporaryFile(dir=existing):  # permissions do not tell: the disk may be mounted read-only
        return
