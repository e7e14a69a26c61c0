# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a systemd unit must open for the modules of the rsync daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.rsyncd import sandbox

DOCUMENTATION = r"""
name: rsyncd_sandbox
short_description: "Internal: say what a systemd unit must open for the modules of the rsync daemon"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Compares what the unit closes (C(ProtectSystem), C(ProtectHome), C(PrivateDevices), C(PrivateTmp), C(ReadOnlyPaths))
    with what the modules need.
  - Part of the role P(longhaul.fleet.rsyncd#role).
positional: _input
options:
  _input:
    description: What C(systemctl cat UNIT) prints.
    type: str
    required: true
  config:
    description: The result of M(longhaul.fleet.rsyncd_config).
    type: dict
    required: true
  without:
    description: The path of a drop-in that is left out.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: See what the unit must open
  ansible.builtin.debug:
    msg: "{{ unit.stdout | longhaul.fleet.rsyncd_sandbox(config) }}"
"""

RETURN = r"""
_value:
  description: C(settings) is a list of lines for a drop-in, empty where none is needed. C(shut) names needed paths that
    a drop-in cannot open, since the unit has them in C(InaccessiblePaths).
  type: dict
"""


def rsyncd_sandbox(unit: str, config: Mapping[str, Any], without: str = "") -> dict[str, list[str]]:
    """Give the lines of a drop-in, and the paths that it cannot open."""
    settings = sandbox.unit_settings(unit, without)
    modules = [*config["modules"], *config.get("kept", ())]
    needed = sandbox.needed_paths(modules, config["daemon"])
    opened = sandbox.opened(settings, needed, sandbox.makes_devices(modules))
    return {
        "settings": [f"{key}={' '.join(values)}" for key, values in opened.items()],
        "shut": sandbox.shut_paths(settings, needed),
    }


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"rsyncd_sandbox": rsyncd_sandbox}
