# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lease of a job, as the run that works on the job holds it at its destination.

The destination alone decides who has a job, by its own clock (``_job/leases.py``). Each execution there begins with a
step that renews the lease, and does nothing else where that is another's. What runs at the source comes after a
renewal that is younger than the lease's life, so that no other control node can have the job by itself meanwhile.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.module_utils._core.boot import boot_seconds
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    member,
    number,
)

from ..common.host_text import one_line
from ..common.units import format_duration
from ..hosts.execution_retry import READING
from ..hosts.host_runner import Guard, HostFailed, HostRunner, LeaseLost

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job import steps
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import Step

LIFE = 900.0  # seconds without a sign of life after which another control node gets a lease
RENEWED = 1 / 3  # of its life after which a lease is renewed
_TRUSTED = 2 / 3  # of its life for which a renewal is known to hold
_LONGEST = 200  # characters of a text
_LARGEST = 1e9  # seconds


class LeaseHolder(NamedTuple):
    """The holder of a lease, as its host says; texts are harmless and on one line."""

    id: str
    who: str
    age: float | None  # seconds since it was taken; None: before the host was booted
    left: float  # seconds until it expires; 0 if it has, or was released
    firm: bool  # it does not expire
    released: bool = False

    @property
    def has_it(self) -> bool:
        """Whether nobody else gets it by itself."""
        return self.firm or self.left > 0


class LeaseAnswer(NamedTuple):
    """What a host says of a lease: whether this control node has it, who had it before, and what is wrong with it."""

    held: bool
    before: LeaseHolder | None = None
    problem: str = ""


def parse_answer(host: str, value: object) -> LeaseAnswer:
    """Return what a host says of a lease. Raises ValueError for what is no answer."""
    try:
        values = as_object(value, "the answer")
        problem = one_line(member(values, "problem", str)[: 5 * _LONGEST])
        found = values.get("found")
        before = None if found is None else _parse_holder(as_object(found, "found"))
        return LeaseAnswer(member(values, "held", bool) and not problem, before, problem)
    except WrongShape as error:
        raise ValueError(f"{host} returned no lease that can be read ({error})") from error


def parse_seen(value: object) -> LeaseHolder:
    """Return the holder of a lease that a host lists. Raises WrongShape."""
    return _parse_holder(as_object(value, "a lease"))


def _parse_holder(values: Mapping[str, Any]) -> LeaseHolder:
    age = None if values.get("age") is None else _seconds(values, "age")
    released = member(values, "released", bool)
    return LeaseHolder(
        id=member(values, "holder", str)[:64],
        who=one_line(member(values, "who", str)[:_LONGEST]) or "somebody",
        age=age,
        left=0.0 if released else _seconds(values, "left"),
        firm=member(values, "firm", bool) and not released,
        released=released,
    )


def _seconds(values: Mapping[str, Any], name: str) -> float:
    value = float(number(values, name))
    return min(value, _LARGEST) if value >= 0 else 0.0  # also for what is no number


@dataclass(frozen=True)
class Terms:
    """What a lease is asked for with."""

    job: str  # its name
    host: str  # the inventory host of its destination
    identity: str  # the id of its transfer
    holder: str  # the id of this control node
    who: str  # for people
    life: float = LIFE
    takeover: bool = False  # also of a lease that another has; only a person can know that its run is dead
    variable: str = "migrate_takeover"  # with which the user says so
    hooks: str = "hooks of its cutover"  # for which a lease is firm


def refusal(terms: Terms, holder: LeaseHolder) -> str:
    """Return why a job is left alone that another control node has, and what to do."""
    lasted = "" if holder.age is None else f" for {format_duration(int(holder.age))}"
    said = f"{holder.who} has been working on job {terms.job}{lasted}, as {terms.host} says. Nothing was done"
    force = f"set {terms.variable}=true only if you know that this run is dead"
    if holder.firm:
        return (
            f"{said}, since {terms.hooks} have begun and the source may be stopped. Wait, or continue it from there; "
            f"{force}"
        )
    return (
        f"{said}. Wait, or stop that run: the job is taken over by itself {format_duration(int(terms.life))} after its "
        f"last sign of life, which is in {format_duration(int(holder.left) + 1)} at the earliest. At once: {force}"
    )


def loss(terms: Terms, holder: LeaseHolder | None) -> str:
    """Return why a run ends with a job that it had."""
    if holder is None:
        what = f"the lease of job {terms.job} is gone from {terms.host}, where its file was removed from the state"
    else:
        what = f"{holder.who} has taken over job {terms.job}, as {terms.host} says"
    return (
        f"{what}, so this run does nothing more for it and has left its transfer alone. If that is not what you want, "
        "stop the other run, and run this again"
    )


def problem_of(terms: Terms, problem: str) -> str:
    """Return what is said of a lease that cannot be read or kept."""
    return (
        f"{terms.host}: {problem}. The lease keeps two control nodes from working on job {terms.job} at once. "
        f"{terms.variable}=true replaces one that cannot be read"
    )


def find_holder(terms: Terms, found: object) -> str:
    """Return why a job is another control node's, empty if it is free; ``found`` is what its host says of the lease."""
    try:
        answer = parse_answer(terms.host, found)
    except ValueError as error:
        return str(error)
    if answer.problem:
        return problem_of(terms, answer.problem)
    before = answer.before
    return "" if before is None or before.id == terms.holder or not before.has_it else refusal(terms, before)


def taken_over(terms: Terms, before: LeaseHolder | None) -> str:
    """Return what to tell of a lease that was another's until now; empty if it was not."""
    if before is None or before.released or before.id == terms.holder:
        return ""
    if not before.has_it:
        return f"taken over from {before.who}, which had given {terms.host} no sign of life for too long"
    hooks = f"{terms.hooks[0].upper()}{terms.hooks[1:]}"
    stopped = f". {hooks} had begun there, so the source may be stopped" if before.firm else ""
    return f"taken over from {before.who} at {terms.host}, as {terms.variable} says{stopped}"


class Lease:
    """The lease of one job in this run. Its functions may be called from several threads."""

    def __init__(
        self,
        terms: Terms,
        firm: bool | None = None,
        held: bool = False,
        now: Callable[[], float] = boot_seconds,
    ) -> None:
        """Take the terms, whether it is to be firm (None: as it is found), and whether this run ``held`` it before."""
        self.terms, self.firm = terms, firm
        self.lost = ""  # why nothing more may be done, once that is so
        self.held = held  # the destination has said so, in this run
        self.told = ""  # from whom it was taken over
        self._now, self._renewed = now, -math.inf
        self._turn = threading.RLock()  # executions at the destination, so that none is made for a renewal beside one

    @property
    def is_kept(self) -> bool:
        """Whether the destination has told this task that this control node has it, and it is not lost since."""
        return self.held and not self.lost and self._renewed > -math.inf

    @property
    def host(self) -> str:
        """The inventory host of the destination."""
        return self.terms.host

    @property
    def age(self) -> float:
        """The seconds since the destination said that this control node has it."""
        return self._now() - self._renewed

    @property
    def life(self) -> float:
        """See the terms."""
        return self.terms.life

    def now(self) -> float:
        """Return the time that ``take`` wants, before an execution."""
        return self._now()

    def request(
        self, act: str = "", *, guard: bool = False, record: Mapping[str, object] | None = None
    ) -> steps.LeaseStep:
        """Return the step that renews it, takes it where this run does not have it yet, or does something else.

        ``record`` is kept of the job first, if it still is this run's.
        """
        terms = self.terms
        return {
            "do": "lease",
            "id": terms.identity,
            "act": act or ("renew" if self.held else "take"),
            "holder": terms.holder,
            "who": terms.who[:_LONGEST],
            "life": terms.life,
            "takeover": terms.takeover,
            "firm": self.firm,
            "guard": guard,
            "record": record,
        }

    def take(self, value: object, sent: float) -> str:
        """Take the answer to a request that was made at ``sent``; return what is wrong with the lease, mostly nothing.

        From the first answer that says so on, it is lost.
        """
        try:
            answer = parse_answer(self.terms.host, value)
        except ValueError as error:
            return str(error)
        if answer.problem:
            return problem_of(self.terms, answer.problem)
        if answer.held and not self.lost:
            if not self.held:
                self.told = taken_over(self.terms, answer.before)
            self.held, self._renewed = True, sent
        elif not self.lost:
            before, had_it = answer.before, self.held
            self.lost = loss(self.terms, before) if had_it or before is None else refusal(self.terms, before)
        return ""

    def require(self) -> None:
        """Raise LeaseLost if nothing more may be done for the job."""
        if self.lost:
            raise LeaseLost(self.lost)

    def at_dest(self) -> Guard:
        """Return what begins each execution at the destination with a renewal."""
        return _AtDest(self, self._turn)

    def at_source(self, renew: Callable[[], object]) -> Guard:
        """Return what has each execution at the source come after a renewal; ``renew`` makes one."""
        return _AtSource(self, renew)


def guard(source: HostRunner, dest: HostRunner, lease: Lease) -> None:
    """Have all executions at both hosts of a job depend on its lease."""
    dest.guard, source.guard = lease.at_dest(), lease.at_source(dest.run)


def guard_prediction(dest: HostRunner, terms: Terms) -> None:
    """Have all executions at the destination check that no other control node has the job, without taking a lease."""
    dest.guard = _Prediction(terms)


class _Prediction:
    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    @contextmanager
    def turn(self, _steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        yield [Lease(self._terms).request("look")]

    def judge(self, answers: Sequence[object]) -> None:
        holder = find_holder(self._terms, answers[0] if answers else None)
        if holder:
            raise LeaseLost(holder)


class _AtDest:
    def __init__(self, lease: Lease, turn: threading.RLock) -> None:
        self._lease, self._turn = lease, turn
        self._sent = 0.0

    @contextmanager
    def turn(self, _steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        with self._turn:
            self._lease.require()
            self._sent = self._lease.now()
            yield [self._lease.request(guard=True)]

    def judge(self, answers: Sequence[object]) -> None:
        if len(answers) != 1:
            raise HostFailed("it returned no answer to the question for the lease", self._lease.host)
        problem = self._lease.take(answers[0], self._sent)
        self._lease.require()
        if problem:
            raise HostFailed(problem)


class _AtSource:
    def __init__(self, lease: Lease, renew: Callable[[], object]) -> None:
        self._lease, self._renew = lease, renew

    @contextmanager
    def turn(self, steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        self._lease.require()
        # A probe starts something only where nothing runs.
        is_old = not self._lease.held or self._lease.age > _TRUSTED * self._lease.life
        if is_old and not READING.issuperset(step["do"] for step in steps):
            self._renew()
        yield ()

    def judge(self, answers: Sequence[object]) -> None:
        """Nothing went before."""
