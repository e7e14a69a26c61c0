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
  - Walks a tree on each of two hosts, and reports whether they are the same and where they differ.
  - It needs no other program on the hosts, and works however the trees got there. Each host reads its own tree; only
    the data that is needed for the comparison is sent.
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
      - Inventory host of the first tree.
      - The default is the host of the task.
    type: str
  src:
    description:
      - Absolute path of a directory or of a file on O(src_host).
      - The trailing slash has the same meaning as in M(longhaul.fleet.transfer), so that the same O(src) and O(dest)
        compare what was transferred.
    type: str
    required: true
  dest_host:
    description:
      - Inventory host of the second tree.
      - The default is the host of the task.
    type: str
  dest:
    description:
      - Absolute path of a directory on O(dest_host).
    type: str
    required: true
  checksum:
    description:
      - Read all files on both hosts and compare their content. Otherwise their sizes are compared.
    type: bool
    default: true
  fields:
    description:
      - Fields to compare. By default all of them.
      - Names and types are always compared, contents with O(checksum=true).
      - V(owner) is the owner and the group, V(target) that of a symbolic link, V(links) which names are the same file.
      - V(mtime) counts as far as the file system of the destination keeps times. What that is, the last transfer between
        the same paths has found out on this control node. If there was none, times count in whole seconds where every time
        that is seen there is one, and in nanoseconds elsewhere. A warning says so.
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
      - Patterns in rsync's syntax of entries to compare even if a pattern in O(exclude) matches them.
    type: list
    elements: str
  exclude:
    description:
      - Patterns in rsync's syntax of entries to skip. A leading slash means O(src) itself.
    type: list
    elements: str
  exclude_if_present:
    description:
      - Names of files. Of a directory of the source that contains such a file, only the directory itself and that file
        are compared, as with M(longhaul.fleet.transfer).
    type: list
    elements: str
    version_added: 0.3.0
  exclude_caches:
    description:
      - The same for directories with a C(CACHEDIR.TAG), as with M(longhaul.fleet.transfer).
    type: bool
    default: false
    version_added: 0.3.0
  extra:
    description:
      - Also report entries that only the destination has.
    type: bool
    default: false
  numeric_ids:
    description:
      - Compare the numbers of owners and groups. With V(false) owners match if they have the same name on both hosts;
        an owner without a name on O(dest_host) must have the same number. The owners of the source are then counted
        first, which takes as long as listing it.
    type: bool
    default: true
  one_file_system:
    description:
      - Do not enter other file systems that are mounted inside the trees.
    type: bool
    default: false
  limit:
    description:
      - Maximum number of differences to list. All are counted.
    type: int
    default: 100
  on_difference:
    description:
      - Whether the task fails (V(fail)) or only reports it (V(report)) when the trees differ.
    type: str
    choices: [fail, report]
    default: fail
seealso:
  - module: longhaul.fleet.transfer
"""

EXAMPLES = r"""
- name: Verify that the copy is complete and identical
  longhaul.fleet.verify:
    src_host: old.example.com
    src: /srv/data/
    dest_host: new.example.com
    dest: /srv/data

- name: Compare without reading the files, and report what only the destination has
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
  description: Differences between the trees, in the order of the paths. At most O(limit) are listed.
  returned: always
  type: list
  elements: dict
  contains:
    path:
      description: Path relative to the root of the tree.
      type: str
      sample: etc/app.conf
    kind:
      description: V(missing) at the destination, V(extra) there, or V(differs).
      type: str
      sample: differs
    fields:
      description: Fields that differ. Empty if the whole entry is missing or extra.
      type: list
      elements: str
      sample: [mode]
    source:
      description: Values of these fields at the source.
      type: dict
      sample: {mode: "0640"}
    dest:
      description: Values of these fields at the destination.
      type: dict
      sample: {mode: "0600"}
    unstable:
      description: Whether the entry changed at the source after the comparison began.
      type: bool
      sample: false
unstable:
  description: Number of differing entries that changed at the source after the comparison began.
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
  description: Totals on O(src_host).
  returned: always
  type: dict
  contains: &totals
    entries:
      description: Number of entries of all types.
      type: int
      sample: 54344
    types:
      description: Number of entries of each type, by the letters of C(find -type).
      type: dict
      sample: {d: 4022, f: 49100, l: 1222}
    bytes:
      description: Bytes in all files.
      type: int
      sample: 2684354560
    digest:
      description:
        - Digest of all that was compared. If it is the same on both hosts, so are the trees. It depends on O(checksum),
          O(fields) and the filter rules. Entries that only the destination has change it, too.
      type: str
      sample: 5e884898da28047151d0e56f8dc62927
      version_added: 0.3.0
dest:
  description: Totals on O(dest_host).
  returned: always
  type: dict
  contains: *totals
algorithm:
  description: Hash function that was used to compare content. Empty with O(checksum=false).
  returned: always
  type: str
  sample: blake2b
duration:
  description: Seconds from the start of the task to its end.
  returned: always
  type: float
  sample: 12.5
"""
