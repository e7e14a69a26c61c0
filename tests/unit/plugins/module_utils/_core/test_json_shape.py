# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Members of JSON objects are read with the type that is due, and anything else is refused by name."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import (
    WrongShape,
    as_object,
    check_members,
    member,
    number,
    optional,
    texts,
    well_formed,
)

VALUES = {"text": "a", "count": 3, "flag": True, "ratio": 0.5, "none": None, "list": ["a", "b"], "mixed": ["a", 1]}


def test_a_member_of_the_type_that_is_due_is_returned():
    assert member(VALUES, "text", str) == "a" and member(VALUES, "count", int) == 3
    assert member(VALUES, "flag", bool) is True and texts(VALUES, "list") == ["a", "b"]
    assert number(VALUES, "ratio") == 0.5 and number(VALUES, "count") == 3
    assert optional(VALUES, "none", str) is None and optional(VALUES, "missing", str) is None
    assert optional(VALUES, "text", str) == "a" and as_object(VALUES, "it") is VALUES


@pytest.mark.parametrize(
    "read, said",
    [
        (lambda: member(VALUES, "missing", str), "missing is None, and a value of type str is expected"),
        (lambda: member(VALUES, "flag", int), "flag is True, and a value of type int"),
        (lambda: member(VALUES, "count", bool), "count is 3, and a value of type bool"),
        (lambda: number(VALUES, "flag"), "flag is True, and a number"),
        (lambda: number(VALUES, "text"), "text is 'a', and a number"),
        (lambda: optional(VALUES, "count", str), "count is 3"),
        (lambda: texts(VALUES, "mixed"), r"mixed is \['a', 1\], and a list of str"),
        (lambda: texts(VALUES, "text"), "text is 'a', and a list of str"),
        (lambda: check_members(VALUES, {"text": str, "flag": int}), "flag is True, and a value of type int"),
        (lambda: check_members(VALUES, {"missing": list}), "missing is None"),
        (lambda: as_object([], "the request"), r"the request is \[\], and an object"),
        (lambda: as_object("x" * 99, "it"), r"it is 'x{56}\.\.\., and"),
    ],
)
def test_anything_else_is_refused_by_name(read, said):
    with pytest.raises(WrongShape, match=said):
        read()


def test_members_of_other_types_are_left_out_of_what_is_damaged():
    check_members(VALUES, {"text": str, "count": int})
    kinds = {"text": str, "count": str, "ratio": (int, float), "none": dict, "missing": int}
    assert well_formed(VALUES, kinds) == {name: VALUES[name] for name in VALUES.keys() - {"count", "none"}}
    assert well_formed([1], kinds) == well_formed(None, kinds) == {}
