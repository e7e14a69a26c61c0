# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Let the life of one job go on to its end, without threads and without waiting."""

from __future__ import annotations

from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.scheduler import (
    Call,
    HandOver,
    HookCall,
    Pause,
    Watch,
    Workflow,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.completion import Uncompared
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.status import Status


class Transfers:
    """The transfers of a job, which end as a test says: each with its result, or with what it raises."""

    transfers: list[dict[str, Any] | Exception]
    status = Status("running", alive=True)
    places = ()
    uncompared: Uncompared | None = None

    def finish(self, _running: Transfers, status: Status) -> dict[str, Any]:
        """Return how the next of them ended."""
        assert status.state == "finished"
        ended = self.transfers.pop(0)
        if isinstance(ended, Exception):
            raise ended
        return ended


def live_to_end(steps: Workflow, handed_over: list[Any]) -> list[float]:
    """Do what a life asks for, where each transfer has ended once it is watched; return the seconds of its pauses.

    What it hands over to the role is added to ``handed_over``.
    """
    paused: list[float] = []
    value: object = None
    error: Exception | None = None
    while True:
        try:
            wanted = steps.send(value) if error is None else steps.throw(error)
        except StopIteration:
            return paused
        value = error = None
        if isinstance(wanted, (Call, HookCall)):
            try:
                value = wanted.do()
            except Exception as raised:  # the life is told, as the conductor would
                error = raised
        elif isinstance(wanted, HandOver):
            handed_over.append(wanted.what)
            steps.close()
            return paused
        elif isinstance(wanted, Watch):
            value = Status("finished", alive=False)
        else:
            assert isinstance(wanted, Pause)
            paused.append(wanted.seconds)
