# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program ``python3 engine.pyz``. Private to the collection.

``job FOLDER`` is one end of a transfer, ``digest FOLDER`` reads one of its trees, ``owners FOLDER`` counts whose a
tree is, ``benchmark FOLDER`` measures a host or the line to another, ``consistent FOLDER`` has the consistent sources
of a backup, and ``load FOLDER`` loads its dumps. All are told what to do by ``request.json`` in the folder, take
secrets from their standard input, and report to ``status.json``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Callable

from .reporter import Reporter
from .state import JobFolder


def main(arguments: list[str]) -> int:
    """Run the named job; gives the exit code."""
    kind, path = arguments
    side = os.path.basename(path)
    folder = JobFolder(os.path.basename(os.path.dirname(path)), side)
    lock = folder.lock()
    if lock is None:
        print(f"another job of this transfer is running on this side ({side})", file=sys.stderr)  # pylint: disable=ansible-bad-function
        return 1
    secrets = json.loads(sys.stdin.read() or "{}")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with Reporter(folder) as reporter:
        return _job(kind)(folder, secrets, reporter)
    return 0  # it failed: the status says how, and nobody waits for this code


def _job(kind: str) -> Callable[[JobFolder, dict[str, str], Reporter], int]:
    """Return the function that runs a kind of job; do not import what the other kind needs."""
    if kind == "digest":
        from .digest_job import run_digest

        return run_digest
    if kind == "owners":
        from .owner_census import run_census

        return run_census
    if kind == "benchmark":
        from .benchmark_job import run_benchmark

        return run_benchmark
    if kind == "consistent":
        from .consistent_job import run_consistent

        return run_consistent
    if kind == "load":
        from .consistent_job import run_load

        return run_load
    if kind == "drill":
        from .consistent_job import run_drill

        return run_drill
    from .transfer_job import run_transfer

    return run_transfer
