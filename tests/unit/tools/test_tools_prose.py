# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Phrases to avoid are found, counted, and may only become fewer."""

from __future__ import annotations

import pytest


@pytest.fixture(name="prose", scope="module")
def _prose(import_tool):
    return import_tool("prose")


@pytest.mark.parametrize(
    "phrase, text, lines",
    [
        ("shall", "You shall.\nShall we? A marshall shallow", [1, 2]),
        ("the other end", "a\nthe other\n    # end says", [2]),
        ("the other end", "the other ends", []),
        ("go(?:es|ne)? on with", "is gone on  with, goes on\nwith", [1, 1]),
        ('"""Gives?', 'def f():\n    """Give it."""\n    """Given that."""\n    """I give."""', [2]),
        ("x", "", []),
    ],
)
def test_a_phrase_is_found_as_words_in_any_case_across_lines(prose, phrase, text, lines):
    assert [hit.line for hit in prose.find(phrase, "file", text)] == lines


LIST = """
skip: [one.md]
phrases:
  - phrase: 'shall'
    write: 'must'
    hits: 2
  - phrase: 'anew'
    write: 'again'
    hits: 0
"""


@pytest.mark.parametrize(
    "counts, good, said",
    [
        ((2, 0), True, ["2 phrases to avoid"]),
        ((1, 0), True, ["1 phrases to avoid", "1 fewer"]),
        ((1, 1), False, ['"anew" occurs 1 times, 0 are allowed: again', "    f:3: text"]),
        ((3, 0), False, ['"shall" occurs 3 times, 2 are allowed: must']),
    ],
)
def test_more_than_are_allowed_fail_and_fewer_are_noted(prose, counts, good, said):
    phrases, skip = prose.read_list(LIST)
    assert skip == ["one.md"]
    lines, verdict = prose.verdict(phrases, [[prose.Hit("f", 3, "text")] * count for count in counts])
    assert verdict == good
    assert [start for start in said if not any(line.startswith(start) for line in lines)] == []


@pytest.mark.parametrize("counts, left", [((1, 0), 1), ((2, 0), 2), ((3, 7), 2)])
def test_numbers_only_become_lower(prose, counts, left):
    assert prose.lowered(LIST, counts) == LIST.replace("hits: 2", f"hits: {left}")


def test_the_list_of_the_project_can_be_read(prose):
    phrases, skip = prose.read_list((prose.REPOSITORY / prose.LIST).read_text())
    assert all(phrase.hits >= 0 and phrase.write for phrase in phrases)
    assert [name for name in skip if not (prose.REPOSITORY / name).is_file()] == []
