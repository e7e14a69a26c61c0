# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that switch over together, or not at all: those of one ``cutover_group``.

The state of a job says as ``group`` how far it is in a run: the ``name`` of the group, the ``run``, the ``members``
once they are to stop, and what the job ``stands`` at. Before each part of the cutover the states of all members decide.
A job that says nothing in this run (its host was left out, or was lost) holds up the others, and what a job said in an
earlier run counts for nothing.

The switch of a group is decided once, by the first state in which it has begun. A run that is killed after that is
continued with all of them, since each member knows the others (``joins_begun``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict

from .stages import Stage, stage_of

State = Mapping[str, Any]  # that is kept of a job; empty if there is none, or if it could not be read


class Standing(Enum):
    """What a job of a group has done in a run, in this order."""

    BACK = "back"  # the group was told not to go on
    WAITING = "waiting"  # its copy is up to date, and its source serves
    STOPPED = "stopped"  # the hooks of before_cutover have run
    READY = "ready"  # the final pass and the comparison succeeded


class Gate(Enum):
    """What the members of a group ask before they do it."""

    STOP = "stop"
    COPY = "copy"
    SWITCH = "switch"


NEEDED: Mapping[Gate, Standing] = {
    Gate.STOP: Standing.WAITING,
    Gate.COPY: Standing.STOPPED,
    Gate.SWITCH: Standing.READY,
}


class Group(TypedDict):
    """The jobs of a group and the hosts that they go to, both in the order of the list."""

    jobs: list[str]
    hosts: list[str]


class Verdict(NamedTuple):
    """What a group was told."""

    reasons: dict[str, str]  # for each job, why it does not go on; empty if it does
    stopped: list[str]  # the jobs whose source is stopped


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
            group = groups.setdefault(name, {"jobs": [], "hosts": []})
            group["jobs"].append(str(job["name"]))
            group["hosts"] += [str(job["dest_host"])] if job["dest_host"] not in group["hosts"] else []
    return {name: group for name, group in groups.items() if not only or set(group["jobs"]) & set(only)}


def find_together(groups: Mapping[str, Group], names: Iterable[str]) -> list[str]:
    """Return the hosts of the groups that go to several hosts and have a job among ``names``, each once."""
    wanted = set(names)
    spread = [group for group in groups.values() if len(group["hosts"]) > 1 and wanted & set(group["jobs"])]
    return list(dict.fromkeys(host for group in spread for host in group["hosts"]))


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
        absent = [host for host in group["hosts"] if host not in here]
        if len(absent) == len(group["hosts"]):
            continue
        missing = [job for job in group["jobs"] if only and job not in only]
        together = f"the jobs of cutover_group {name} ({', '.join(group['jobs'])}) switch over together"
        if missing:
            wanted = json.dumps({"migrate_only": list(dict.fromkeys([*only, *group["jobs"]]))})
            absentees = ", ".join(missing)
            found.append(f"{together}, and migrate_only leaves out {absentees}. Take all of them: -e '{wanted}'")
        elif absent:
            limit = ",".join(["localhost", *group["hosts"]])
            found.append(
                f"{together}, and this run has not the hosts {', '.join(absent)}: --limit or serial leaves them out, "
                f"or they failed. Take all of them, with --limit '{limit}' or without a limit, and without serial"
            )
    return found


def enter(state: State, group: str, run: str) -> State:
    """Return the state of a job that was brought up to its cutover by a run; ``group`` is empty if it has none.

    What is switching or was switched over keeps what it was decided with.
    """
    if stage_of(state) in (Stage.SWITCHING, Stage.SWITCHED):
        return dict(state)
    others = {key: value for key, value in state.items() if key != "group"}
    return {**others, "group": {"name": group, "run": run, "stands": Standing.WAITING.value}} if group else others


def siblings(state: State) -> list[str]:
    """Return the other members of a job's group whose states may say that its switch was decided."""
    group = state.get("group", {})
    is_ready = group.get("stands") == Standing.READY.value and not state.get("switch")
    return [name for name in group.get("members", []) if name != state["name"]] if is_ready else []


def joins_begun(state: State, others: Iterable[State]) -> bool:
    """Whether the switch of a job has been decided, though its own state does not say so yet.

    That is where it was ready, and another member began its switch in the same run.
    """
    run = state.get("group", {}).get("run")
    decided = [one for one in others if one.get("switch") and one.get("group", {}).get("run") == run]
    return bool(siblings(state) and decided)


def begin_switch(state: State, now: str) -> State:
    """Return the state of a job whose switch is decided, and of which no hook has run."""
    return {**state, "switch": {"done": False, "at": now, "hooks": [], "steps": 0}}


def judge(states: Mapping[str, State], run: str, gate: Gate) -> Verdict:
    """Return what each member of a group is told at a gate, by the states of all."""
    switched = [name for name, state in states.items() if _is_switched(state)]
    waiting = [name for name in states if name not in switched]
    stopped = [name for name, state in states.items() if state and stage_of(state) is Stage.STOPPED]
    reason = ""
    if switched and waiting:
        reason = (
            f"of its group, {', '.join(switched)} {'was' if len(switched) == 1 else 'were'} switched over before, and "
            f"{', '.join(waiting)} {'was' if len(waiting) == 1 else 'were'} not. Leave cutover_group out of what is to "
            "be switched over by itself, or begin all of them again with -e migrate_reset=true"
        )
    elif waiting:
        missing = [name for name in waiting if not _stands(states[name], run, NEEDED[gate])]
        said = ". ".join(_tell(name, states[name], run) for name in missing)
        reason = f"no job of its group goes on without the others: {said}" if missing else ""
    return Verdict({name: reason if name in waiting else "" for name in states}, stopped)


def settle(
    states: Mapping[str, State], run: str, gate: Gate, now: str, own: Collection[str], commits: bool = True
) -> tuple[Verdict, dict[str, State]]:
    """Judge a group, and return with its verdict the states that are written down before anything is done.

    ``own`` are the jobs of the host that asks. Of others a state is written only where its host waits for just this:
    the first who is told to stop makes the members known to each of them, and the first who is told to switch begins
    the switch of all (``commits``; a rehearsal begins none). Jobs of its own that are told not to go on do not do so in
    this run, even if the others arrive later.
    """
    joined = {
        name: begin_switch(state, now)
        for name, state in states.items()
        if joins_begun(state, [one for other, one in states.items() if other != name])
    }
    states = {**states, **joined}
    verdict = judge(states, run, gate)
    written: dict[str, State] = dict(joined)
    for name, state in states.items():
        if _is_switched(state) or not _stands(state, run, NEEDED[gate]):
            continue
        group = state["group"]
        if verdict.reasons[name]:
            if name in own:
                written[name] = {**state, "group": {**group, "stands": Standing.BACK.value}}
        elif gate is Gate.STOP and "members" not in group:
            written[name] = {**state, "group": {**group, "members": list(states)}}
        elif gate is Gate.SWITCH and commits:
            written[name] = begin_switch(state, now)
    return verdict, written


def _is_switched(state: State) -> bool:
    return bool(state) and stage_of(state) in (Stage.SWITCHING, Stage.SWITCHED)


def _stands(state: State, run: str, needed: Standing) -> bool:
    """Whether a job has come in this run as far as is needed. Another host of the group may be a part ahead."""
    group, order = state.get("group", {}), list(Standing)
    if group.get("run") != run or state["failure"]:
        return False
    return order.index(Standing(group["stands"])) >= order.index(needed)


def _tell(name: str, state: State, run: str) -> str:
    """Return why a job does not stand where it is needed."""
    if not state or state.get("run", {}).get("id") != run:
        return f"job {name} takes no part in this run: its host does not, or its state is of no use"
    failure = state["failure"]
    if failure:
        return f"job {name} stopped in phase {failure['phase']}"
    if state.get("group", {}).get("stands") == Standing.BACK.value:
        return f"job {name} was told to go back"
    return f"job {name} has not come as far, because its host was lost, or did not wait for the others (strategy free)"
