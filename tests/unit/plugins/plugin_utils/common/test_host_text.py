# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a hostile host says reaches terminals and reports as text, and as nothing else."""

from __future__ import annotations

from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.host_text import (
    harmless,
    harmless_data,
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
