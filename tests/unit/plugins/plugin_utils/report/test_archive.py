# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file of a report, those of earlier runs, and a folder that cannot be written."""

from __future__ import annotations

import json
import os

from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.files import Folder
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.archive import (
    MOST_EARLIER,
    keep_earlier,
    list_earlier,
    save_page,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.report.model import Page, Tone

DAY = 86400


def page(title, earlier=()):
    """Return a page."""
    return Page(title, "well", Tone.GOOD, (), (), (), "now", earlier=earlier)


def test_the_report_of_the_run_before_is_kept_beside_the_new_one(tmp_path):
    folder = Folder(str(tmp_path), writes=True)
    (tmp_path / "report.md").write_text("of a version before")
    for number in range(3):
        keep_earlier(folder, "report")
        folder.save("report.json", {"number": number})
        assert save_page(folder, "report", lambda earlier, number=number: page(f"run {number}", earlier)) == ""
        os.utime(tmp_path / "report.html", (number * DAY, number * DAY))
    newest = (tmp_path / "report.html").read_text()
    assert "<title>run 2</title>" in newest
    assert 'href="earlier/report-19700102T000000Z.html">1970-01-02 00:00:00 UTC<' in newest
    assert [one.file for one in list_earlier(folder, "report")] == [
        f"earlier/report-1970010{day}T000000Z.html" for day in (2, 1)
    ]
    before = (tmp_path / "earlier/report-19700102T000000Z.html").read_text()
    assert "<title>run 1</title>" in before and 'href="../earlier/report-19700101T000000Z.html"' in before
    assert json.loads((tmp_path / "earlier/report-19700101T000000Z.json").read_text()) == {"number": 0}
    assert (tmp_path / "report.md").read_text() == "of a version before"


def test_so_many_are_kept_and_files_of_others_are_left_alone(tmp_path):
    folder = Folder(str(tmp_path), writes=True)
    (tmp_path / "earlier").mkdir()
    for name in ("report-mine.html", "data-19700101T000000Z.html", "report-19700101T000000Z.html.bak"):
        (tmp_path / "earlier" / name).write_text("mine")
    for number in range(MOST_EARLIER + 5):
        (tmp_path / "report.html").write_text("a report")
        (tmp_path / "report.json").write_text("{}")
        os.utime(tmp_path / "report.html", (number * DAY, number * DAY))
        keep_earlier(folder, "report")
    assert len(list_earlier(folder, "report")) == MOST_EARLIER
    assert len(list((tmp_path / "earlier").iterdir())) == 2 * MOST_EARLIER + 3


def test_check_mode_writes_nothing(tmp_path):
    folder = Folder(str(tmp_path / "none"), writes=False)
    keep_earlier(folder, "report")
    assert save_page(folder, "report", lambda _earlier: page("run")) == "" and not list(tmp_path.iterdir())


def test_a_report_that_cannot_be_written_or_made_is_a_sentence_and_no_error(tmp_path):
    (tmp_path / "report.html").mkdir()
    keep_earlier(Folder(str(tmp_path), writes=True), "report")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    said = save_page(Folder(str(tmp_path), writes=True), "report", lambda _earlier: page("run"))
    assert said.startswith(f"the report {tmp_path}/report.html could not be written: Is a directory. ")

    def fail(_earlier):
        raise KeyError("x\x1b[31m\ny")

    said = save_page(Folder(str(tmp_path), writes=True), "data", fail)
    assert "data.html could not be written: KeyError: 'x\\x1b[31m\\ny'. Nothing else is affected" in said
    assert not (tmp_path / "data.html").exists()
