# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Confine a job, and with it all that it starts. Private to the collection.

Called when the root is held and the staging folders are open, and before any thread starts. Names of users that are
looked up later need no right but to read.
"""

from __future__ import annotations

import os

from .._core.confinement.confine import confine
from .._core.confinement.plan import plan_process, plan_reader
from .._core.context import Context
from .._methods.registry import OVER_SSH


def confine_job(context: Context) -> list[str]:
    """Confine one end of a transfer; return what is in force.

    A listening side that is reached over ssh is not confined: it starts an sshd, and confines what it runs for each
    connection (``SshServer``). Neither is a connecting side whose ssh runs programs of the administrator's choice.
    """
    method = context.settings["method"]
    if method in OVER_SSH:
        from .._methods.ssh.client_command import runs_programs, system_config

        if context.part == "serve" or runs_programs(system_config()):
            return []
    chroots = method == "rsyncd" and context.part == "serve" and os.geteuid() == 0
    return confine(plan_process(context, chroots))


def confine_reader(root: bytes | int, folder: str, xattrs: bool) -> None:
    """Confine a job that only reads a tree."""
    confine(plan_reader(root, folder, xattrs))
