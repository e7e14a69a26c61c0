# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Watch the job of one host until it ends, and tell how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..common.units import progress_line
from ..hosts.host_runner import ControllerGone, HostFailed, HostRunner, LeaseLost
from .status import Status, parse_status
from .steps import poll

if TYPE_CHECKING:
    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import Folder

_INTERVALS = (1.0, 2.0, 3.0, 5.0)  # seconds between the first progress lines; the last one counts for all that follow
_LATER = 10.0
_RETRY = 3.0  # seconds after which a host that could not be asked is asked again


def watch(runner: HostRunner, folder: Folder, label: str, say: Callable[[str], None], patience: float) -> Status:
    """Return the last status of the job in ``folder`` (``id`` and ``side``) once it has ended.

    ``say`` takes a line to show. The host may be out of the control node's reach for ``patience`` seconds; after that
    HostFailed says that the transfer itself goes on.
    """
    intervals = iter(_INTERVALS)
    reached = before = time.monotonic()
    done = None
    while True:
        try:
            (said,) = runner.run(poll(folder, next(intervals, _LATER)))
        except (ControllerGone, LeaseLost):
            raise
        except HostFailed as error:
            if time.monotonic() - reached > patience:
                raise HostFailed(
                    f"{error}. The job on that host goes on without the control node; run the same task again to attach"
                ) from None
            runner.reset()
            time.sleep(_RETRY)
            continue
        reached = time.monotonic()
        status = parse_status(said)
        if not status.alive:
            return status
        count = status.progress.bytes_done
        rate = (count - done) / (reached - before) if done is not None else None
        say(progress_line(label, status.progress, rate, status.paused))
        before, done = reached, count
