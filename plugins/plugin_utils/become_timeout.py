# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether an execution that timed out at become is run again. Pure. Private to the collection.

Ansible's ssh connection gives up where become says neither that it wants a password nor that it succeeded. A host under
load, or whose name server is slow, does so now and then, and the next try succeeds. Ansible does not say which of the
two it waited for: the password may have been sent, and become may run what it was given although nobody waits for it
any more. With pipelining that is nothing, since a module is sent only after become succeeded. Without, the module lies
on the host already: then only steps that change nothing are run again.
"""

from __future__ import annotations

from typing import Iterable

RETRIES = 2
PAUSE = 2.0  # seconds
READING = frozenset(["probe", "describe", "poll", "drill_down", "look_up_owners"])  # steps that change nothing
_TEXT = "waiting for privilege escalation prompt"


def is_become_timeout(text: str) -> bool:
    """Return whether Ansible gave up while it waited for become."""
    return _TEXT in text


def may_run_again(steps: Iterable[str], pipelining: bool) -> bool:
    """Return whether these steps may be run again after a timeout of become, which some of them may have survived."""
    return pipelining or READING.issuperset(steps)
