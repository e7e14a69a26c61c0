# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who decides how far the hosts are trusted, and what follows for the methods."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.trust import decide_trust, refuse_trusting_method
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.methods import METHODS

WARY, OPEN = {"longhaul_trust": "none"}, {"longhaul_trust": "full"}


@pytest.mark.parametrize(
    "asked, source, dest, expected",
    [
        (None, {}, {}, "full"),
        ("full", {}, {}, "full"),
        ("none", {}, {}, "none"),
        (None, OPEN, OPEN, "full"),
        (None, WARY, {}, "none"),
        (None, {}, WARY, "none"),
        ("full", WARY, OPEN, "none"),  # the inventory knows the host better than a task does
        ("none", OPEN, OPEN, "none"),
        (None, {"longhaul_trust": None}, {}, "full"),
    ],
)
def test_the_wariest_counts(asked, source, dest, expected):
    assert decide_trust(asked, {"old": source, "new": dest}) == expected


def test_another_word_is_refused():
    with pytest.raises(Refusal, match="longhaul_trust of new is some: give full or none"):
        decide_trust(None, {"old": {}, "new": {"longhaul_trust": "some"}})


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_only_what_is_published_runs_between_hosts_that_are_not_trusted(method):
    refuse_trusting_method(method, "full", links=True)
    if method in ("auto", "stream", "rsync", "sftp"):
        return refuse_trusting_method(method, "none")
    with pytest.raises(
        Refusal, match=f"with method {method} one host could harm the other: use method stream, rsync or sftp, or set"
    ):
        refuse_trusting_method(method, "none")
    return None


def test_only_stream_reaches_older_copies():
    refuse_trusting_method("stream", "none", links=True)
    with pytest.raises(Refusal, match="method rsync would have to reach the older copies"):
        refuse_trusting_method("rsync", "none", links=True)
