# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process of ansible-playbook. An action runs in a worker of it, which outlives it where that is killed.

Ansible gives each worker a session of its own, so that what ends the process group of ansible-playbook misses it. Then
it has another parent: whichever takes care of orphans.
"""

from __future__ import annotations

import multiprocessing
import os


def ansible_pid() -> int:
    """Return the number of the process that made this worker, also where that is gone."""
    parent = multiprocessing.parent_process()
    return os.getppid() if parent is None or parent.pid is None else parent.pid


def is_gone() -> bool:
    """Whether it has ended, so that nobody reads what this worker returns."""
    return os.getppid() != ansible_pid()


def end_orphan() -> None:
    """End this worker if ansible-playbook is gone.

    It would wait for ever until somebody takes its result, if that is longer than a pipe holds.
    """
    if is_gone():
        os._exit(1)
