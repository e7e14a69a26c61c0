# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A month of daily backups by the playbooks, with drills, a second copy, and what goes wrong in such a month.

alpha is the client, beta has the repository, gamma the copy. Each day has a simulated clock on all hosts and on the
control node, an edit of the tree, and a run of the playbook backup. On some days something is broken first: a byte in
each repository, the client's files, a clock, a name, a disk. Each such day says what the run must tell. At the end,
every snapshot that is left in either repository must be the tree of its day.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.names import COMPLETE, kind_of
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.support.simulated_clock import SimulatedClock, why_not
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

from .scale import Say, expect

DAYS = 30
_DAY = 86400
_FILES, _SIZE = 200, 20_000
_DISK = "/data/disk"
_REPOSITORY, _COPY, _SCRATCH = f"{_DISK}/backup", "/data/copy", "/data/scratch"
_DISK_SIZE = "48m"


class _Playbooks(Playbooks):
    """Playbooks whose Ansible has a simulated clock."""

    clock: SimulatedClock

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **self.clock.environment}


class Month:
    """The hosts, the jobs, and what each day's tree was."""

    def __init__(self, bed: Testbed, folder: Path, seed: int, say: Say) -> None:
        """Make the tree of the client, and the disks."""
        self.bed, self.say, self._folder = bed, say, folder
        self.chance = random.Random(seed)
        self.playbooks = _Playbooks(bed.inventory(folder / "hosts.yml"), folder / "runs", collections_folder())
        self.clock = self.playbooks.clock = SimulatedClock(bed, folder)
        self.client = "alpha"
        self.tree = bed.root("alpha") / "data/src"
        for number in range(_FILES):
            path = self.tree / f"folder{number % 10}" / f"file{number:03}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.chance.randbytes(self.chance.randrange(_SIZE)))
        self.mount()
        bed.exec("beta", ["mkdir", "-m", "700", _REPOSITORY])
        bed.exec("gamma", ["mkdir", "-m", "700", _COPY])
        bed.exec("beta", ["mkdir", "-m", "700", _SCRATCH])
        self.truth: dict[str, Path] = {}  # a snapshot's name, and a copy of the tree as it was
        self.day = 0

    def mount(self) -> None:
        """Mount an empty disk for the repository."""
        self.bed.exec("beta", ["mkdir", "-p", _DISK])
        self.bed.exec("beta", ["mount", "-t", "tmpfs", "-o", f"size={_DISK_SIZE},mode=700", "none", _DISK])

    @property
    def job(self) -> dict[str, Any]:
        """The job, as the client is called now."""
        return {
            "name": "data",
            "host": self.client,
            "src": "/data/src",
            "repository": {"host": "beta", "path": _REPOSITORY},
            "copies": [{"host": "gamma", "path": _COPY, "keep": {"last": 20}}],
            "keep": {"daily": 7, "weekly": 3},
            "check_subset": "1/2",
            "drill": {"every": "7d", "share": "1/10", "into": {"host": "beta", "path": _SCRATCH}},
            "encryption": "none",
        }

    def run(self, playbook: str = "longhaul.fleet.backup", **variables: Any) -> Run:
        """Run a playbook to whatever end."""
        ran = self.playbooks.run(playbook, timeout=600, backup_jobs=[self.job], **variables)
        expect("Traceback" not in ran.output, f"day {self.day}: {ran.output[-4000:]}")
        return ran

    def edit(self) -> None:
        """Do to the tree what a day does."""
        files = sorted(path for path in self.tree.rglob("*") if path.is_file())
        for path in self.chance.sample(files, 6):
            path.write_bytes(self.chance.randbytes(self.chance.randrange(_SIZE)))
        for path in self.chance.sample(files, 3):
            path.rename(path.with_name(f"{path.name[:7]} of day {self.day}"))

    def folder(self, host: str = "beta") -> Path:
        """Return the folder of the job in a repository."""
        path = _REPOSITORY if host == "beta" else _COPY
        return self.bed.root(host) / path.lstrip("/") / self.client / "data"

    def names(self, host: str = "beta") -> list[str]:
        """Return the complete snapshots of a repository, the oldest first."""
        folder = self.folder(host)
        return _complete(folder) if folder.is_dir() else []

    def keep_truth(self) -> None:
        """Remember the tree as that of the newest snapshot, if that is new."""
        names = self.names()
        if names and names[-1] not in self.truth:
            kept = self._folder / "truth" / names[-1]
            kept.parent.mkdir(exist_ok=True)
            subprocess.run(["cp", "-a", self.tree, kept], check=True)
            self.truth[names[-1]] = kept

    def wrong(self) -> list[str]:
        """Return what differs in the snapshots of both repositories from the trees of their days."""
        found = []
        for host in ("beta", "gamma"):
            for name in self.names(host):
                if name in self.truth:
                    differ = differences(self.truth[name], self.folder(host) / name / "data")
                    found += [f"{host} {name}: {one}" for one in differ]
        return found

    def damage(self, host: str) -> str:
        """Flip a byte in a file of the oldest snapshot, at the same times; give its path in the tree."""
        tree = self.folder(host) / self.names(host)[0] / "data"
        files = sorted(path for path in tree.rglob("*") if path.is_file() and path.stat().st_size)
        path = self.chance.choice(files)
        before = path.stat()
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        with path.open("r+b") as file:
            file.write(content)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return os.fspath(path.relative_to(tree))

    def report(self) -> dict[str, Any]:
        """Return the report for programs of the last run."""
        return json.loads((self._folder / "longhaul-backup/report.json").read_text(encoding="utf-8"))


def _complete(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if kind_of(name) == COMPLETE)


def run(days: int, seed: int, say: Say) -> int:
    """Live the month; the exit code is 1 where something good was lost or something was not told."""
    reason = why_not()
    if reason:
        say(f"cannot run here: {reason}")
        return 2
    problems: list[str] = []
    say(f"seed {seed}")
    with Testbed(["alpha", "beta", "gamma"], data_size="512m") as bed, tempfile.TemporaryDirectory() as folder:
        month = Month(bed, Path(folder), seed, say)
        for month.day in range(days):
            month.clock.shift_all(month.day * _DAY)
            month.edit()
            event = EVENTS.get(month.day)
            told = event(month) if event else _ordinary(month)
            problems += [f"day {month.day}: {one}" for one in told]
            for one in told:
                say(f"day {month.day}: PROBLEM: {one}")
        problems += [f"at the end: {one}" for one in month.wrong()]
        say(f"kept: beta {len(month.names())}, gamma {len(month.names('gamma'))}; last report: {_attention(month)}")
    for one in problems:
        say(one)
    say(f"{len(problems)} problems")
    return int(bool(problems))


def _attention(month: Month) -> str:
    return "; ".join(f"{job['id']}: {job['state']}" for job in month.report()["jobs"])


def _ordinary(month: Month) -> list[str]:
    """Run the backup, which must end well."""
    ran = month.run()
    month.keep_truth()
    month.say(f"day {month.day}: rc {ran.rc}, {len(month.names())} and {len(month.names('gamma'))} kept")
    return [] if ran.rc == 0 else [f"failed: {_said(ran)}"]


def _said(ran: Run) -> str:
    return (ran.failures[-1] if ran.failures else ran.output)[-1500:]


def _must_say(month: Month, ran: Run, what: str, pattern: str) -> list[str]:
    """Show what a run said about something; gives the problem that it did not."""
    found = re.search(f"[^\n]*(?:{pattern})[^\n]*", ran.output, re.IGNORECASE)
    month.say(f"day {month.day}: {what}: rc {ran.rc}: {found.group(0).strip()[:400] if found else 'said nothing'}")
    return [] if found else [f"{what}: nothing was said of {pattern}: {_said(ran)}"]


def _flipped(host: str) -> Callable[[Month], list[str]]:
    def day(month: Month) -> list[str]:
        path = month.damage(host)
        # half of the snapshots' contents are checked in a run, so that two days look at all of it
        said = [month.run() for _look in range(2)]
        month.keep_truth()
        left = month.wrong()
        month.say(f"day {month.day}: a byte of {path} on {host} flipped; {len(left)} differences left")
        about = re.escape(os.path.basename(path))
        found = [ran for ran in said if re.search(about, ran.output)] or said[-1:]
        return [*_must_say(month, found[0], f"flipped on {host}", about), *left]

    return day


def _encrypted(month: Month) -> list[str]:
    """Every file of the client gets other contents and another name; then it comes back by restore."""
    good = month.names()
    before = dict(month.truth)
    for path in sorted(path for path in month.tree.rglob("*") if path.is_file()):
        path.write_bytes(month.chance.randbytes(path.stat().st_size + 32))
        path.rename(path.with_name(path.name + ".locked"))
    ran = month.run()
    told = _must_say(month, ran, "encrypted in place", "set aside")
    lost = [name for name in good if name not in month.names()]
    back = month.run(
        "longhaul.fleet.restore", restore_over=True, restore_delete=True, restore_transfer={"max_delete": 10**6}
    )
    differ = differences(before[good[-1]], month.tree)
    month.say(f"day {month.day}: restored over it: rc {back.rc}, {len(differ)} differences")
    if back.rc:
        told.append(f"the restore failed: {_said(back)}")
    (aside,) = [name for name in os.listdir(month.folder()) if name.startswith("aside-")]
    place = {"repository": _REPOSITORY, "host": month.client, "job": "data", "name": aside}
    month.playbooks.run([{"longhaul.fleet.snapshot": {"action": "discard", **place}}], hosts="beta").expect_success()
    again = month.run()
    month.keep_truth()
    month.say(f"day {month.day}: discarded, and backed up again: rc {again.rc}")
    if again.rc:
        told.append(f"the run after it failed: {_said(again)}")
    return [*told, *(f"{name} is lost" for name in lost), *differ]


def _ahead(host: str) -> Callable[[Month], list[str]]:
    """A clock is three days ahead. A year would make files of this day old for what removes old ones."""

    def day(month: Month) -> list[str]:
        before = set(month.names()), set(month.names("gamma"))
        month.clock.shift(host, (month.day + 3) * _DAY)
        ran = month.run()
        lost = len(before[0] - set(month.names())), len(before[1] - set(month.names("gamma")))
        audit = month.run("longhaul.fleet.audit")
        told = _must_say(month, audit, f"clock of {host} ahead, audit", f"clock.*{host}|{host}.*clock")
        month.clock.shift(host, month.day * _DAY)
        month.keep_truth()
        month.say(f"day {month.day}: rc {ran.rc}; {lost[0]} and {lost[1]} snapshots were pruned")
        if host == "beta":
            told += _must_say(month, ran, "clock of the repository ahead", "the clock of the repository")
        return [*told, *([f"{lost} were pruned"] if max(lost) > 1 else [])]

    return day


def _renamed(month: Month) -> list[str]:
    """The inventory calls the client something else: its backups go on under the new name, and the old ones stay."""
    inventory = json.loads(month.playbooks.inventory.read_text(encoding="utf-8"))
    hosts = inventory["all"]["hosts"]
    hosts["web1"] = hosts["alpha"]
    month.playbooks.inventory.write_text(json.dumps(inventory), encoding="utf-8")
    old = month.names()
    month.client = "web1"
    ran = month.run()
    month.keep_truth()
    kept = _complete(month.folder().parent.parent / "alpha/data")
    audit = month.run("longhaul.fleet.audit")
    told = _must_say(month, audit, "renamed client, audit", "alpha/data")
    month.say(f"day {month.day}: renamed to web1: rc {ran.rc}, {len(kept)} of {len(old)} old ones stay")
    return [*told, *([] if kept == old and ran.rc == 0 else [f"rc {ran.rc}, {kept} of {old}: {_said(ran)}"])]


def _full(month: Month) -> list[str]:
    """The repository's disk is full; then it has room again."""
    before = month.names()
    filler = month.bed.root("beta") / _DISK.lstrip("/") / "filler"
    room = shutil.disk_usage(filler.parent).free
    filler.write_bytes(bytes(max(0, room - 30_000)))
    ran = month.run()
    told = _must_say(month, ran, "full disk", "room|space|full")
    lost = [name for name in before if name not in month.names()]
    filler.unlink()
    return [*told, *(f"{name} is lost" for name in lost[1:]), *_ordinary(month)]


def _lost(month: Month) -> list[str]:
    """The repository's disk is gone, and comes back empty; the copy becomes the repository's contents again."""
    month.bed.exec("beta", ["umount", _DISK])
    gone = month.run()
    told = _must_say(month, gone, "repository not mounted", re.escape(_REPOSITORY))
    month.mount()
    month.bed.exec("beta", ["mkdir", "-m", "700", _REPOSITORY])
    before = month.names("gamma")
    empty = month.run()
    told += _must_say(month, empty, "an empty disk in its place", "and the last run left")
    if month.names("gamma") != before:
        told.append(f"the copy has {month.names('gamma')} of {before}")
    source = f"{month.bed.root('gamma') / _COPY.lstrip('/')}/."
    subprocess.run(["cp", "-a", source, month.bed.root("beta") / _REPOSITORY.lstrip("/")], check=True)
    return [*told, *_ordinary(month)]


EVENTS: dict[int, Callable[[Month], list[str]]] = {
    5: _flipped("beta"),
    8: _flipped("gamma"),
    11: _encrypted,
    14: _ahead("alpha"),
    16: _ahead("beta"),
    19: _lost,
    22: _full,
    25: _renamed,
}
