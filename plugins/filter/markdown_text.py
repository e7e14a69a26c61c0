# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts of hosts in reports, which show them and do nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.role_logic import find_answer

DOCUMENTATION = r"""
name: markdown_text
short_description: "Internal: write a text of a host into a report"
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Escapes control characters, Markdown and HTML, so that a report shows the text and nothing else, on one line.
  - Part of the roles P(longhaul.fleet.migrate#role), P(longhaul.fleet.backup#role), P(longhaul.fleet.restore#role)
    and P(longhaul.fleet.tune#role).
positional: _input
options:
  _input:
    description: The text.
    type: str
    required: true
  code:
    description: Whether it becomes a span of code, as paths do.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show what a host said
  ansible.builtin.debug:
    msg: "{{ '<b>all is well</b>' | longhaul.fleet.markdown_text }}"  # \<b\>all is well\</b\>
"""

RETURN = r"""
_value:
  description: The text as Markdown.
  type: str
"""


def markdown_text(text: object, code: bool = False) -> str:
    """Return a text as Markdown that shows just this text."""
    return str(find_answer(f"plugin_utils.host_text.{'markdown_code' if code else 'markdown_text'}")(str(text)))


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"markdown_text": markdown_text}
