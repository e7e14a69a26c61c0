# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports for people, from the templates of a role, which are compiled once for all of its jobs."""

from __future__ import annotations

import functools
from pathlib import Path

from jinja2 import ChainableUndefined, Environment, FileSystemLoader, StrictUndefined

from ..host_text import markdown_code, markdown_text
from ..units import format_bytes

_ROLES = Path(__file__).resolve().parents[3] / "roles"


class _Undefined(StrictUndefined, ChainableUndefined):
    """What is missing may be asked for what it has, as in Ansible's templates, but not written."""

    __getattr__ = ChainableUndefined.__getattr__
    __getitem__ = ChainableUndefined.__getitem__


def render(role: str, template: str, **values: object) -> str:
    """Return the text of a role's template with these values."""
    return _environment(role).get_template(template).render(**values)


@functools.lru_cache(maxsize=None)
def _environment(role: str) -> Environment:
    """Return jinja2 as Ansible sets it up for templates, with the filters that these use."""
    environment = Environment(
        loader=FileSystemLoader(_ROLES / role / "templates"),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=_Undefined,
    )
    environment.filters["longhaul.fleet.human_size"] = lambda count: format_bytes(float(count))
    environment.filters["longhaul.fleet.markdown_text"] = _as_markdown
    return environment


def _as_markdown(text: object, code: bool = False) -> str:
    return markdown_code(str(text)) if code else markdown_text(str(text))
