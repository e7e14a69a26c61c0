# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables that a host sets by its facts, and must not. Pure.

Facts are what a host says of itself. Ansible makes variables of them, which win over the inventory and over the
defaults of roles. So a host could choose what a role runs on another host or on the control node, or what is put into a
shell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Options of Ansible's shell plugins, as facts are named without "ansible_". They are put into commands, or say who may
# read the files of modules, and ansible-core lets facts set them, unlike the variables of connections.
SHELL_OPTIONS = frozenset(
    [
        "remote_tmp",
        "system_tmpdirs",
        "async_dir",
        "common_remote_group",
        "admin_users",
        "shell_allow_world_readable_temp",
    ]
)


def find_set_by_facts(variables: Mapping[str, Any], *roles: str) -> list[str]:
    """Return the variables of this collection and of Ansible's shells that facts have set, by name.

    ``variables`` are those of a host, with its facts as ``ansible_facts``: an action's ``task_vars`` for the host of
    the play, or an entry of ``hostvars``. Of this collection's roles the variables of ``roles`` count, and
    ``longhaul_*`` always.
    """
    facts = variables.get("ansible_facts") or {}
    ours = re.compile(f"_*(?:{'|'.join(('longhaul', 'fleet', *roles))})_")
    # A fact sets a variable only if it is there under the whole name: an interface "nic-0" is the fact ansible_nic_0.
    found = [name for name in facts if ours.match(name) and name in variables]
    shell = [f"ansible_{name}" for name in sorted(SHELL_OPTIONS.intersection(facts))]
    return sorted(found) + [name for name in shell if name in variables]


def refuse_facts(host: str, names: list[str]) -> str:
    """Return why a host is refused whose facts set these variables, and what to do; empty if there are none."""
    if not names:
        return ""
    return (
        f"{', '.join(names)}: set among the facts of {host}, which may come from that host and win over the inventory. "
        "If a set_fact of your own with cacheable did this, remove that and set the variable in the inventory or in "
        f"the play. Otherwise find out who controls {host}. Then clear the facts: run the command with --flush-cache"
    )
