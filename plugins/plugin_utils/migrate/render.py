# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reports of a job for people, from the same templates as the role's tasks use, compiled once for all jobs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import ChainableUndefined, Environment, FileSystemLoader, StrictUndefined

from ..host_text import markdown_code, markdown_text
from ..units import format_bytes

_TEMPLATES = Path(__file__).resolve().parents[3] / "roles/migrate/templates"


class _Undefined(StrictUndefined, ChainableUndefined):
    """What is missing may be asked for what it has, as in Ansible's templates, but not written."""

    __getattr__ = ChainableUndefined.__getattr__
    __getitem__ = ChainableUndefined.__getitem__


def render_report(report: Mapping[str, Any]) -> str:
    """Return the report of a job in Markdown."""
    return _render("report.md.j2", report)


def render_summary(report: Mapping[str, Any]) -> list[str]:
    """Return the lines about a job for the terminal."""
    return _render("summary.txt.j2", report).splitlines()


def _render(name: str, report: Mapping[str, Any]) -> str:
    return _environment().get_template(name).render(__migrate_report=report)


@functools.lru_cache(maxsize=1)
def _environment() -> Environment:
    """Return jinja2 as Ansible sets it up for templates, with the filters that these use."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), trim_blocks=True, keep_trailing_newline=True, undefined=_Undefined
    )
    environment.filters["longhaul.fleet.human_size"] = lambda count: format_bytes(float(count))
    environment.filters["longhaul.fleet.markdown_text"] = _as_markdown
    return environment


def _as_markdown(text: object, code: bool = False) -> str:
    return markdown_code(str(text)) if code else markdown_text(str(text))
