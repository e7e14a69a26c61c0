# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The passwords of --ask-become-pass, --ask-pass and their file variants, which count for every host."""

from __future__ import annotations

from multiprocessing import current_process
from typing import NamedTuple


class TypedPasswords(NamedTuple):
    """What the user typed, or named a file for; empty if nothing was asked."""

    become: str
    connection: str


def typed_passwords() -> TypedPasswords:
    """Return the passwords that ansible or ansible-playbook was given for all hosts.

    An action's own play context is no source for them: ansible-core writes what the variables of the task's host say
    into it, and one host's password must never be sent to another host. The worker keeps the context as it was before.
    """
    context = getattr(current_process(), "_play_context", None)
    return TypedPasswords(getattr(context, "become_pass", None) or "", getattr(context, "password", None) or "")
