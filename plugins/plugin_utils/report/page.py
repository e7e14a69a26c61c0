# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a page as HTML. Each text is made harmless, cut to a bounded length and escaped. Pure."""

from __future__ import annotations

import functools
import itertools
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from ..common.host_text import page_text
from .charts import DrawnChart, draw
from .model import Chart, Page
from .template import MARKUP, STYLE


def render_page(page: Page) -> str:
    """Return a page as one HTML document, which refers to no other file but earlier reports and those of jobs."""
    numbers = itertools.count(1)

    def draw_next(chart: Chart) -> DrawnChart:
        drawn = draw(chart, next(numbers))
        return drawn._replace(svg=Markup(drawn.svg))  # charts escape their texts

    return _template().render(page=page, style=Markup(STYLE), draw=draw_next)


@functools.lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=_finalize, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(kind_of=lambda block: type(block).__name__, percent=_percent, link_to=_link_to)
    return environment.from_string(MARKUP.lstrip())


def _finalize(value: object) -> object:
    """Return what a page shows of a value, before it is escaped."""
    if value is None or isinstance(value, Markup):
        return "" if value is None else value
    return page_text(str(value))


def _link_to(file: str) -> str:
    """Return a reference to a file in this folder or below. No scheme is left in it."""
    return quote(file, errors="backslashreplace")


def _percent(share: float) -> int:
    return round(100 * min(1.0, max(0.0, share)))
