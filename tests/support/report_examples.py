# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports of made-up migrations of any number of jobs, for the tests of pages and for pictures of them."""

from __future__ import annotations

import time
from typing import Any

BEGIN = 1_790_000_000  # seconds since 1970
GIB = 1 << 30
HOSTILE = '</script><img src=x onerror="alert(1)">\u202egnp.\x1b[31m\'&amp;<b>\udc80\ufffe'


def at(seconds: float) -> str:
    """Return a time as reports have it, so many seconds after the begin."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGIN + seconds))


def transfer(ended: float, took: float, total: int, sent: int, **more: object) -> dict[str, object]:
    """Return what is kept of a transfer."""
    return {
        "at": at(ended), "method": "stream", "method_reason": "both hosts can run it", "encrypted": True, "streams": 4,
        "state": "finished", "bytes_total": total, "bytes_apparent": total, "bytes_sent": sent, "duration": took,
        "files_total": total // 65536 + 10, "files_created": sent // 65536, "throughput": sent / max(1.0, took),
        "changed_meanwhile": {"count": 0, "example": "", "only": ""}, **more,
    }  # fmt: skip


def samples(phase: str, begin: float, took: float, total: int, ended: bool = True, count: int = 60) -> list[Any]:
    """Return the samples of a pass, with an interruption in the middle of a long one."""
    found = []
    last = count if ended else count * 2 // 3
    for number in range(last + 1):
        gap = took / 5 if took > 3600 and number > count // 2 else 0
        done = int(total * (number / count) ** 1.2)
        when = int(BEGIN + begin + took * number / count + gap)
        found.append(
            {"at": when, "phase": phase, "bytes_done": done, "bytes_total": total, "files_done": done // 65536,
             "files_total": total // 65536}
        )  # fmt: skip
    return found


def hook(name: str, kind: str, host: str, begin: float, took: float, result: str = "done") -> dict[str, object]:
    """Return a hook that ran."""
    return {
        "kind": kind, "host": host, "name": name, "what": f"systemctl {name}", "at": at(begin), "rc": 0,
        "began": BEGIN + begin, "ended": BEGIN + begin + took, "result": result,
    }  # fmt: skip


def comparison(ended: float, took: float, entries: int, size: int, **more: object) -> dict[str, object]:
    """Return a comparison of both trees that found no difference."""
    side = {"entries": entries, "bytes": size, "types": {"f": entries - 10, "d": 10}, "digest": "9f86d081884c7d65" * 2}
    return {
        "identical": True, "at": at(ended), "compared": "checksum", "algorithm": "blake2b", "source": side,
        "dest": side, "duration": took, "differences": [], "differences_total": 0, **more,
    }  # fmt: skip


def job_report(number: int, kind: str = "switched", name: str = "", group: str = "") -> dict[str, Any]:
    """Return the report of a job: ``switched``, ``failed``, ``copying``, ``up to date`` or ``new``."""
    name = name or f"web-{number:03d}"
    size = (3 + number * 7 % 40) * GIB
    took = 3600 + number * 311 % 7200
    entries = size // 65536 + 10
    predicted = transfer(0, 5, size, size)
    phases: dict[str, Any] = {"preflight": {"at": at(0), "predicted": predicted, "source": {}, "dest": {}}}
    report: dict[str, Any] = {
        "name": name, "phases": phases, "quiesced": False, "switch": {}, "failure": {}, "hooks": [], "warnings": [],
        "identity": {
            "src_host": f"old{number % 4}.example", "src": f"/srv/{name}", "dest_host": f"new{number % 2}.example",
            "dest": f"/srv/{name}",
        },
        "run": {"at": at(90000), "by": "ada@control", "phase": "cutover", "verify": "checksum", "notes": []},
        "seeding": {"at": at(10), "limit": -1}, "next": "Go on.", "predicted": {}, "deletions": "", "forecast": {},
        "totals": {"entries": entries, "bytes": size, "bytes_apparent": size, "bytes_sent": size, "files_deleted": 3},
        "samples": samples("seed", 10, took, size, ended=kind != "copying"), "check_mode": False,
    }  # fmt: skip
    if group:
        report["group"] = {"name": group, "run": "r", "stands": "ready", "members": [name]}
    if kind == "new":
        return {**report, "seeding": None, "samples": [], "predicted": predicted}
    if kind == "copying":
        reason = f"The connection to old{number % 4}.example was lost: no answer for 300 s.\nIt was tried 4 times."
        return {**report, "failure": {"phase": "seed", "at": at(took), "reason": reason},
                "next": "Fix what is named above, and run the same command again; it goes on from here."}  # fmt: skip
    phases["seed"] = transfer(10 + took, took, size, size)
    passes = [transfer(20000, 400, size, size // 20), transfer(21000, 60, size, size // 300, files_deleted=3)]
    phases["sync"] = {"passes": passes, "at": at(21000)}
    report["samples"] += samples("sync", 19600, 400, size // 20, count=20)
    report["forecast"] = {"seconds": 95.0, "lasted": "1 min 35 s", "why": "as in the rehearsal"}
    if kind == "up to date":
        return report
    begin = 90000 + number % 7 * 60
    stop = hook("stop", "before_cutover", f"old{number % 4}.example", begin, 4.2)
    phases["cutover"] = transfer(begin + 70, 60, size, 9 << 20, phases={"verify": 38.0}, verified="checksum")
    report.update(quiesced_at=at(begin), cutover_at=at(begin), hooks=[stop])
    if kind == "failed":
        differences = [{"path": f"log/{name}.log", "kind": "differs", "fields": ["size", "mtime"]}]
        phases["verify_failed"] = comparison(
            begin + 70, 38, entries, size, identical=False, differences=differences, differences_total=1
        )
        report["hooks"].append(hook("start", "cutover_failed", f"old{number % 4}.example", begin + 75, 3, "failed"))
        report["failure"] = {"phase": "verify", "at": at(begin + 70), "reason": "the trees differ in 1 place"}
        report["warnings"] = ["2 users have other numbers on the new host"]
        report["quiesced"] = True
        report["phases"]["cutover"]["owner_mismatches"] = [
            {"type": "user", "id": 103, "name": "mysql", "name_there": "", "id_there": 101, "numeric_ids": True,
             "entries": 214, "path": "var/lib/mysql"}
        ]  # fmt: skip
        return report
    phases["verify"] = comparison(begin + 70, 38, entries, size)
    report["hooks"].append(hook("start", "after_cutover", f"new{number % 2}.example", begin + 75, 6.5))
    report["switch"] = {"done": True, "at": at(begin + 82), "by": "ada@control", "hooks": [], "steps": 1}
    report["downtimes"] = [{"from": at(begin), "to": at(begin + 82), "serves": "the new host"}]
    return {**report, "next": "Done. Keep the tree on the old host until you trust the new one.", "forecast": {}}


def fleet(count: int) -> list[dict[str, Any]]:
    """Return reports of so many jobs, some of them sick."""
    if count == 1:
        return [job_report(1, name="shop")]
    kinds = ["switched", "failed", "copying", "switched", "up to date", "switched", "new", "switched"]
    return [
        job_report(number, kinds[number % len(kinds)] if number < 16 or not number % 9 else "switched",
                   group="shop" if number in (3, 5) else "")
        for number in range(count)
    ]  # fmt: skip
