# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of the role tune, which shows texts of hosts as the other reports do."""

from __future__ import annotations

import html
import re
from pathlib import Path

import jinja2
import pytest
from ansible.plugins.filter.core import regex_replace
from ansible.plugins.test.core import match
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.host_text import harmless, one_line

TEMPLATES = Path(__file__).resolve().parents[3] / "roles/tune/templates"


def shown(text: str) -> str:
    """Return a text as Markdown on one line that shows just this text, also in a cell of a table."""
    return re.sub(r"([\\`\[<|]|&(?=#?\w+;))", r"\\\1", one_line(text))


def render(results: dict) -> str:
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(loader=loader, trim_blocks=True, keep_trailing_newline=True)
    environment.filters["regex_replace"] = regex_replace
    environment.tests["match"] = match
    return environment.get_template("tune.md.j2").render(__tune_results=results)


def test_what_was_measured_is_compared():
    path = {"src_host": {"verdict": "passed", "mtu": 9000, "message": ""}}
    found = render(
        {"a to b": {"path": path, "before": {"speed": 1e8, "cipher": "x|y"}, "after": {"speed": 1.5e8, "cipher": "z"}}}
    )
    row = "| a to b | passed (9000) there, not tested back | 100.0 MB/s, x\\|y | 150.0 MB/s, z | +50 % |"
    assert row in found.splitlines()
    assert "| c to d | not tested there, not tested back | not measured | failed |  |" in render(
        {"c to d": {"after": {"reason": "no"}}}
    )


@pytest.mark.parametrize(
    "text",
    ["", "<b> &amp; & `t` [l](u) back\\slash", "\x1b[31m\u202e\x85\x0b\x1c", " two\r\nlines\tand\ra \u2028", "\udce9|"],
)
def test_a_reason_is_shown_as_in_the_other_reports(text):
    assert f"\na to b, before: {shown(text)}\n" in render({"a to b": {"before": {"reason": text}}})


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "`a` <img src=x onerror=alert(1)> `b`",
        "[click](http://example.org) ![picture](x)",
        "a | b | c",
        r"back\slash \<b> \`",
        "&lt;b&gt; &amp; &#60;",
        "three\nlines\n# and a heading",
        "``` fence",
        "\x1b]0;PWNED TITLE\x07\x1b[2J\x1b[31mall is well\x1b[0m",
    ],
)
def test_a_report_shows_just_the_text(text):
    """As CommonMark says: a backslash before a punctuation character gives that character, and no markup."""
    plain = " ".join(harmless(text).split())
    written = shown(text)
    assert "\n" not in written and re.sub(r"\\([\\`\[<|&])", r"\1", written) == plain
    left = re.sub(r"\\[\\`\[<|&]", "", written)
    assert not re.search(r"[`\[<|\\]", left) and html.unescape(left) == left


def test_plain_texts_stay_as_they_are():
    for text in ("3 files (2 MiB) in /srv/data: it's done, 100 % & more", "*.tmp", "a_b_c", "x > y"):
        assert shown(text) == text
