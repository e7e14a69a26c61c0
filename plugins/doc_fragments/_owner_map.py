# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option of the modules that compare owners between two hosts. Private to the collection."""

from __future__ import annotations


class ModuleDocFragment:
    """The option C(owner_map)."""

    DOCUMENTATION = r"""
options:
  owner_map:
    description:
      - Maps owners at the source to owners at the destination, V(users) and V(groups). A key is a name or a number on
        O(src_host), its value a name or a number on O(dest_host). It also applies to entries in ACLs.
      - Each name is looked up once, by the host that has it; from then on only numbers are used. So two users may swap
        their numbers. An owner that is not in the map has the same number on both hosts, or with O(numeric_ids=false)
        the same name.
      - Names that O(dest_host) does not have, two keys that are the same user on O(src_host), and numbers in quotes are
        refused before anything is done.
    type: dict
    suboptions:
      users:
        description: Users.
        type: dict
        default: {}
      groups:
        description: Groups.
        type: dict
        default: {}
"""
