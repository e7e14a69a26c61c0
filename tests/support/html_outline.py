# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An HTML page as tests look at it: its elements, its text, and what is not well-formed. Strict, unlike browsers."""

from __future__ import annotations

import re
from collections import defaultdict
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}
SHAPES = {"line", "rect", "circle", "polyline"}  # of SVG, which may end themselves
INSIDE = {  # of which elements something must be a child
    "li": {"ul"}, "tr": {"thead", "tbody", "tfoot"}, "td": {"tr"}, "th": {"tr"}, "dt": {"div", "dl"},
    "dd": {"div", "dl"}, "caption": {"table"}, "summary": {"details"}, "figcaption": {"figure"}, "desc": {"svg"},
}  # fmt: skip
LINES = {"h1", "h2", "h3", "p", "tr", "caption", "dt", "dd", "li", "summary", "figcaption", "svg", "title"}
BLOCKS = {"p", "ul", "table", "div", "section", "figure", "details", "dl"}


class Outline(HTMLParser):
    """The elements of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.names: list[str] = []
        self.tags: dict[str, list[dict[str, str]]] = defaultdict(list)
        self._text: list[str] = []
        self._plain: list[str] = []
        self._open: list[str] = []

    @classmethod
    def of(cls, html: str) -> Outline:
        """Return the outline of a page."""
        outline = cls()
        if not html.startswith("<!DOCTYPE html>\n<html"):
            outline.problems.append("no doctype")
        for found in re.finditer(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]", html):
            outline.problems.append(f"the character {found.group()!r}")
        outline.feed(html)
        outline.close()
        outline.problems += [f"{name} is not closed" for name in outline._open]
        return outline

    @property
    def text(self) -> str:
        """The text as it stands in the file."""
        return "".join(self._text)

    @property
    def plain(self) -> str:
        """The text with one line for each block, and one for each row of a table, whose cells stand between bars."""
        return "\n".join(" ".join(line.split()) for line in "".join(self._plain).splitlines() if line.strip())

    @property
    def headings(self) -> list[int]:
        """The levels of the headings."""
        return [int(name[1]) for name in self.names if re.fullmatch("h[1-6]", name)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        parent = self._open[-1] if self._open else ""
        if len({name for name, _value in attrs}) < len(attrs):
            self.problems.append(f"{tag} has an attribute twice")
        if tag in INSIDE and parent not in INSIDE[tag]:
            self.problems.append(f"{tag} in {parent}")
        if tag in BLOCKS and "p" in self._open:
            self.problems.append(f"{tag} in p")
        self.names.append(tag)
        self.tags[tag].append({name: value or "" for name, value in attrs})
        self._plain.append(" | " if tag in ("td", "th") else "\n" if tag in LINES else " ")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that ends itself."""
        if tag not in SHAPES:
            self.problems.append(f"{tag} ends itself")
        self.names.append(tag)
        self.tags[tag].append({name: value or "" for name, value in attrs})

    def handle_endtag(self, tag: str) -> None:
        """Close an element."""
        if not self._open or self._open[-1] != tag:
            self.problems.append(f"</{tag}> in {self._open[-1:]}")
        else:
            self._open.pop()
        self._plain.append(" |" if tag == "tr" else "")

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        if self._open[-1:] != ["style"]:
            self._text.append(data)
            self._plain.append(" ".join(data.split("\n")))
