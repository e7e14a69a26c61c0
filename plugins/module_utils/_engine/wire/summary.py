# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put what both ends know of a transfer together. Pure."""

from __future__ import annotations

from ..._core.json_shape import WrongShape
from ..._core.outcome import BYTES_DONE, ENTRIES_DONE, MAX_ERRORS, Outcome
from .frames import FrameError, FrameKind, Payload
from .messages import Message, dump_message, parse_message

_STDERR_TAIL = 8000  # characters


class Summary(Message):
    """SUMMARY: the outcome as the destination knows it; then the whole."""

    __slots__ = ("outcome",)
    kind = FrameKind.SUMMARY

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def dump(self) -> bytes:
        counted = vars(self.outcome).items()  # without what is derived
        return dump_message({name: value for name, value in counted if value})

    @classmethod
    def parse(cls, payload: Payload) -> Summary:
        try:
            return cls(Outcome.from_json(parse_message(payload)))
        except WrongShape as error:
            raise FrameError(f"an account that cannot be read arrived: {error}") from error


def merge(source: Outcome, dest: Outcome) -> Outcome:
    """Add up what only the source and what only the destination counts."""
    return Outcome(
        bytes_apparent=source.bytes_apparent,
        bytes_total=source.bytes_total,
        bytes_content=source.bytes_content + dest.bytes_content,
        bytes_sent=source.bytes_sent + dest.bytes_sent,
        bytes_matched=dest.bytes_matched,
        bytes_from_basis=dest.bytes_from_basis,
        bytes_shared=dest.bytes_shared,
        files_total=source.files_total,
        **{name: getattr(dest, name) for name in ENTRIES_DONE},
        vanished=source.vanished,
        left_out=source.left_out,
        errors=(source.errors + dest.errors)[:MAX_ERRORS],
        errors_total=source.errors_total + dest.errors_total,
        errors_unstable=source.errors_unstable + dest.errors_unstable,
        warnings=source.warnings + [text for text in dest.warnings if text not in source.warnings],
        changes=dest.changes,
        changes_total=dest.changes_total,
        deleted=dest.deleted,
        kept_mounts=dest.kept_mounts,
        deferred=source.deferred,
        owners=dest.owners,
        owner_mismatches=dest.owner_mismatches,
        owner_hints=source.owner_hints,
        time_units=dest.time_units,
        resumed=source.resumed or dest.resumed,
        phases={**source.phases, **dest.phases},
        spent={**source.spent, **dest.spent},
        cmd={**source.cmd, **dest.cmd},
        stderr="\n".join(text for text in (source.stderr, dest.stderr) if text)[-_STDERR_TAIL:],
        failure=source.failure or dest.failure,
    )


def continue_from(outcome: Outcome, earlier: Outcome) -> None:
    """Let a new conversation's outcome begin with what an earlier one did: what it finds now is found done."""
    for name in (*ENTRIES_DONE, *BYTES_DONE):
        setattr(outcome, name, getattr(earlier, name))
    outcome.changes = list(earlier.changes)
    outcome.changes_total = earlier.changes_total
    outcome.deleted = list(earlier.deleted)
    outcome.withheld = dict(earlier.withheld)
    outcome.resumed = True
