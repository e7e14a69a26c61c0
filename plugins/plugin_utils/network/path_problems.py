# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What path tests in both directions came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._network.ping import worst


def find_path_problems(
    forth: Sequence[Mapping[str, Any]], host: str, back: Sequence[Mapping[str, Any]] = ()
) -> list[str]:
    """Return a sentence for each direction that does not pass.

    ``forth`` are the results of nic_path_test in a loop over peers, from ``host`` to each of them, and ``back`` the
    same from the peers. A test that gave no answer at all, since its host was not reached, has not passed.
    """
    tests = []
    for results, outward in ((forth, True), (back, False)):
        for result in results:
            if result.get("skipped"):
                continue
            peer = result["item"]
            name = peer.get("host") or peer["address"]
            unanswered = result.get("msg") or "the test gave no answer"
            tests.append(
                {
                    "from": host if outward else name,
                    "to": f"{name} ({peer['address']})" if outward and peer.get("host") else name if outward else host,
                    "passed": result.get("passed", False),
                    "largest": result.get("largest"),
                    "message": result.get("message", unanswered),
                }
            )
    return worst(tests)
