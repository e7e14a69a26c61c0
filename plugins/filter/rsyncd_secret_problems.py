# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with the users and passwords for the rsync daemon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.check import secret_problems

DOCUMENTATION = r"""
name: rsyncd_secret_problems
short_description: "Internal: say what is wrong with users and passwords for the rsync daemon"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Finds what a secrets file of rsync cannot hold. No sentence says a password.
  - Part of the role P(longhaul.fleet.rsyncd#role).
positional: _input
options:
  _input:
    description: The users, as dictionaries with C(name) and C(password).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Look at the passwords
  ansible.builtin.debug:
    msg: "{{ rsyncd_secrets | longhaul.fleet.rsyncd_secret_problems }}"
"""

RETURN = r"""
_value:
  description: A sentence for each problem; empty where there is none.
  type: list
  elements: str
"""


def rsyncd_secret_problems(secrets: Iterable[Mapping[str, Any]]) -> list[str]:
    """Give a sentence for each problem."""
    return secret_problems(secrets)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"rsyncd_secret_problems": rsyncd_secret_problems}
