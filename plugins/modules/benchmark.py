#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: benchmark
short_description: Measure how fast one inventory host sends to another over ssh
version_added: 0.3.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Sends files that cannot be compressed from a temporary folder to another, with rsync over ssh and the ciphers that a plain
    ssh between the two hosts would offer at this moment. Both folders are removed in the end.
  - The first file has 8 MiB. Files of up to 64 and 512 MiB follow as long as each takes less than a quarter of O(seconds).
    The last one counts. Its time includes the start of ssh.
  - Needs rsync on both hosts.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.action
attributes:
  check_mode:
    support: none
    details:
      - In check mode the task is skipped.
  diff_mode:
    support: N/A
    details:
      - Nothing stays on the hosts.
  idempotent:
    support: N/A
    details:
      - Nothing stays on the hosts, and figures differ at every run.
options:
  src_host:
    description:
      - Inventory host that sends.
      - The default is the host of the task.
    type: str
  dest_host:
    description:
      - Inventory host that receives.
      - The default is the host of the task.
    type: str
  folder:
    description:
      - Absolute path of the directory for the temporary folders, on both hosts. If it is on a disk, the speed of the disk
        counts, too.
    type: str
    default: /var/tmp
  most_mib:
    description: The most that is sent at once, in MiB. It is also never more than a quarter of the free space.
    type: int
    default: 256
  mib:
    description: Send this number of MiB, once, to compare with an earlier measurement.
    type: int
  seconds:
    description: How long the measurement should take. It may take twice as long.
    type: int
    default: 10
seealso:
  - module: longhaul.fleet.transfer
  - module: longhaul.fleet.nic_path_info
"""

EXAMPLES = r"""
- name: Measure what a cipher costs between two hosts
  longhaul.fleet.benchmark:
    src_host: old.example.com
    dest_host: new.example.com
  register: measured
"""

RETURN = r"""
speed:
  description: Bytes a second.
  returned: success
  type: int
  sample: 214000000
mib:
  description: Size of the file that was measured, in MiB.
  returned: success
  type: int
  sample: 256
cipher:
  description: The cipher that ssh was told to prefer, V(?) if it was told none.
  returned: success
  type: str
  sample: aes128-gcm@openssh.com
"""
