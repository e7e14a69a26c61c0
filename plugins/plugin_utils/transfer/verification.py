# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare both trees after a transfer, and have sent again what differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import among, counted, entries_text
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome

from ..hosts.host_runner import HostRunner
from .comparison import Comparison, ComparisonFailed, ComparisonOutcome, Digest, Steps
from .plan import CHANGES_LISTED, Plan
from .repair import ROUNDS, WHOLE_PROGRAM, add_repair, hiding, note_repaired, settings_for_repair
from .report import TransferError, verified_fields
from .result import Result

_FAR_NS = 2**31 * 10**9  # in which several file systems keep times
_NAMED = 3  # differences in a message


@dataclass(frozen=True)
class Verification:
    """What a transfer is compared by, and how it is repeated.

    ``before`` and ``after`` are the last steps of a transfer, which are sent with a comparison. ``send_again`` runs a
    plan and gives its outcome; what it leaves on the hosts goes with the comparison after it.
    """

    plan: Plan
    comparison: Comparison
    before: Steps
    after: Steps
    label: str
    say: Callable[[str], None]
    phase: Callable[[str], AbstractContextManager[None]]  # counts the seconds
    send_again: Callable[[Plan], Outcome]

    @property
    def repairs(self) -> bool:
        """Whether what differs is sent again: where contents were compared."""
        return "content" in self.comparison.fields

    def run(
        self, result: Result, quick_digests: Mapping[str, Digest | None] = MappingProxyType({})
    ) -> ComparisonOutcome:
        """Complete the transfer's result, and return what was found in the end, with the owners counted at first.

        Raises TransferError, with the result, where the trees are not the same. ``quick_digests`` is what
        Comparison.run takes, for the first one.
        """
        first = found = self._compare(self.comparison, result, quick_digests)
        suspects: set[str] | None = set()  # paths whose contents are in doubt; None: too many to list them
        number = 0
        while found.differences_total and self.repairs and number < ROUNDS:
            number += 1
            suspects = _suspects(suspects, found)
            different = counted(found.differences_total, "entry differs", "entries differ")
            self.say(f"{self.label}: {different}; what differs is sent again")
            settings = settings_for_repair(self.plan.settings, suspects, number)
            try:
                outcome = self.send_again(replace(self.plan, settings=settings))
            except TransferError as error:
                raise _not_repaired(found, error, result) from error
            add_repair(result, outcome, CHANGES_LISTED)
            content_of = None if suspects is None else sorted(suspects)
            found = self._compare(replace(self.comparison, content_of=content_of), result)
        if number:
            note_repaired(result, first, found)
        if found.differences_total:
            # Extra entries never count as unstable: whatever else differs, or is not explained, is a failure.
            if self.repairs or found.unstable < found.differences_total:
                raise _differs(found, number, result, self.plan.settings["method"])
            _note_changed(found, result)
        return found._replace(owners=first.owners)

    def _compare(
        self,
        comparison: Comparison,
        result: Result,
        quick_digests: Mapping[str, Digest | None] = MappingProxyType({}),
    ) -> ComparisonOutcome:
        with self.phase("verify"):
            try:
                found = comparison.run(self.say, before=self.before, after=self.after, quick_digests=quick_digests)
            except ComparisonFailed as error:
                raise TransferError(f"the transfer ended, but could not be verified: {error}", result) from error
        result["unstable"], result["differences_total"] = found.unstable, found.differences_total
        result["compared"] = {"algorithm": comparison.algorithm if self.repairs else "", **found.counts}
        return found


def comparison_of(
    plan: Plan,
    runners: Mapping[str, HostRunner],
    options: Mapping[str, Any],
    label: str,
    reads_rounded: bool = False,
    kept_mounts: Sequence[str] = (),
) -> Comparison:
    """Return the comparison after a transfer; ``options`` are the module's, with their defaults.

    ``reads_rounded``: contents count where the destination keeps times coarsely. ``kept_mounts``: what was not deleted
    because something is mounted there; rsync does not say which of it the source has.
    """
    by_rsync = plan.settings["method"] in WHOLE_PROGRAM
    settings = plan.settings
    by_content = options["verify"] == "checksum"
    is_coarse = "times" in settings["preserve"] and bool(settings["time_units"])
    reads_rounded = reads_rounded and is_coarse and not by_content
    return Comparison(
        runners=runners,
        roots={"source": plan.roots.source, "dest": plan.roots.dest},
        identity=plan.transfer_id,
        fields=verified_fields(settings["preserve"], by_content or reads_rounded, plan.both_root, settings["trust"]),
        content_of_rounded=reads_rounded,
        time_units=settings["time_units"],
        rules=settings["rules"],
        only=plan.roots.only,
        one_file_system=settings["one_file_system"],
        exclude_if_present=settings["exclude_if_present"],
        exclude_caches=settings["exclude_caches"],
        owner_map=settings["owner_map"],
        count_owners=settings["preserve"] if settings["method"] in WHOLE_PROGRAM and settings["numeric_ids"] else None,
        special_files=[word for word in ("devices", "specials") if word in settings["preserve"]],
        extra=settings["delete"]
        and not settings["rules"]
        and not settings["exclude_if_present"]
        and not settings["exclude_caches"]
        and plan.roots.only is None
        and not (by_rsync and kept_mounts),
        rules_at_dest=() if by_rsync else hiding(kept_mounts),
        changed_after_ns=plan.started_ns,
        label=label,
        patience=options["timeout"],
        short=plan.short,
    )


def _suspects(known: set[str] | None, found: ComparisonOutcome) -> set[str] | None:
    """Add what a comparison found to the paths in doubt; None if it found more than it lists."""
    if known is None or found.differences_total > len(found.differences):
        return None
    return known | {one["path"] for one in found.differences}


def _named(found: ComparisonOutcome) -> str:
    """Return some of what was found in words. The times of a folder follow what is in it, so they come last."""
    ordered = sorted(found.differences, key=lambda one: one["fields"] == ["mtime"])
    named = [
        f"{one['path']!r} ({' '.join([one['kind'], ', '.join(one['fields'])]).strip()})" for one in ordered[:_NAMED]
    ]
    return among(named, found.differences_total)


def _different(found: ComparisonOutcome) -> str:
    return counted(found.differences_total, "entry is not the same", "entries are not the same") + " on both hosts"


def _note_changed(found: ComparisonOutcome, result: Result) -> None:
    """Note in the result that all differences are changes at the source since the transfer began."""
    result["differences"] = list(found.differences)
    warning = (
        f"{entries_text(found.unstable)} {CHANGED_SINCE}, {_named(found)}. Run the task again to "
        "send what changed; stop what writes there for the final run"
    )
    result["warnings"] = [*result.get("warnings", []), warning]


def _differs(found: ComparisonOutcome, rounds: int, result: Result, method: str) -> TransferError:
    result["differences"] = list(found.differences)
    again = f", although what differs was sent again {rounds} times" if rounds else ""
    advice = "Stop what writes to either tree, and run the task again; it sends only what differs"
    if rounds:
        advice += ". If nothing does, a disk or the memory of one of the hosts fails: look at dmesg and SMART there"
    linked = next((one["path"] for one in found.differences if "links" in one["fields"]), "")
    if linked and method in ("rsync", "rsyncd"):
        advice = (
            f"{linked!r} shares its file with other names at the destination than at the source, and rsync leaves it "
            f"so: run the transfer once with method: stream, or remove that name at the destination. {advice}"
        )
    far = _find_far_time(found)
    if far:
        advice = (
            f"{far!r} has a time at the source that the file system of the destination cannot store, before 1901 or "
            f"after 2038: give it another time at the source (touch). {advice}"
        )
    return TransferError(
        f"the transfer ended, but {_different(found)}, {_named(found)}{again}. {advice}",
        result,
    )


def _find_far_time(found: ComparisonOutcome) -> str:
    """Return the path of an entry of which only the time differs, at the source beyond what 32 bits of seconds hold."""
    for one in found.differences:
        time = (one.get("source") or {}).get("mtime") if one["fields"] == ["mtime"] else None
        if isinstance(time, int) and not -_FAR_NS <= time < _FAR_NS:
            return one["path"]
    return ""


def _not_repaired(found: ComparisonOutcome, error: TransferError, result: Result) -> TransferError:
    result["differences"] = list(found.differences)
    return TransferError(
        f"the transfer ended, but {_different(found)}, {_named(found)}, and sending them again failed: {error}",
        result,
    )


CHANGED_SINCE = "changed at the source after the transfer had begun"
