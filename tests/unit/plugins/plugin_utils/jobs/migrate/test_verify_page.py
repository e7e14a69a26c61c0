# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on comparisons of trees: a page, and a file for programs."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.report_facts import RunFacts
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.store import MigrationStore
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.verify_page import (
    make_verify_page,
    read_comparisons,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.page import render_page
from ansible_collections.longhaul.fleet.tests.support.html_outline import Outline
from ansible_collections.longhaul.fleet.tests.support.report_examples import HOSTILE, at

SIDE = {"entries": 12, "bytes": 3 << 20, "types": {"f": 10, "d": 2}}
SAME = {
    "identical": True, "differences": [], "differences_total": 0, "algorithm": "blake2b", "duration": 2.5,
    "source": SIDE, "dest": SIDE,
}  # fmt: skip
DIFFERS = {
    **SAME, "identical": False, "algorithm": "", "differences_total": 30, "differences": [
        {"path": "a/b", "kind": "differs", "fields": ["mode", "owner"]}, *[{"path": "c", "kind": "missing"}] * 29,
    ],
}  # fmt: skip
RESULTS = [("a", SAME), ("b", DIFFERS), ("c", {"failed": True, "msg": "old cannot be reached"})]
JOBS = {
    name: {"name": name, "src_host": "old", "src": f"/srv/{name}", "dest_host": "new", "dest": f"/data/{name}"}
    for name in "abc"
}
RUN = RunFacts(at(100), "ada@control")


def plain(results):
    """Return the text of the page, which is well-formed."""
    outline = Outline.of(render_page(make_verify_page(read_comparisons(results, JOBS, at(100)), RUN, at(0))))
    assert outline.problems == []
    return outline.plain


def test_those_that_differ_or_could_not_be_compared_come_first():
    text = plain(RESULTS)
    assert "✕ 2 of 3 jobs are not the same or could not be compared." in text
    assert "1 of 3 jobs are the same" in text and "2026-09-21 14:13:20 UTC" in text and "ada@control" in text
    assert text.index("\n| c old:/srv/c → new:/data/c | ✕ not compared old cannot be reached |") < text.index("\n| b ")
    assert "| ✕ different | by size and attributes | 12 | 12 | 3.0 MiB | ✕ 30 | 2.5 s |" in text
    assert "| ✓ the same | by content (blake2b) and attributes | 12 | 12 | 3.0 MiB | 0 | 2.5 s |" in text


def test_the_proof_and_the_first_differences_are_shown():
    text = plain(RESULTS)
    assert "✓ 12 of 12 entries are the same" in text and "✕ the trees differ in 30 places" in text
    assert "| a/b | ✕ differs | mode, owner |" in text and "Differences (20 of 30)" in text
    assert "| source | 12 | 3,145,728 | 2 | 10 |" in text
    digests = {side: {**SIDE, "digest": 16 * letter} for side, letter in (("source", "ab"), ("dest", "cd"))}
    text = plain([("a", {**SAME, **digests})])
    for side, letter in (("source", "ab"), ("destination", "cd")):
        assert f"| {side} | 12 | 3,145,728 | 2 | 10 | {16 * letter} |" in text


def test_equal_trees_are_well_and_what_a_host_says_is_text():
    assert "✓ The trees of 1 job are the same." in plain(RESULTS[:1])
    hostile = [("a", {"msg": HOSTILE}), ("b", {**DIFFERS, "differences": [{"path": HOSTILE, "kind": HOSTILE}]})]
    page = render_page(make_verify_page(read_comparisons(hostile, JOBS, at(100)), RUN, at(0)))
    assert Outline.of(page).problems == [] and "</script>" not in page


def test_it_is_written_to_a_folder_of_its_own_and_earlier_ones_are_kept(tmp_path):
    store = MigrationStore(str(tmp_path), writes=True)
    compared = read_comparisons(RESULTS, JOBS, at(100))
    for _run in range(2):
        data = {"jobs": [one.dump() for one in compared]}
        assert store.report_comparisons(data, lambda earlier: make_verify_page(compared, RUN, at(0), earlier)) == []
    assert sorted(one.name for one in (tmp_path / "verify").iterdir()) == ["earlier", "report.html", "report.json"]
    assert len(list((tmp_path / "verify/earlier").iterdir())) == 2
    assert store.path_of_report("verify") == str(tmp_path / "verify/report.html")
