# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of transfers, and whether the source's changes are all that went wrong with them."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.source_changes import tell_changes
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.verification import CHANGED_SINCE

LOG = [{"path": "log", "reason": "unstable: sent 2 times"}]
COUNTED = {"errors_total": 1, "errors_unstable": 1, "errors": LOG}
DIFFERS = {"differences_total": 2, "differences": [{"path": "table"}, {"path": "log"}]}


@pytest.mark.parametrize(
    "result, count, example, only",
    [
        ({}, 0, "", ""),
        ({"failed": True, "msg": "no route to host"}, 0, "", ""),
        ({"failed": True, "only_unstable": True, **COUNTED}, 1, "log", "unread"),
        ({"failed": True, "only_unstable": False, **COUNTED}, 1, "log", ""),  # the disk was full, too
        ({"failed": True, "errors_total": 1, "errors": LOG}, 0, "", ""),
        ({"failed": True, "unstable": 2, **DIFFERS}, 2, "table", "differs"),
        ({"failed": True, "unstable": 1, **DIFFERS}, 1, "table", ""),
        ({"failed": True, "unstable": 0, **DIFFERS}, 0, "table", ""),
        ({"failed": True, "unstable": 2, "errors_total": 1, **DIFFERS}, 2, "table", ""),
        ({"failed": True, "source_missing": True}, 0, "", "missing"),
        ({"unstable": 2, **DIFFERS}, 2, "table", "differs"),  # the transfer took it for no failure
        ({"unstable": 0, "differences_total": 0}, 0, "", ""),
    ],
)
def test_only_changes_of_the_source_are_taken_for_them(result, count, example, only):
    found = tell_changes(result)
    assert (found["count"], found["example"], found["only"]) == (count, example, only)


def test_the_roles_word_the_warning_about_them_for_themselves():
    own = f"2 {CHANGED_SINCE}, 'log' among them"
    assert tell_changes({"unstable": 2, "warnings": ["plain text", own], **DIFFERS})["warnings"] == ["plain text"]
    assert tell_changes({})["warnings"] == []
