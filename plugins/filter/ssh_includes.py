# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a configuration of ssh or sshd reads a drop-in."""

from __future__ import annotations

from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._ssh.config_text import includes

DOCUMENTATION = r"""
name: ssh_includes
short_description: "Internal: say whether a configuration of ssh or sshd reads a file"
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Looks for an C(Include) line that matches the file, and whether it stands where it counts for all.
  - Part of the role P(longhaul.fleet.ssh_client#role).
positional: _input, path, folder
options:
  _input:
    description: The text of the configuration.
    type: str
    required: true
  path:
    description: The file.
    type: path
    required: true
  folder:
    description: Where patterns begin that are not absolute.
    type: path
    default: /etc/ssh
"""

EXAMPLES = r"""
- name: See whether a drop-in counts
  ansible.builtin.debug:
    msg: "{{ lookup('file', 'sshd_config') | longhaul.fleet.ssh_includes('/etc/ssh/sshd_config.d/10-own.conf') }}"
"""

RETURN = r"""
_value:
  description: V(yes), V(no), or V(late) where the line stands inside a Host or Match block.
  type: str
"""


def ssh_includes(text: str, path: str, folder: str = "/etc/ssh") -> str:
    """Give ``yes``, ``late`` or ``no``."""
    return includes(text, path, folder)


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Give the filters by name."""
        return {"ssh_includes": ssh_includes}
