# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file of metrics that a run of migrations writes when it begins, each minute and when it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...common.files import write_whole
from ...common.prometheus import TEXTFILE_MODE
from ...transfer.status import Status
from .metrics import LiveTransfer, figures_of, write_migration_metrics
from .state import MigrationState
from .store import MigrationStore

METRICS_PERIOD = 60.0  # seconds between two files of a run
_SHORTEST = 1.0  # seconds, from which a rate can be told


class MetricsFile:
    """The file. A run never fails because of it: ``warning`` says why it could not be written, empty if it could."""

    def __init__(
        self,
        path: str,
        jobs: Iterable[Mapping[str, Any]],
        state_of: Callable[[str], MigrationState | None],
        forecasts_of: Callable[[Sequence[MigrationState]], Mapping[str, float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the path (empty: no file), the jobs, and where their states and the downtimes that are expected are."""
        self._path, self._state_of, self._forecasts_of, self._clock = path, state_of, forecasts_of, clock
        self._identities = {str(job["name"]): MigrationState.fresh(job).identity for job in jobs}
        self._before: dict[str, tuple[float, int]] = {}  # by job: when it was written before, and the bytes done then
        self.running: Mapping[str, Status] = {}  # transfers of this call
        self.warning = ""

    @property
    def is_wanted(self) -> bool:
        """Whether there is such a file."""
        return bool(self._path)

    def write(self, *, active: bool) -> None:
        """Write the file; ``active``: the run goes on."""
        if not self._path:
            return
        live = {name: LiveTransfer(status, self._rate(name, status)) for name, status in self.running.items()}
        self._before = {name: one for name, one in self._before.items() if name in live}
        states = {name: self._state_of(name) for name in self._identities}
        forecasts = self._forecasts_of([one for one in states.values() if one is not None])
        figures = [
            figures_of(name, identity, states[name], live.get(name), forecasts.get(name))
            for name, identity in self._identities.items()
        ]
        text = write_migration_metrics(figures, now=time.time(), active=active)
        try:
            write_whole(os.path.realpath(self._path), text, TEXTFILE_MODE)
            self.warning = ""
        except OSError as error:
            self.warning = (
                f"The metrics are not written, and the migration goes on without: {error.filename or self._path} "
                f"cannot be written here: {error.strerror}. Name another file, with migrate_textfile"
            )

    def _rate(self, name: str, status: Status) -> float | None:
        """Return the bytes a second since the file was written before."""
        now, done = self._clock(), status.progress.bytes_done
        before = self._before.get(name)
        if before is not None and now - before[0] < _SHORTEST:
            return None
        self._before[name] = (now, done)
        return None if before is None else max(0, done - before[1]) / (now - before[0])


def states_in(store: MigrationStore) -> Callable[[str], MigrationState | None]:
    """Return what reads the state of a job, and returns None for one that cannot be read."""

    def read(job: str) -> MigrationState | None:
        try:
            return store.read(job)
        except (OSError, ValueError):
            return None

    return read
