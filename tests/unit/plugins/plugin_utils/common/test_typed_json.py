# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.typed_json import (
    EMPTY,
    SPARSE,
    dump_dataclass,
    parse_dataclass,
)


class Paint(Enum):
    """A word of a list."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Wheel:
    """A part."""

    size: float
    spokes: list[str] = field(default_factory=list)


@dataclass
class Cart:
    """An object with fields of all kinds."""

    name: str
    front: Wheel | None = field(default=None, metadata=EMPTY)
    spare: Wheel | None = None
    since: str = field(default="", metadata={"key": "from", **SPARSE})
    loads: dict[str, int] = field(default_factory=dict, metadata=SPARSE)
    sold: bool = False
    paint: Paint | None = None
    stops: tuple[Wheel, ...] = field(default=(), metadata=SPARSE)


@pytest.mark.parametrize(
    "written",
    [
        {"name": "a", "front": {}, "sold": False},
        {"name": "a", "front": {"size": 3, "spokes": []}, "sold": True},
        {
            "name": "a",
            "front": {},
            "spare": {"size": 2.5, "spokes": ["x"]},
            "from": "b",
            "loads": {"c": 1},
            "sold": False,
            "paint": "blue",
            "stops": [{"size": 1, "spokes": ["y"]}],
        },
    ],
)
def test_an_object_is_written_as_it_was_read(written):
    again = dump_dataclass(parse_dataclass(Cart, written, "the cart"))

    assert again == written
    assert str(again) == str(written), "an integer stays one"


def test_a_tuple_is_one_after_reading():
    assert parse_dataclass(Cart, {"name": "a", "stops": [{"size": 1}]}, "the cart").stops == (Wheel(1),)


def test_what_is_missing_has_its_default_and_what_is_unknown_is_dropped():
    assert parse_dataclass(Cart, {"name": "a", "colour": "red"}, "the cart") == Cart("a")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ([], "the cart"),
        ({}, "the cart has no name"),
        ({"name": 5}, "name of the cart is no str"),
        ({"name": "a", "sold": 1}, "sold of the cart is no bool"),
        ({"name": "a", "front": {"size": True}}, "size of front of the cart is no float"),
        ({"name": "a", "front": {"size": 1, "spokes": "x"}}, "spokes of front of the cart is no list"),
        ({"name": "a", "loads": {"b": "1"}}, "loads of the cart is no int"),
    ],
)
def test_a_wrong_shape_is_named(written, reason):
    with pytest.raises(WrongShape, match=reason):
        parse_dataclass(Cart, written, "the cart")
