# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put what both ends know of a transfer together. Pure."""

from __future__ import annotations

from ..._core.outcome import MAX_ERRORS, Outcome
from .frames import Payload
from .messages import dump_message, parse_message

_STDERR_TAIL = 8000  # characters


def parse_outcome(payload: Payload) -> Outcome:
    """Read the payload of SUMMARY; raises FrameError for what is no message, and TypeError for what is no outcome."""
    values = parse_message(payload)
    names = {name: type(value) for name, value in vars(Outcome()).items()}
    known = {name: value for name, value in values.items() if name in names}
    for name, value in known.items():
        if not isinstance(value, names[name]):
            raise TypeError(f"{name} of the other end's outcome is {type(value).__name__}")
    return Outcome(**known)


def dump_outcome(outcome: Outcome) -> bytes:
    """Return the payload of SUMMARY: an outcome without what is derived."""
    return dump_message(vars(outcome))


def merge(source: Outcome, dest: Outcome) -> Outcome:
    """Add up what only the source and what only the destination counts."""
    return Outcome(
        bytes_total=source.bytes_total,
        bytes_sent=source.bytes_sent + dest.bytes_sent,
        bytes_matched=dest.bytes_matched,
        files_total=source.files_total,
        files_created=dest.files_created,
        files_updated=dest.files_updated,
        files_deleted=dest.files_deleted,
        attributes_changed=dest.attributes_changed,
        vanished=source.vanished,
        errors=(source.errors + dest.errors)[:MAX_ERRORS],
        errors_total=source.errors_total + dest.errors_total,
        errors_unstable=source.errors_unstable + dest.errors_unstable,
        warnings=source.warnings + [text for text in dest.warnings if text not in source.warnings],
        changes=dest.changes,
        changes_total=dest.changes_total,
        deleted=dest.deleted,
        deferred=source.deferred,
        owners=dest.owners,
        owner_mismatches=dest.owner_mismatches,
        owner_hints=source.owner_hints,
        resumed=source.resumed or dest.resumed,
        phases={**source.phases, **dest.phases},
        spent={**source.spent, **dest.spent},
        cmd={**source.cmd, **dest.cmd},
        stderr="\n".join(text for text in (source.stderr, dest.stderr) if text)[-_STDERR_TAIL:],
        failure=source.failure or dest.failure,
    )


def continue_from(outcome: Outcome, earlier: Outcome) -> None:
    """Let a new conversation's outcome begin with what an earlier one did: what it finds now is found done."""
    outcome.files_created = earlier.files_created
    outcome.files_updated = earlier.files_updated
    outcome.files_deleted = earlier.files_deleted
    outcome.attributes_changed = earlier.attributes_changed
    outcome.bytes_sent = earlier.bytes_sent
    outcome.changes = list(earlier.changes)
    outcome.changes_total = earlier.changes_total
    outcome.deleted = list(earlier.deleted)
    outcome.withheld = dict(earlier.withheld)
    outcome.resumed = True
