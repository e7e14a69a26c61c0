#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: verify
short_description: Compare two file trees on two inventory hosts
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Walks a tree on each of two hosts, and says whether they are the same and where they differ.
  - It needs no other program on the hosts, and does not matter how the trees got there. Each host reads its own tree; only what
    is needed for the comparison travels.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.action
  - longhaul.fleet._attributes.info
  - longhaul.fleet._owner_map
attributes:
  platform:
    details:
      - Both hosts need Python 3.8 or newer.
options:
  src_host:
    description:
      - The inventory host of the one tree.
      - Without it, the host that the task runs for.
    type: str
  src:
    description:
      - The absolute path of a directory or of a file on O(src_host).
      - The trailing slash means the same as with M(longhaul.fleet.transfer), so that the same O(src) and O(dest) compare what
        was transferred.
    type: str
    required: true
  dest_host:
    description:
      - The inventory host of the other tree.
      - Without it, the host that the task runs for.
    type: str
  dest:
    description:
      - The absolute path of a directory on O(dest_host).
    type: str
    required: true
  checksum:
    description:
      - Read all files on both hosts and compare their content. Otherwise their sizes are compared.
    type: bool
    default: true
  fields:
    description:
      - What is compared of every entry. Without it everything in the list.
      - Names and types are always compared, contents where O(checksum=true).
      - V(owner) is the owner and the group, V(target) that of a symbolic link, V(links) which names are one file.
    type: list
    elements: str
    choices: [size, mtime, mode, owner, target, acls, xattrs, links]
  filter:
    description:
      - Filter rules in rsync's syntax, as with M(longhaul.fleet.transfer). What they exclude is not compared.
      - These rules come first, then those of O(include), then those of O(exclude).
    type: list
    elements: str
  include:
    description:
      - Patterns in rsync's syntax of what is compared although a pattern in O(exclude) matches it.
    type: list
    elements: str
  exclude:
    description:
      - Patterns in rsync's syntax of what is not compared. A leading slash means O(src) itself.
    type: list
    elements: str
  extra:
    description:
      - Also count as a difference what only the destination has.
    type: bool
    default: false
  numeric_ids:
    description:
      - Compare the numbers of owners and groups. With V(false) an owner is right that has the same name on both hosts; who has no
        name on O(dest_host) must have the same number. For that the owners of the source are counted first, which takes as long
        as listing it.
    type: bool
    default: true
  one_file_system:
    description:
      - Do not cross into other file systems that are mounted inside the trees.
    type: bool
    default: false
  limit:
    description:
      - How many differences are listed. All are counted.
    type: int
    default: 100
  on_difference:
    description:
      - Whether the task shall V(fail) when the trees differ, or only V(report) it.
    type: str
    choices: [fail, report]
    default: fail
seealso:
  - module: longhaul.fleet.transfer
"""

EXAMPLES = r"""
- name: Prove that the copy is complete and the same
  longhaul.fleet.verify:
    src_host: old.example.com
    src: /srv/data/
    dest_host: new.example.com
    dest: /srv/data

- name: Compare without reading the files, and count what only the destination has
  longhaul.fleet.verify:
    src_host: old.example.com
    src: /srv/data/
    dest_host: new.example.com
    dest: /srv/data
    checksum: false
    extra: true
    on_difference: report
  register: comparison

- name: Compare only names, types, sizes, content and times
  longhaul.fleet.verify:
    src_host: old.example.com
    src: /srv/data/
    dest_host: appliance.example.com
    dest: /mnt/data
    fields: [size, mtime]
"""

RETURN = r"""
identical:
  description: Whether the trees are the same in everything that was compared.
  returned: always
  type: bool
  sample: true
differences:
  description: Where the trees differ, in the order of the paths. No more than O(limit) are listed.
  returned: always
  type: list
  elements: dict
  contains:
    path:
      description: The path, relative to the root of the tree.
      type: str
      sample: etc/app.conf
    kind:
      description: V(missing) at the destination, V(extra) there, or V(differs).
      type: str
      sample: differs
    fields:
      description: What is different. Empty where the whole entry is missing or extra.
      type: list
      elements: str
      sample: [mode]
    source:
      description: What the source has of these fields.
      type: dict
      sample: {mode: "0640"}
    dest:
      description: What the destination has of these fields.
      type: dict
      sample: {mode: "0600"}
    unstable:
      description: Whether the entry changed at the source after the comparison began.
      type: bool
      sample: false
unstable:
  description: How many of the entries that differ changed at the source after the comparison began.
  returned: always
  type: int
  sample: 0
differences_total:
  description: How many entries differ.
  returned: always
  type: int
  sample: 0
differences_truncated:
  description: Whether there are more differences than RV(differences) lists.
  returned: always
  type: bool
  sample: false
source:
  description: What was found on O(src_host).
  returned: always
  type: dict
  contains:
    entries:
      description: The number of entries of every type.
      type: int
      sample: 54344
    types:
      description: The number of entries of each type, by the letters that C(find -type) has for them.
      type: dict
      sample: {d: 4022, f: 49100, l: 1222}
    bytes:
      description: The bytes in all the files.
      type: int
      sample: 2684354560
dest:
  description: What was found on O(dest_host).
  returned: always
  type: dict
  contains:
    entries:
      description: The number of entries of every type.
      type: int
      sample: 54344
    types:
      description: The number of entries of each type, by the letters that C(find -type) has for them.
      type: dict
      sample: {d: 4022, f: 49100, l: 1222}
    bytes:
      description: The bytes in all the files.
      type: int
      sample: 2684354560
algorithm:
  description: The hash function by which content was compared. Empty with O(checksum=false).
  returned: always
  type: str
  sample: blake2b
duration:
  description: Seconds from the start of the task to its end.
  returned: always
  type: float
  sample: 12.5
"""
