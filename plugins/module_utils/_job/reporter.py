# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep a job's status file up to date. Private to the collection."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, cast

from .._core.context import Progress
from .._core.errors import PeerLost, PeerUnreachable, StagingLeft, TransferCancelled, TransferFailed, TransferPaused
from .state import JobFolder, JobStatus

INTERVAL = 1.0  # seconds between two writings of the status file
_STATES = {"paused": TransferPaused, "cancelled": TransferCancelled}  # other than failed
_KINDS = {"unreachable": PeerUnreachable, "lost": PeerLost, "staging_left": StagingLeft}  # of failures, in the status


class Reporter:
    """Writes ``status.json`` once a second while the job runs, at once when its state changes, and at its end.

    The writing once a second begins with the first state that is set: a thread that runs before the job has confined
    itself would keep all its rights.

    As a context manager it turns an exception into a failed status: a refusal by its own words, anything else as a
    defect with the place where it happened.
    """

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._wake = threading.Event()
        self._ended = False
        self._write_lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.progress = Progress()
        self.status: JobStatus = {"state": "starting", "pid": os.getpid(), "started": time.time()}

    def set(self, **values: Any) -> None:
        """Change what the status says, and write it now."""
        self.status.update(cast(JobStatus, values))
        self._write()
        with self._write_lock:  # several threads may tell something for the first time
            if self._thread.ident is None and not self._wake.is_set():
                self._thread.start()

    def _write(self) -> None:
        with self._write_lock:
            self._folder.status = {**self.status, "updated": time.time(), "progress": self.progress.as_dict()}

    def _run(self) -> None:
        while not self._wake.wait(INTERVAL):
            self._write()

    def __enter__(self) -> Reporter:
        self._write()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        ended = {"ended": time.time()}
        if isinstance(error, TransferFailed):
            kinds = {name: isinstance(error, kind) for name, kind in _KINDS.items()}
            state = next((name for name, kind in _STATES.items() if isinstance(error, kind)), "failed")
            self.set(state=state, failure=str(error), **kinds, **ended)
        elif error is not None and not isinstance(error, SystemExit):
            import traceback

            traceback.print_exception(kind, error, trace)
            last = traceback.extract_tb(trace)[-1]
            where = f"{os.path.basename(last.filename)}:{last.lineno}"
            self.set(state="failed", failure=f"{type(error).__name__}: {error} (at {where})", **ended)
        else:
            self.set(**ended)
            return False
        return True
