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
from collections.abc import Iterable, Mapping
from typing import Any

# Options of the connection, shell and become plugins of ansible-core that it lets facts set, as facts are named without
# "ansible_". Some name programs of the control node, such as sftp_executable; some are put into commands of the host.
PLUGIN_OPTIONS = frozenset(
    [
        *("control_path", "control_path_dir", "host_key_checking", "private_key", "private_key_passphrase"),
        *("scp_executable", "sftp_batch_mode", "sftp_executable", "sshpass_prompt", "ssh_host_key_checking"),
        *("scp_extra_args", "sftp_extra_args"),
        *("remote_tmp", "system_tmpdirs", "async_dir", "common_remote_group", "admin_users"),
        "shell_allow_world_readable_temp",
        *("paramiko_host", "paramiko_host_key_checking", "paramiko_pass", "paramiko_password", "paramiko_port"),
        *("paramiko_private_key_file", "paramiko_proxy_command", "paramiko_timeout", "paramiko_user"),
        "paramiko_use_rsa_sha2_algorithms",
        *("runas_flags", "runas_pass", "runas_user"),
        *("su_exe", "su_flags", "su_pass", "su_prompt_l10n", "su_user"),
        *("sudo_chdir", "sudo_exe", "sudo_flags", "sudo_pass", "sudo_user"),
    ]
)

# Variables of a host that Ansible makes itself and lets facts replace: who it is, and where its inventory lies. Roles
# read hook files and write reports there.
_IDENTITY = ("group_names", "inventory_dir", "inventory_file", "inventory_hostname", "inventory_hostname_short")


def find_set_by_facts(variables: Mapping[str, Any], *roles: str) -> list[str]:
    """Return the variables of this collection, of Ansible and of its plugins that facts have set, by name.

    ``variables`` are those of a host, with its facts as ``ansible_facts``: an action's ``task_vars`` for the host of
    the play, or an entry of ``hostvars``. Of this collection's roles the variables of ``roles`` count, and
    ``longhaul_*`` always.
    """
    facts = variables.get("ansible_facts") or {}
    ours = re.compile(f"_*(?:{'|'.join(('longhaul', 'fleet', *roles))})_")
    # A fact sets a variable only if it is there under the whole name: an interface "nic-0" is the fact ansible_nic_0.
    found = sorted(name for name in facts if ours.match(name) and name in variables)
    # These are there in any case, so a fact has set one if it has the same value.
    found += [name for name in _IDENTITY if name in facts and facts[name] == variables.get(name)]
    return found + find_options_set_by_facts(variables, (f"ansible_{name}" for name in PLUGIN_OPTIONS))


def find_options_set_by_facts(variables: Mapping[str, Any], options: Iterable[str]) -> list[str]:
    """Return which of the variables ``options`` of Ansible's plugins facts have set, by name."""
    facts = variables.get("ansible_facts") or {}
    return sorted(one for one in options if one.removeprefix("ansible_") in facts and one in variables)


def put_clean_first(hosts: Iterable[str], variables: Mapping[str, Any], *roles: str) -> list[str]:
    """Return hosts with those last whose facts have set such variables: the first one speaks for a play of all.

    ``variables`` are those of the task. Without ``--limit``, which may leave hosts out, it looks no further than to the
    first host that has not.
    """
    listed, refused = list(hosts), []
    for host in listed:
        if find_set_by_facts(variables["hostvars"][host], *roles):
            refused.append(host)
        elif "ansible_limit" not in variables:
            break
    return [*(host for host in listed if host not in refused), *refused]


def refuse_facts(host: str, names: list[str]) -> str:
    """Return why a host is refused whose facts set these variables, and what to do; empty if there are none."""
    if not names:
        return ""
    return (
        f"{', '.join(names)}: set among the facts of {host}, which may come from that host and win over the inventory. "
        "If a set_fact of your own with cacheable did this, remove that and set the variable in the inventory or in "
        f"the play. Otherwise find out who controls {host}. Then clear the facts: run the command with --flush-cache"
    )
