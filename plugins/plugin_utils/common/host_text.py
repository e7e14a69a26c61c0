# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts that come from a host, which may be hostile: made harmless before a terminal, a log or a report has them. Pure.

The ends of lines and tabs stay. A harmless text is to be shown, and never to be used: a path would be another path.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import TypeVar, cast

T = TypeVar("T")
# What moves the cursor, sets colours and titles, or changes the direction of writing: the control characters of ASCII
# and Latin-1, and Unicode's embeddings, overrides, isolates and marks (Unicode Standard Annex 9).
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Code points that are no characters, by Unicode.
_ENDS = "".join(chr(plane << 16 | end) for plane in range(17) for end in (0xFFFE, 0xFFFF))
_NO_CHARACTER = re.compile(f"[\ufdd0-\ufdef{_ENDS}]")


def harmless(text: str) -> str:
    r"""Return a text in which control characters are written as ``\x1b``."""
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def harmless_data(value: T) -> T:
    """Return plain data with all its texts harmless, the names of its members included.

    Messages of ansible-core 2.19 and later are dataclasses.
    """
    return cast(T, _harmless_data(value))


def _harmless_data(value: object) -> object:
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, Mapping):
        return {_harmless_data(name): _harmless_data(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        shown = [_harmless_data(item) for item in value]
        return shown if isinstance(value, list) or hasattr(value, "_fields") else tuple(shown)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = {one.name: _harmless_data(getattr(value, one.name)) for one in dataclasses.fields(value) if one.init}
        return dataclasses.replace(value, **members)
    return value


def one_line(text: str) -> str:
    """Return a text as one harmless line that every encoding of Unicode can write."""
    return " ".join(harmless(text).split()).encode("utf-8", "backslashreplace").decode()


def page_text(text: str, longest: int = 2000) -> str:
    """Return a harmless text that HTML can hold once it is escaped; of a longer one the begin and the end."""
    if len(text) > longest:
        kept = longest // 2
        text = f"{text[:kept]} [{len(text) - 2 * kept} characters left out] {text[-kept:]}"
    shown = harmless(text).encode("utf-8", "backslashreplace").decode()
    return _NO_CHARACTER.sub(lambda found: found.group().encode("unicode_escape").decode(), shown)
