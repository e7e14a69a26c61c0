# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hooks of the switch have run, and which are left, also where the user's list has changed in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..hooks import tell_hook
from .state import HookRun, Identity, MigrationState

KIND = "after_cutover"


class Hooks(NamedTuple):
    """The hooks of a switch: those that ran, and those that are left, as the user wrote them."""

    done: list[HookRun]
    left: list[Mapping[str, Any]]


def divide(state: MigrationState, hooks: Sequence[Mapping[str, Any]]) -> Hooks:
    """Divide the hooks of a job's switch by its state.

    A hook is known by its host and its name, one without a name by what it runs. Versions before 0.2.0 wrote down only
    how many had run: those are the first of the list.
    """
    switch, identity = state.switch, state.identity
    told = [HookRun(**tell_hook(hook, KIND, _host(hook, identity))) for hook in hooks]
    if switch is None:
        return Hooks([], list(hooks))
    if switch.hooks is None:
        return Hooks(told[: switch.steps], list(hooks[switch.steps :]))
    unmatched = list(switch.hooks)
    waiting = list(range(len(hooks)))
    # Of those that share a name, what ran is found first by what it is.
    for keys in (("host", "name", "what"), ("host", "name")):
        for number in list(waiting):
            same = [one for one in unmatched if all(getattr(one, key) == getattr(told[number], key) for key in keys)]
            if same:
                unmatched.remove(same[0])
                waiting.remove(number)
    return Hooks(list(switch.hooks), [hooks[number] for number in waiting])


def _host(hook: Mapping[str, Any], identity: Identity) -> str:
    """Return the inventory host that a hook names, maybe by its side in the job."""
    host = str(hook.get("host"))
    return {"source": identity.src_host, "dest": identity.dest_host}.get(host, host)
