# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether an execution on a host that failed on its way is run again. Pure. Private to the collection.

Ansible's ssh connection gives up where become says neither that it wants a password nor that it succeeded. A host under
load, or whose name server is slow, does so now and then, and the next try succeeds. Ansible does not say which of the
two it waited for: the password may have been sent, and become may run what it was given although nobody waits for it
any more. With pipelining that is nothing, since a module is sent only after become succeeded. Without, the module lies
on the host already: then only steps that change nothing are run again.

An sshd that is asked by too many at once turns some away before they log in: nothing has run then.

A host that never answers holds the place of others, so each question has a deadline.

With pipelining, ssh may end while the module is written to it. Ansible then says why it ended, but only if the process
is gone within a millisecond. Otherwise the next try says it, or a command without input does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

RETRIES = 2
PAUSE = 2.0  # seconds, for become and for an sshd with too many connections
# Steps that change nothing, or the same when they are done twice.
READING = frozenset(
    [
        *(
            "probe",
            "describe",
            "discover",
            "find_tree_users",
            "poll",
            "overview",
            "keep_record",
            "lease",
            "drill_down",
            "look_up_owners",
        ),
        *("inspect_snapshot", "inspect_destination", "choose_share"),
    ]
)
_SHORT_ACTIONS = ("list", "begin")  # with snapshots; the others may read or remove whole trees
_LONG_STEPS = ("sync", "inspect_snapshot", "choose_share", "scratch")  # that may read or remove whole trees
LONG = 86400.0  # seconds for these
_TURNED_AWAY = ("kex_exchange_identification", "Exceeded MaxStartups", "Not allowed at this time")
_BECOME = "waiting for privilege escalation prompt"
_NOT_SENT = "Data could not be sent"
_UNEXPLAINED = ("reached over SSH.", "Broken pipe")  # as ansible-core 2.20 says it, and 2.17


def is_become_timeout(text: str) -> bool:
    """Return whether Ansible gave up while it waited for become."""
    return _BECOME in text


def was_turned_away(text: str) -> bool:
    """Return whether an sshd ended the connection before anybody could log in, as one with too many does."""
    return any(words in text for words in _TURNED_AWAY)


def wants_terminal(text: str) -> bool:
    """Return whether become refused to run without a terminal, by what a host said (sudo's ``requiretty``).

    It says so in the user's language, but ``tty`` in all of them.
    """
    return re.search(r"\btty\b", text, re.IGNORECASE) is not None


def is_unexplained(text: str) -> bool:
    """Return whether ssh ended while the module was written to it, and Ansible does not say why."""
    return _NOT_SENT in text and any(words in text for words in _UNEXPLAINED)


def longest_answer(steps: Iterable[Mapping[str, object]], short: float) -> float:
    """Return how many seconds the answer to these steps may take, without those for which they wait on purpose.

    ``short`` are the seconds for questions that are none of long work.
    """
    longest = short
    for step in steps:
        then = step.get("then")
        inside = longest_answer(then, short) if isinstance(then, (list, tuple)) else 0.0
        waits = [step[name] for name in ("wait", "seconds", "interval") if name in step]
        longest += sum(one for one in waits if isinstance(one, (int, float)))
        is_long = step["do"] in _LONG_STEPS or (step["do"] == "snapshot" and step.get("action") not in _SHORT_ACTIONS)
        longest = max(longest, inside, LONG if is_long else 0.0)
    return longest


def may_run_again(text: str, steps: Iterable[str], pipelining: bool) -> bool:
    """Return whether steps may be run again that failed with this text, and would then tell more or succeed."""
    changes_nothing = READING.issuperset(steps)
    if was_turned_away(text):
        return True
    if is_become_timeout(text):
        return pipelining or changes_nothing
    return changes_nothing and is_unexplained(text)
