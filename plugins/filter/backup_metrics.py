# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The health of backups as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup_health import metrics

DOCUMENTATION = r"""
name: backup_metrics
short_description: "Internal: write the health of backups as metrics"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Gives the text of a file for the textfile collector of the node exporter of Prometheus.
  - Part of the role P(longhaul.fleet.backup#role).
positional: _input
options:
  _input:
    description: What P(longhaul.fleet.backup_health#filter) gives.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the metrics
  ansible.builtin.debug:
    msg: "{{ health | longhaul.fleet.backup_metrics }}"
"""

RETURN = r"""
_value:
  description: The text of the file.
  type: str
"""


def backup_metrics(entries: Sequence[Mapping[str, Any]]) -> str:
    """Give the text of the file."""
    return metrics(entries)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"backup_metrics": backup_metrics}
