# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A migration job with hosts and transfers that answer as they are told to; the states are real files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.cutover import Act, Asked, Cutover
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.life import STEPS, JobLife
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.steps import Phase, Step
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.store import Store
from ansible_collections.longhaul.fleet.plugins.plugin_utils.migrate.work import Options, Services
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report import TransferError
from ansible_collections.longhaul.fleet.tests.support.driving import Transfers, live_to_end

JOB = {"name": "data", "src_host": "old", "src": "/srv/", "dest_host": "new", "dest": "/srv"}
FOUND = {
    "base": "/srv", "mount": "/srv", "fstype": "xfs", "bytes_free": 2**40, "files_free": None, "xattrs": True,
    "acls": True, "case_insensitive": False, "largest_file": None, "tools": {"rsync": "/r", "ssh": "/s"},
    "peer": "open", "root": True, "problems": [], "warnings": [],
}  # fmt: skip


def result(**changes: Any) -> dict[str, Any]:
    """Return the result of a transfer that sent something and took ten seconds."""
    counts = dict.fromkeys(("files_updated", "files_deleted", "attributes_changed", "vanished", "errors_total"), 0)
    return {
        **counts,
        "state": "finished",
        "files_created": 3,
        "duration": 10.0,
        "bytes_sent": 7,
        "changed": True,
        **changes,
    }


COUNTS = {"entries": 3, "bytes": 7, "types": {"f": 3}}


def compared(**changes: Any) -> dict[str, Any]:
    """Return the result of a transfer with a comparison at its end."""
    found = {"algorithm": "blake2b", "source": COUNTS, "dest": COUNTS}
    return result(**{"compared": found, "verified": "checksum", "phases": {"verify": 2.5}, **changes})


NOTHING = result(files_created=0, bytes_sent=0, changed=False)


class World(Transfers):
    """Hosts, transfers and a folder of states; remembers what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: dict[str, Any] = {"source": FOUND, "dest": FOUND}
        self.unreachable: HostFailed | None = None
        self.refused: HostFailed | None = None  # why a host is asked for nothing
        self.transfers: list[dict[str, Any] | Exception] = []
        self.began: list[tuple[bool, int | None]] = []  # check mode, and the role's limit of deletions
        self.compared: list[str] = []  # at the end of each transfer
        self.comparisons: list[dict[str, Any]] = []
        self.installed: list[tuple[str, list[str]]] = []
        self.said: list[str] = []
        self.reports: list[dict[str, Any]] = []
        self.paused: list[float] = []
        self.closed = self.holds = 0
        self.claimed = ""  # by another run here
        self.released: list[str] = []
        self.kept: list[dict[str, Any]] = []  # records, as they reached the destination
        self.asked: list[str] = []  # of the destination, beside transfers
        self.away = ""  # why the destination cannot be asked
        self.riding: dict[str, Any] | None = None
        self._clock = itertools.count()

    # What Hosts and Session offer

    def _hosts(self, _job: object) -> World:
        if self.refused is not None:
            raise self.refused
        return self

    def probe(self) -> dict[str, Any]:
        if self.unreachable is not None:
            raise self.unreachable
        record = {"id": "x", "age": 5.0, "record": self.kept[-1]} if self.kept else None
        return {**self.found, "dest": {"record": record, **self.found["dest"]}}

    def install(self, side: str, programs: list[str]) -> tuple[list[str], str]:
        self.installed.append((side, programs))
        return programs, ""

    def close(self) -> None:
        self.closed += 1

    def begin(self) -> World:
        if self.riding:
            self.kept.append(self.riding)
            self.has_kept, self.riding = True, None
        return self

    def _transfer(
        self, _job: object, _hosts: object, check: bool, limit: int | None, _collect: bool, verify: str
    ) -> World:
        self.began.append((check, limit))
        self.compared.append(verify)
        return self

    def _compare(self, _job: object, _hosts: object, _state: object) -> dict[str, Any]:
        return self.comparisons.pop(0)

    # The lease, which the destination says that this run has, unless a test says otherwise

    lease: Any = None
    holder = ""

    def find_holder(self, _found: object) -> str:
        return self.holder

    def hold(self) -> None:
        self.holds += 1

    # What the destination keeps

    has_kept, not_kept = False, ""

    def keep(self, record: dict[str, Any]) -> None:
        self.riding = record

    def keep_now(self, record: dict[str, Any] | None, releases: bool = False) -> None:
        self.asked.append("release" if releases else "keep")
        if self.away:
            self.not_kept = self.away
            return
        if record is not None:
            self.kept.append(record)
            self.has_kept, self.not_kept = True, ""

    def _release(self, job: str, record: dict[str, Any] | None) -> None:
        self.released.append(job)
        if record is not None:
            self.kept.append(record)

    # Runs

    def live(self, job: dict[str, Any] | None = None, **wanted: Any) -> JobLife:
        """Let a job live to its end."""
        options = Options(
            **{
                "phase": Phase.SYNC, "check_mode": False, "steps": STEPS, "installs": True, "predicts": True,
                "reset": False, "may_delete": (), "short_enough": 60.0, "max_passes": 3, "started_by": "me", **wanted,
            }
        )  # fmt: skip
        life = JobLife({**JOB, **(job or {})}, options, self._services(writes=not options.check_mode))
        self.closed, before = 0, len(self.began)
        self.paused += live_to_end(life.live())
        assert self.closed == 1 or len(self.began) == before
        return life

    def do(self, *acts: Act, **wanted: Any) -> Cutover:
        """Let the role do these acts of the cutover; ``wanted`` are fields of what is asked for, or of the options."""
        asked = {name: wanted.pop(name) for name in list(wanted) if name in Asked._fields}
        options = Options(**{"phase": Phase.CUTOVER, "steps": tuple(Step), "started_by": "me", **wanted})
        cutover = Cutover(JOB, options, self._services(), Asked(acts, **asked))
        self.paused += live_to_end(cutover.live())
        return cutover

    def _services(self, writes: bool = True) -> Services:
        return Services(
            self._hosts, self._transfer, self._compare, (TransferError, HostFailed),
            Store(str(self.folder), writes), lambda: f"2026-01-01T00:00:{next(self._clock):02d}Z", self.said.append,
            self.reports.append, lambda _job: self.claimed, self._release,
        )  # fmt: skip

    @property
    def state(self) -> dict[str, Any]:
        return json.loads((self.folder / "state/data.json").read_text())
