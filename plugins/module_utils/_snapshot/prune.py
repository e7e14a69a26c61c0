# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remove the snapshots that a policy does not keep. Private to the collection.

First every one of them gets a name that is no snapshot's, in one step each; then their trees are removed, which takes
time. A kill in between leaves only trees under such names, and the next run removes them. One that is being read, by a
restore most likely, is left to the next prune.
"""

from __future__ import annotations

import contextlib
import os
from typing import Callable, Collection, NamedTuple

from .._tree.dirfd import Root
from . import names
from .begin import unfinished_facts
from .errors import Refused
from .history import PRUNED, event_of, note
from .hold import active_holds, ending_clock
from .policy import Policy, decide, describe
from .read_lock import unless_read
from .read_only import make_writable
from .repository import Series
from .time_zones import Calendar, utc

HELD = "being read"  # the rule that keeps what a restore reads


class PruneOutcome(NamedTuple):
    """What a pruning did, or would do."""

    changed: bool
    kept: dict[str, list[str]]  # name -> the rules that keep it
    removed: list[str]  # names of snapshots that were complete
    leftovers: list[str]  # names that an earlier run had not removed to the end
    held: dict[str, str]  # name -> who is reading it, of those that would have gone
    protected_leftovers: list[str]  # names of protected snapshots that somebody renamed to be removed


def prune(
    series: Series,
    policy: Policy,
    now: int,
    calendar: Calendar = utc,
    reader: Callable[[str], str | None] = lambda path: None,
    *,
    lazy: bool = False,
    control_time: int | None = None,
    check: bool = False,
    counts_new: bool = False,
) -> PruneOutcome:
    """Remove complete snapshots that no rule and no hold keeps, and that nobody reads. The lock is the caller's.

    ``reader`` says which job reads below a path. ``control_time`` is that of the control node's clock. ``lazy`` leaves
    the trees for the next run, under names that are no snapshots'. With ``check`` nothing is removed; ``counts_new``
    then counts a snapshot of this moment, which a run would have completed before. Raises Refused if a snapshot was
    set aside, for then the old ones may be the only good ones, and where a tree cannot be removed.
    """
    aside = series.named(names.ASIDE)
    if aside:
        raise Refused(
            f"{series.path} has a snapshot that was set aside, since suspiciously much is gone or has changed: "
            f"{aside[-1]}. Until somebody has decided about it, the snapshots before may be the only good ones, so "
            "none is pruned. Compare it with them, then accept or discard it"
        )
    settled = series.settle(now, check)
    clock = ending_clock(series, now, control_time)
    stays = active_holds(series, names.REMOVING, clock)
    leftovers = [name for name in series.named(names.REMOVING) if name not in stays]
    complete = series.times()
    new = {now} - set(complete) if check and counts_new else set()
    kept = decide([*complete, *new], policy, now, calendar)
    _keep_used(series, kept, now)
    kept = {at: rules for at, rules in kept.items() if at not in new}
    for name, hold in active_holds(series, names.COMPLETE, clock).items():
        kept[names.time_of(name) or 0].append(hold.rule)
    going, held = [], {}
    for at in complete:
        if kept[at]:
            continue
        name = names.name_of(at)
        with unless_read(series, name, reader) as holder:
            if holder is not None:
                held[name] = holder
                kept[at].append(HELD)
                continue
            going.append(name)
            if not check:
                series.step(f"set {name} apart")
                series.rename(name, names.REMOVING_PREFIX + name)
    events = [event_of(series, PRUNED, name, now, f"keep: {describe(policy)}") for name in going] if not check else []
    is_noted = note(series, *events)
    if not check and not lazy:
        _remove_leftovers(series, stays)
    if not is_noted:  # a full disk has room now
        note(series, *events)
    return PruneOutcome(
        bool(settled or going or (leftovers and not lazy)),
        {names.name_of(at): rules for at, rules in kept.items() if rules},
        going,
        leftovers,
        held,
        list(stays),
    )


def _keep_used(series: Series, kept: dict[int, list[str]], now: int) -> None:
    """Keep what is in use, whatever the policy says."""
    latest = names.latest_of(now, list(kept))
    unfinished = unfinished_facts(series) if series.has(names.UNFINISHED) else None
    base = names.time_of(unfinished.base) if unfinished else None
    for at, rule in ((latest, "latest"), (base, "base of the unfinished one")):
        if at in kept and rule not in kept[at]:
            kept[at].append(rule)


def _remove_leftovers(series: Series, stays: Collection[str]) -> None:
    """Remove what stands under a name for it, but for what ``stays``. Raises Refused for what does not go."""
    for name in series.named(names.REMOVING):
        if name not in stays:
            series.step(f"remove {name}")
            remove_tree(series, name)


def remove_tree(series: Series, name: str) -> None:
    """Remove a folder of a snapshot. Raise Refused if it does not go, and says why."""
    try:
        with contextlib.suppress(FileNotFoundError), series.snapshot(name) as snapshot:
            make_writable(snapshot)
        with Root(series.fd) as root, contextlib.suppress(FileNotFoundError):
            root.remove(os.fsencode(name))
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else name
        raise Refused(
            f"{where} in {series.path} cannot be removed: {error.strerror}. It is no snapshot any more, and the next "
            "prune tries again. Look for immutable files (lsattr) and mounts in it"
        ) from None
