# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Typed answers become what templates read."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils import role_logic, units
from ansible_collections.longhaul.fleet.plugins.plugin_utils.role_logic import as_data, find_answer, make_filter


class Colour(Enum):
    RED = "red"


class Answer(NamedTuple):
    colours: tuple[Colour, ...]
    given: Any


def test_an_answer_becomes_data():
    given = {"a": [1], "b": ("x",)}
    answer = as_data(Answer((Colour.RED, Colour.RED), given))
    assert answer == {"colours": ["red", "red"], "given": given}
    assert answer["given"] is given, "what belongs to the user stays the same object"


def test_what_answers_is_found_by_its_place():
    assert find_answer("plugin_utils.units.format_bytes") is units.format_bytes
    with pytest.raises(ImportError):
        find_answer("plugin_utils.nothing.format_bytes")


def test_a_question_gets_its_value_and_options(monkeypatch):
    monkeypatch.setattr(role_logic, "find_answer", {"here.total": lambda value, more=0: (value, more)}.get)
    ask = make_filter("test_logic", {"sum": "here.total"})
    assert ask(1, "sum") == [1, 0]
    assert ask(1, "sum", more=2) == [1, 2]
