# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where reports and states are on the control node, and whether they can be written there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..benchmark.kept import FOLDER
from ..hosts.host_facts import find_set_by_facts

VARIABLE = "longhaul_state_dir"  # of the user: the folder that has those of all roles
REPORTS = "_report_dir"  # how the variables for one role end


def find_folder(
    name: str, given: str | None, variables: Mapping[str, Any], template: Callable[[object], object]
) -> str:
    """Return the folder of a role as a path without links: the one that was ``given``, else the folder ``name``.

    ``variables`` are those of the task, which facts must not have set, and ``template`` works out values of users.
    """
    if not given:
        configured = str(template(variables.get(VARIABLE) or ""))
        sources = variables.get("ansible_inventory_sources") or ()
        given = state_folder(name, configured, str(variables.get("inventory_dir") or ""), map(str, sources))
    return os.path.realpath(os.path.expanduser(given))


def find_benchmark_folder(given: str | None, variables: Mapping[str, Any], template: Callable[[object], object]) -> str:
    """Return the folder of benchmark results, which is the same for a task of any host, localhost included."""
    known = {**variables, "inventory_dir": find_inventory(variables)}  # localhost has none of its own
    return find_folder(FOLDER, given, known, template)


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


def find_inventory(variables: Mapping[str, Any]) -> str:
    """Return the folder of the inventory, empty if it has none; ``variables`` are those of a task.

    Only its hosts know it, and facts could tell another one: a host whose facts do is left out.
    """
    for host in variables["groups"]["all"]:
        known = variables["hostvars"][host]
        if known.get("inventory_dir") and "inventory_dir" not in find_set_by_facts(known):
            return str(known["inventory_dir"])
    return ""


def try_writing(folder: str) -> None:
    """Raise OSError if a folder cannot be written, or cannot be made. Leaves nothing behind."""
    existing = os.path.abspath(folder)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    with tempfile.TemporaryFile(dir=existing):  # permissions do not tell: the disk may be mounted read-only
        return
