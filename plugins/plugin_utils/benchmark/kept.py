# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The last benchmark results of each pair, in a folder on the control node."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from dataclasses import dataclass

from ..common.files import Folder
from ..common.typed_json import dump_dataclass, parse_dataclass
from .measurement import BenchmarkResult

FOLDER = "longhaul-benchmark"  # its name beside the inventory, or in longhaul_state_dir
RECENT = 14 * 86400.0  # seconds in which a result counts
_MOST = 5  # results of a pair
_AHEAD = 300.0  # seconds by which the clock of another control node may be ahead
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_KEPT = re.compile(r"-[0-9a-f]{12}\.json\Z")  # names of files with results
_LONGEST = 60  # characters of a host's name in the name of a file
_WHAT = "list of benchmark results"


@dataclass(frozen=True)
class KeptResults:
    """The results of one pair, the newest first."""

    results: tuple[BenchmarkResult, ...] = ()


def keep_result(folder: str, result: BenchmarkResult) -> str:
    """Keep a result beside the last ones of its pair, and return the path of their file. Raises OSError.

    A file that cannot be read as results is replaced.
    """
    kept, name = Folder(folder, writes=True), file_name(result.measurement.source, result.measurement.dest)
    found = _read(kept, name)
    kept.save(name, dump_dataclass(KeptResults((result, *found.results)[:_MOST])))
    return kept.path_of(name)


def find_recent(folder: str, source: str, dest: str, now: float | None = None) -> BenchmarkResult | None:
    """Return the newest result of a pair that is not too old to count.

    ``source`` and ``dest`` are names in the inventory. None if there is none or it cannot be read: nothing depends on
    it but forecasts.
    """
    now = time.time() if now is None else now
    try:
        found = _read(Folder(folder, writes=False), file_name(source, dest))
    except OSError:
        return None
    for result in found.results:
        measured = result.measurement
        if (measured.source, measured.dest) == (source, dest) and -_AHEAD <= now - measured.at <= RECENT:
            return result
    return None


def newest_results(folder: str) -> list[BenchmarkResult]:
    """Return the newest result of each pair, by their names. Raises OSError."""
    kept = Folder(folder, writes=False)
    found = [_read(kept, name).results[:1] for name in os.listdir(folder) if _KEPT.search(name)]
    newest = [one for results in found for one in results]
    return sorted(newest, key=lambda one: (one.measurement.source, one.measurement.dest))


def file_name(source: str, dest: str) -> str:
    """Return the name of the file with the results of a pair: readable, and its own for any two names. Pure."""
    digest = hashlib.sha256(json.dumps([source, dest]).encode()).hexdigest()[:12]
    shown = "_to_".join(_UNSAFE.sub("_", name)[:_LONGEST].lstrip(".") for name in (source, dest))
    return f"{shown}-{digest}.json"


def _read(folder: Folder, name: str) -> KeptResults:
    """Return what a file holds, nothing if it is no such file. Raises OSError."""
    try:
        return parse_dataclass(KeptResults, folder.read(name, _WHAT), _WHAT)
    except ValueError:
        return KeptResults()
