# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that switch over together, or not at all: those of one ``cutover_group``.

The state of a job says as ``group`` how far it is in a run: the ``name`` of the group, the ``run``, the ``members``
once they are to stop, and what the job ``stands`` at. At each gate of the cutover the states of all members decide.
A job that says nothing in this run (another run has it) holds up the others, and what a job said in an earlier run
counts for nothing.

The switch of a group is decided once, by the first state in which it has begun. A run that is killed after that is
continued with all of them, since each member knows the others (``joins_begun``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

from .advice import begin_again
from .state import GroupState, MigrationState, Readiness, Switch

States = Mapping[str, "MigrationState | None"]  # by job; None if none is kept, or if it cannot be read


class Gate(Enum):
    """Where the members of a group wait for each other, in this order."""

    STOP = "stop"
    COPY = "copy"
    SWITCH = "switch"


NEEDED: Mapping[Gate, Readiness] = {
    Gate.STOP: Readiness.WAITING,
    Gate.COPY: Readiness.STOPPED,
    Gate.SWITCH: Readiness.READY,
}


class Group(NamedTuple):
    """The jobs of a group and the hosts that they go to, both in the order of the list."""

    jobs: list[str]
    hosts: list[str]


def find_groups(
    jobs: Iterable[Mapping[str, Any]],
    defaults: Mapping[str, Any] = MappingProxyType({}),
    only: Sequence[str] = (),
) -> dict[str, Group]:
    """Return the groups of a list of jobs, as far as jobs of theirs are among ``only``; empty means all."""
    groups: dict[str, Group] = {}
    for written in jobs:
        job = {**defaults, **written}
        name = str(job.get("cutover_group") or "")
        if name:
            group = groups.setdefault(name, Group([], []))
            group.jobs.append(str(job["name"]))
            if job["dest_host"] not in group.hosts:
                group.hosts.append(str(job["dest_host"]))
    return {name: group for name, group in groups.items() if not only or set(group.jobs) & set(only)}


def find_left_out(
    groups: Mapping[str, Group],
    hosts: Iterable[str],
    only: Sequence[str] = (),
) -> list[str]:
    """Return a sentence for each group that a run would tear apart, with what to type.

    ``hosts`` are those that the run has, and ``only`` are the jobs that it was restricted to. A group of which no host
    takes part is left alone.
    """
    here, found = set(hosts), []
    for name, group in groups.items():
        absent = [host for host in group.hosts if host not in here]
        if len(absent) == len(group.hosts):
            continue
        missing = [job for job in group.jobs if only and job not in only]
        together = f"the jobs of cutover_group {name} ({', '.join(group.jobs)}) switch over together"
        if missing:
            wanted = json.dumps({"migrate_only": list(dict.fromkeys([*only, *group.jobs]))})
            absentees = ", ".join(missing)
            found.append(f"{together}, and migrate_only leaves out {absentees}. Take all of them: -e '{wanted}'")
        elif absent:
            limit = ",".join(["localhost", *group.hosts])
            found.append(
                f"{together}, and this run has not the hosts {', '.join(absent)}: --limit or serial leaves them out, "
                f"or they failed. Take all of them, with --limit '{limit}' or without a limit, and without serial"
            )
    return found


def enter(state: MigrationState, group: str, run: str) -> None:
    """Enter a job into a run; ``group`` is empty if it has none.

    What is switching or was switched over keeps what it was decided with.
    """
    if not state.is_switched:
        state.group = GroupState(group, run, Readiness.WAITING) if group else None


def siblings(state: MigrationState) -> list[str]:
    """Return the other members of a job's group whose states may say that its switch was decided."""
    group = state.group
    if group is None or group.stands != Readiness.READY or state.is_switched:
        return []
    return [name for name in group.members or () if name != state.name]


def joins_begun(state: MigrationState, others: Iterable[MigrationState | None]) -> bool:
    """Whether the switch of a job has been decided, though its own state does not say so yet.

    That is where it was ready, and another member began its switch in the same run.
    """
    run = state.group.run if state.group else ""
    decided = [one for one in others if one and one.is_switched and one.group and one.group.run == run]
    return bool(siblings(state) and decided)


def begin_switch(state: MigrationState, now: str) -> None:
    """Decide the switch of a job, of which no hook has run."""
    state.switch = Switch(done=False, at=now, hooks=[])


def find_obstacles(states: States, run: str, gate: Gate) -> dict[str, str]:
    """Return for each member of a group why it does not pass a gate, by the states of all; empty if it does."""
    switched = [name for name, state in states.items() if state and state.is_switched]
    waiting = [name for name in states if name not in switched]
    reason = ""
    if switched and waiting:
        reason = (
            f"of its group, {', '.join(switched)} {'was' if len(switched) == 1 else 'were'} switched over before, and "
            f"{', '.join(waiting)} {'was' if len(waiting) == 1 else 'were'} not. Leave cutover_group out of what is to "
            f"be switched over by itself, or begin all of them again with {begin_again(list(states))}"
        )
    elif waiting:
        missing = [name for name in waiting if not _stands(states[name], run, NEEDED[gate])]
        said = ". ".join(_tell(name, states[name], run) for name in missing)
        reason = f"no job of its group goes on without the others: {said}" if missing else ""
    return {name: reason if name in waiting else "" for name in states}


def settle(states: States, run: str, gate: Gate, now: str, commits: bool = True) -> dict[str, str]:
    """Decide at a gate, change the states accordingly, and return for each member why it does not go on.

    The states must be written before any member goes on. At the first gate they come to know their group; at the last
    one the switch of all begins (``commits``; a rehearsal begins none).
    """
    for name, state in states.items():
        others = [one for other, one in states.items() if other != name]
        if state and joins_begun(state, others):
            begin_switch(state, now)
    obstacles = find_obstacles(states, run, gate)
    for name, state in states.items():
        if state is None or state.group is None or state.is_switched or not _stands(state, run, NEEDED[gate]):
            continue
        if obstacles[name]:
            state.group.stands = Readiness.BACK
        elif gate is Gate.STOP:
            state.group.members = list(states)
        elif gate is Gate.SWITCH and commits:
            begin_switch(state, now)
    return obstacles


def _stands(state: MigrationState | None, run: str, needed: Readiness) -> bool:
    """Whether a job has come in this run as far as is needed."""
    if state is None or state.group is None or state.group.run != run or state.failure is not None:
        return False
    order = list(Readiness)
    return order.index(state.group.stands) >= order.index(needed)


def _tell(name: str, state: MigrationState | None, run: str) -> str:
    """Return why a job does not stand where it is needed."""
    if state is None or state.run.id != run:
        return f"job {name} takes no part in this run: its host does not, or its state is of no use"
    if state.failure is not None:
        return f"job {name} stopped in phase {state.failure.phase}"
    return f"job {name} was told to go back"
