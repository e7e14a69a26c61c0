# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a case through both, and judge by a third walk: what is not the same, and not expected, is a finding."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.longhaul.fleet.plugins.action.transfer import ActionModule
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.interruption import Interruption
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.comparison import ComparisonFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import TransferError
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.session import Session
from ansible_collections.longhaul.fleet.tests.support.compare import Found, recorded
from ansible_collections.longhaul.fleet.tests.support.hard_tree import remove_tree

from . import daemon
from .case import SPEC, Case, Place
from .grow import LIKE_STAGING
from .hosts import Host
from .options import refused
from .reference import Reference, run_rsync

_SPARSE_SLACK = 16 * 1024  # bytes: how a file system cuts what is allocated
_TICK = 10_000_000  # ns: the kernel's clock for files is that coarse
_COUNTS = ("files_created", "files_updated", "files_deleted", "attributes_changed")


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it should be; ``aspect`` is of compare's, or how a run ended."""

    aspect: str
    path: bytes
    text: str

    def __str__(self) -> str:
        return f"{self.aspect}: {self.path!r}: {self.text}"


@dataclass
class Verdict:
    """What became of a case."""

    case: Case
    state: str = "same"  # or refused, failed (as rsync did)
    message: str = ""  # of a refusal or a failure
    begun: int = 0  # ns
    reference: Reference | None = None
    before: dict[bytes, Found] = field(default_factory=dict)  # of the destination
    source: dict[bytes, Found] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)


_VALIDATOR = ArgumentSpecValidator(SPEC, mutually_exclusive=ActionModule.mutually_exclusive)


class Pair:
    """The two hosts, for as many cases as one likes."""

    def __init__(self, folder: Path, case: Case) -> None:
        conf = str(folder / "rsyncd.conf")
        self.hosts = [Host(name, folder / name, case.user, conf) for name in ("one", "two")]

    def transfer(self, options: dict[str, Any], check: bool = False) -> dict[str, Any]:
        """Run a task, and once more to its end where it does not wait. Raises what the action would catch."""
        said = _VALIDATOR.validate({name: value for name, value in options.items() if value is not None})
        if said.error_messages:
            raise Refusal("; ".join(said.error_messages))
        result = self._run(options, check)
        return self._run({**options, "wait": True}, check) if result["state"] == "running" else result

    def _run(self, options: dict[str, Any], check: bool) -> dict[str, Any]:
        return Session(self.hosts[0], self.hosts[1], options, check, lambda _line: None, Interruption()).run()

    def close(self) -> None:
        for host in self.hosts:
            host.close()


FAILURES = (TransferError, HostFailed, ComparisonFailed, ValueError)


@contextlib.contextmanager
def on_disk(case: Case) -> Iterator[Place]:
    """Make a case for the time of a block."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        place = Place(case, folder)
        place.make()
        yield place
    finally:
        remove_tree(folder)
        shutil.rmtree(folder, ignore_errors=True)


def judge(case: Case) -> Verdict:
    """Run a case; the verdict has all differences, the expected ones too."""
    with on_disk(case) as place:
        pair = Pair(place.folder, case)
        try:
            with daemon.running(place) as options:
                return _judge(place, pair, options)
        finally:
            pair.close()


def _judge(place: Place, pair: Pair, options: dict[str, Any]) -> Verdict:
    case = place.case
    verdict = Verdict(case, begun=time.time_ns() - _TICK)
    find = verdict.differences.append
    ours, source = place.zone("ours"), place.source
    verdict.source = recorded(source)
    before = recorded(ours)
    verdict.before = _below(before, place, "ours")
    predicted: dict[str, Any] = {}
    result: dict[str, Any] = {}
    try:
        predicted = pair.transfer(options, check=True)
        if tree_differences(before, recorded(ours)):
            find(Difference("check", b"", f"check mode wrote: {tree_differences(before, recorded(ours))[:3]}"))
    except (Refusal, *FAILURES):
        pass  # the transfer itself will say it
    try:
        result = pair.transfer(options)
    except Refusal as error:
        verdict.state, verdict.message = "refused", str(error)
    except FAILURES as error:
        verdict.state, verdict.message = "failed", str(error)
    if tree_differences(verdict.source, recorded(source)):
        find(
            Difference(
                "source", b"", f"the source was changed: {tree_differences(verdict.source, recorded(source))[:3]}"
            )
        )
    left = [path for path in recorded(ours) if b".longhaul-" in path and not set(path.split(b"/")) & set(LIKE_STAGING)]
    if left and verdict.state == "same":
        find(Difference("left", left[0], "was left at the destination"))
    if verdict.state == "refused":
        if tree_differences(before, recorded(ours)):
            find(Difference("refused", b"", "it was refused, but something was done"))
        find(Difference("refusal", b"", verdict.message))
        return verdict
    rule = refused(case.row)
    if rule:
        find(Difference("not refused", b"", f"{verdict.state}, though a refusal was due ({rule.words})"))
    verdict.reference = reference = run_rsync(place)
    if verdict.state == "failed" or reference.failed:
        if not reference.failed:
            find(Difference("failure", b"", verdict.message))
        elif verdict.state != "failed":
            find(Difference("rsync failed", b"", f"{reference.code}: {reference.said[:4000]}"))
        if verdict.state == "failed":
            return verdict
    verdict.differences += _compare(place, verdict)
    if case.row["wait"] and predicted:
        told = {n: (predicted[n], result[n]) for n in _COUNTS if predicted[n] != result[n]}
        if told:
            find(Difference("prediction", b"", f"check mode said otherwise (check, transfer): {told}"))
    _again(place, pair, options, find)
    return verdict


def _again(place: Place, pair: Pair, options: dict[str, Any], find: Callable[[Difference], None]) -> None:
    """A second run must find nothing to do."""
    after = recorded(place.zone("ours"))
    try:
        result = pair.transfer({**options, "wait": True})
    except (Refusal, *FAILURES) as error:
        find(Difference("rerun", b"", f"failed: {error}"))
        return
    done = {name: result[name] for name in (*_COUNTS, "bytes_sent") if result[name]}
    if result["changed"] or done:
        find(Difference("rerun", b"", f"changed={result['changed']} {done} {result['changes'][:5]}"))
    lines = tree_differences(after, recorded(place.zone("ours")))
    if lines:
        find(Difference("rerun", lines[0].path, f"the second run changed {lines[0]}"))


def _below(found: dict[bytes, Found], place: Place, which: str) -> dict[bytes, Found]:
    """Return what is below the folder in which the contents of the source arrive."""
    top = os.fsencode(place.root(which).relative_to(place.zone(which)))
    return {p[len(top) + 1 :]: f for p, f in found.items() if p == top or p.startswith(top + b"/")}


def _compare(place: Place, verdict: Verdict) -> list[Difference]:
    """Compare both destinations, and what lies beside them."""
    case = place.case
    ours, theirs = (recorded(place.zone(which)) for which in ("ours", "rsync"))
    tops = {os.fsencode(place.root(which).relative_to(place.zone(which))) for which in ("ours", "rsync")}
    above = {b"", *(top[:at] for top in tops for at in range(len(top)) if top[at : at + 1] == b"/")}
    if case.only is not None:
        above |= tops
    found = []
    for line in tree_differences(theirs, ours):
        if line.path in above and line.aspect == "mtime":
            continue  # the folders around what was transferred
        if line.aspect == "mtime" and _is_anyones(case, theirs[line.path]):
            continue
        moments = [tree[line.path].mtime for tree in (ours, theirs)] if line.aspect == "mtime" else []
        if moments and all(verdict.begun <= moment <= time.time_ns() for moment in moments):
            continue  # made or written into, each at its own moment
        top = next(iter(tops))
        found.append(
            Difference(line.aspect, line.path[len(top) + 1 :] if line.path.startswith(top) else line.path, line.text)
        )
    found += _sparse(_below(ours, place, "ours"), _below(theirs, place, "rsync"), verdict, case)
    if case.row["link_dest"]:
        found += _linked(place)
    return found


def _is_anyones(case: Case, found: Found) -> bool:
    """Whether the time of an entry is that of the moment in which it was made."""
    omitted = found.type == "directory" and "--omit-dir-times" in (case.row["rsync_opts"] or ())
    return omitted or "times" not in case.preserve


def _sparse(ours: dict[bytes, Found], theirs: dict[bytes, Found], verdict: Verdict, case: Case) -> list[Difference]:
    if "sparse" not in case.preserve:
        return []
    found = []
    for path, file in ours.items():
        if file.type != "file" or path not in verdict.source or path not in theirs:
            continue
        most = max(verdict.source[path].allocated, theirs[path].allocated)
        if file.allocated > most + _SPARSE_SLACK:
            found.append(Difference("sparse", path, f"{file.allocated} bytes allocated, {most} are enough"))
    return found


def _linked(place: Place) -> list[Difference]:
    """Compare which files are links to the older copy."""
    older = {_identity(path) for path in place.older.rglob("*")}
    linked = []
    for which in ("ours", "rsync"):
        root = place.root(which)
        linked.append({os.fsencode(p.relative_to(root)) for p in root.rglob("*") if _identity(p) in older})
    said = {
        True: "is no link to the older copy, with rsync it is",
        False: "is a link to the older copy, but not with rsync",
    }
    return [Difference("link_dest", path, said[path in linked[1]]) for path in sorted(linked[0] ^ linked[1])]


def _identity(path: Path) -> tuple[int, int] | None:
    found = path.lstat()
    return None if stat.S_ISDIR(found.st_mode) else (found.st_dev, found.st_ino)


def tree_differences(a: dict[bytes, Found], b: dict[bytes, Found]) -> list[Difference]:
    """Compare two trees as they were recorded: ``a`` is right."""
    found = []
    for path in sorted(a.keys() | b.keys()):
        if path not in b:
            found.append(Difference("missing", path, f"there is no {a[path].type}"))
        elif path not in a:
            found.append(Difference("extra", path, f"a {b[path].type} too many"))
        elif a[path].type != b[path].type:
            found.append(Difference("type", path, f"{b[path].type} for {a[path].type}"))
        else:
            for aspect in ("size", "content", "mode", "owner", "mtime", "xattrs", "target", "rdev", "links"):
                right, wrong = getattr(a[path], aspect), getattr(b[path], aspect)
                if right != wrong:
                    found.append(Difference(aspect, path, f"{wrong!r} for {right!r}"))
    return found


def only_names_of(a: dict[bytes, Found], b: dict[bytes, Found]) -> dict[bytes, Found]:
    """Return what ``b`` has under the names that ``a`` has, as if it had no others."""
    kept = {}
    for path in a.keys() & b.keys():
        links = tuple(name for name in b[path].links if name in a)
        kept[path] = b[path]._replace(links=links if len(links) > 1 else ())
    return kept


def words_in(text: str, pattern: str) -> bool:
    """Whether a message has words, whatever their case."""
    return bool(re.search(pattern, text, re.IGNORECASE))
