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
import threading
import time

_LOOK_SECONDS = 1.0
_GRACE_SECONDS = 60.0  # for an orphan to end what it is at, and to say what becomes of the work on the hosts


def ansible_pid() -> int:
    """Return the number of the process that made this worker, also where that is gone."""
    parent = multiprocessing.parent_process()
    return os.getppid() if parent is None or parent.pid is None else parent.pid


def is_gone() -> bool:
    """Whether it has ended, so that nobody reads what this worker returns."""
    return os.getppid() != ansible_pid()


def end_orphan() -> None:
    """End this worker if ansible-playbook is gone: nobody takes its result."""
    if is_gone():
        os._exit(1)


def watch_for_end() -> None:
    """Have this worker end some time after ansible-playbook has, whatever it is at then.

    All that it says and returns goes into a pipe. Once that is full, and nobody reads it, each word would be waited for
    for ever.
    """
    if multiprocessing.parent_process() is not None:
        threading.Thread(target=_end_as_orphan, daemon=True).start()


def _end_as_orphan() -> None:
    while not is_gone():
        time.sleep(_LOOK_SECONDS)
    time.sleep(_GRACE_SECONDS)
    os._exit(1)
