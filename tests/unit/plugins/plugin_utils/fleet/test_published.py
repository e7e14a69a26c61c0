# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table for ``trust: none`` in docs/security.md: the plan runs just that."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.trust import OFFERS
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.methods import METHODS
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.transfer.test_plan import plan

REPOSITORY = Path(__file__).resolve().parents[5]
PAGE = REPOSITORY / "docs/security.md"
HEAD = "| method | connects: source (push) | connects: destination (pull) | `link_dest` |"
BY_NAME = "` (if you name it)"


def published() -> list[tuple[str, ...]]:
    """Return the rows of the table: methods, push, pull, link_dest."""
    _before, _head, after = PAGE.read_text().partition(HEAD)
    rows = after.split("\n\n")[0].strip().splitlines()[1:]
    return [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in rows]


def test_the_page_says_what_the_code_does():
    expected = [
        (
            f"`{offer.method}{'`' if offer.links else BY_NAME}",
            offer.push or "yes",
            offer.pull or "yes",
            "yes" if offer.links else "no",
        )
        for offer in OFFERS
    ]
    offered = [offer.method for offer in OFFERS]
    *found, (others, *refused) = published()
    assert found == expected and refused == ["no"] * 3
    assert sorted(others.replace("`", "").split(", ")) == sorted(method for method in METHODS if method not in offered)


@pytest.mark.parametrize("links", [False, True], ids=["alone", "link_dest"])
@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_published_runs_and_nothing_else(method, connect, links):
    given = {"method": method, "connect": connect, "link_dest": ["/older"] if links else [], "encryption": "none"}
    offered = any(offer.method == method and (offer.links or not links) for offer in OFFERS)
    if not offered:
        with pytest.raises(Refusal, match="trust is none"):
            plan(trust="none", **given)
        return
    assert plan(trust="none", **given).choice.method == method


@pytest.mark.parametrize("connect", ["push", "pull"])
@pytest.mark.parametrize("links", [False, True])
def test_no_other_method_is_chosen(connect, links):
    made = plan(trust="none", method="auto", connect=connect, link_dest=["/older"] if links else [])
    assert made.choice.method == "stream"


@pytest.mark.parametrize(
    ("connect", "given", "why"),
    [
        ("push", {"exclude": ["*.key"]}, "as a destination it cannot hold the source to the filter rules"),
        ("pull", {"exclude": ["*.key"]}, "as a source it cannot hold the destination to the filter rules"),
    ],
)
def test_the_conditions_of_rsync(connect, given, why):
    with pytest.raises(Refusal, match=why):
        plan(trust="none", method="rsync", connect=connect, **given)
