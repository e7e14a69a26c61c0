# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What path tests in both directions came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..host_runner import HostFailed, HostRunner


class _Test(NamedTuple):
    """What a test in one direction came to."""

    start: str
    end: str
    passed: bool
    message: str
    largest: int | None  # bytes of the largest packet that passes


_VERDICTS = ("passed", "local", "router", "black_hole", "unreachable")
_MEMBERS: Mapping[str, type] = {
    "passed": bool,
    **dict.fromkeys(("verdict", "message"), str),
    **dict.fromkeys(("mtu", "sent", "received"), int),
}
_MAYBE: Mapping[str, type] = {"largest": int, "link": str, "link_mtu": int, "source": str}


def ask_path(runner: HostRunner, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Send packets from a host, and return what the module nic_path_info found. Raises HostFailed."""
    asked = {name: options[name] for name in ("address", "mtu", "count", "patience") if options[name] is not None}
    waits = options["patience"] + options["count"]
    found = runner.run_module("longhaul.fleet.nic_path_info", {**asked, "required": False}, _MEMBERS, _MAYBE, waits)
    if found["verdict"] not in _VERDICTS or found["passed"] != (found["verdict"] == "passed"):
        raise HostFailed(f"its answer cannot be read: the verdict {found['verdict']!r}", runner.name)
    return found


def find_path_problems(
    forth: Sequence[Mapping[str, Any]], host: str, back: Sequence[Mapping[str, Any]] = ()
) -> list[str]:
    """Return a sentence for each direction that does not pass.

    ``forth`` are the results of nic_path_info in a loop over peers, from ``host`` to each of them, and ``back`` the
    same from the peers. A test that gave no answer at all, since its host was not reached, has not passed.
    """
    tests = [_parse(result, host, outward=True) for result in forth if not result.get("skipped")]
    tests += [_parse(result, host, outward=False) for result in back if not result.get("skipped")]
    return [
        f"{test.start} to {test.end}: {test.message}"
        + (f". The largest that passes has {test.largest} bytes" if test.largest else "")
        for test in tests
        if not test.passed
    ]


def _parse(result: Mapping[str, Any], host: str, outward: bool) -> _Test:
    peer = result["item"]
    name = peer.get("host") or peer["address"]
    there = f"{name} ({peer['address']})" if outward and peer.get("host") else name
    unanswered = result.get("msg") or "the test gave no answer"
    return _Test(
        host if outward else name,
        there if outward else host,
        result.get("passed", False),
        result.get("message", unanswered),
        result.get("largest"),
    )
