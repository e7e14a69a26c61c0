# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes in reports, written as in the lines of progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.role_logic import find_answer

DOCUMENTATION = r"""
name: human_size
short_description: "Internal: write a number of bytes"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Writes a number of bytes in binary units, as the lines of progress do.
  - Part of the roles P(longhaul.fleet.migrate#role) and P(longhaul.fleet.backup#role).
positional: _input
options:
  _input:
    description: The number of bytes.
    type: float
    required: true
"""

EXAMPLES = r"""
- name: Say how much there is
  ansible.builtin.debug:
    msg: "{{ 1288490188 | longhaul.fleet.human_size }}"  # 1.2 GiB
"""

RETURN = r"""
_value:
  description: The number in the largest unit of which there is at least one.
  type: str
"""


def human_size(count: float) -> str:
    """Return ``1.2 GiB`` for 1288490188."""
    return str(find_answer("plugin_utils.units.format_bytes")(float(count)))


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"human_size": human_size}
