# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a hostile host says reaches terminals and reports as text, and as nothing else."""

from __future__ import annotations

import html
import re

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.host_text import (
    harmless,
    harmless_data,
    markdown_text,
    page_text,
)

HOSTILE = "\x1b]0;PWNED TITLE\x07\x1b[2J\x1b[31mall is well\x1b[0m"


def test_control_characters_are_written_out():
    assert harmless(HOSTILE) == r"\x1b]0;PWNED TITLE\x07\x1b[2J\x1b[31mall is well\x1b[0m"
    assert harmless("\x9b31m \u202egpj.exe") == r"\x9b31m \u202egpj.exe"
    assert harmless("two\nlines\tand a tab, ä, 日本, 😀") == "two\nlines\tand a tab, ä, 日本, 😀"
    assert harmless("return\rover") == r"return\rover" and harmless("ssh\r\n") == "ssh\n"


def test_all_texts_of_an_answer_are_made_harmless():
    said = {"a\x1b": [{"b": "c\x07", "n": 1, "x": None, "y": True, "f": 1.5}]}
    assert harmless_data(said) == {"a\\x1b": [{"b": "c\\x07", "n": 1, "x": None, "y": True, "f": 1.5}]}


def test_a_page_gets_characters_alone_and_no_text_without_end():
    assert page_text("a\udc80\ufffe\U0010ffff\ufdd0\x00ä\n") == r"a\udc80\ufffe\U0010ffff\ufdd0\x00ä" + "\n"
    assert page_text("a" * 20, 20) == "a" * 20
    assert page_text("ab" * 1000 + "c" * 1000, 10) == "ababa [2990 characters left out] ccccc"


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
        HOSTILE,
    ],
)
def test_a_report_shows_just_the_text(text):
    """As CommonMark says: a backslash before a punctuation character gives that character, and no markup."""
    shown = " ".join(harmless(text).split())
    written = markdown_text(text)
    assert "\n" not in written and re.sub(r"\\([\\`\[<|&])", r"\1", written) == shown
    left = re.sub(r"\\[\\`\[<|&]", "", written)
    assert not re.search(r"[`\[<|\\]", left) and html.unescape(left) == left


def test_plain_texts_stay_as_they_are():
    for text in ("3 files (2 MiB) in /srv/data: it's done, 100 % & more", "*.tmp", "a_b_c", "x > y"):
        assert markdown_text(text) == text
