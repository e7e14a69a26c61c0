#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: benchmark
short_description: Measure a pair of hosts, compare the methods for it, and predict how long a transfer takes
version_added: 0.3.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Measures the line between two hosts, the disk of each, and their processors, within O(seconds) and O(bytes), at idle
    priority. From that it derives how fast each method of M(longhaul.fleet.transfer) can be between these two hosts, which
    one to use, and how long the first copy, a pass without changes and a comparison of O(src) and O(dest) take.
  - With O(methods=measured) each method that is allowed really runs, with made data.
  - The user's data stays where it is. Only made data is sent. Temporary files are removed in the end.
  - Fails while a transfer or another benchmark runs on one of the hosts, since both would show false figures.
  - The last five results of a pair are kept on the control node, and the forecasts of the role
    P(longhaul.fleet.migrate#role) use one of the last 14 days.
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
  src:
    description:
      - Absolute path of the tree on O(src_host). It is counted, a part of it is read, and a sample of it tells how well it
        compresses.
      - Without O(src) and O(dest) only the line and the processors are measured, and nothing is predicted.
    type: str
  dest:
    description:
      - Absolute path of the directory on O(dest_host) that a transfer would write to. It need not exist. The disk is
        measured with temporary files on its file system, which take at most a tenth of the free space.
    type: str
  seconds:
    description:
      - Seconds for the measurement of a pair. At least 5.
      - Parts that do not fit are left out, and RV(measurement.gaps) says so. If a part takes longer than planned, for
        example on a slow disk, later ones take down to half of their time; so a busy pair may take longer.
    type: int
    default: 20
  bytes:
    description:
      - The most that a part of the measurement reads, writes or sends, for example V(1G). Units are V(K), V(M), V(G) and
        V(T), powers of 1024. At least V(32M).
    type: str
    default: 1G
  methods:
    description:
      - V(derived) derives the speed of each method from what is measured.
      - V(measured) also runs each method that is allowed, with files of up to 2 GiB that cannot be compressed and at most a
        quarter of the free space. That takes about three minutes. The file comes from C(/var/tmp) on O(src_host), and
        goes to a temporary folder beside O(dest).
    type: str
    choices: [derived, measured]
    default: derived
  encryption:
    description:
      - Whether the data of a transfer must be encrypted, as in M(longhaul.fleet.transfer). Methods without encryption are
        listed in any case, and recommended only with V(none).
    type: str
    choices: [auto, required, none]
    default: auto
  trust:
    description:
      - How far the two hosts are trusted, as in M(longhaul.fleet.transfer). With V(none) only the methods are recommended
        that run between hosts that do not trust each other.
    type: str
    choices: [full, none]
  rsync_floor:
    description: The oldest version of rsync that you accept, as in M(longhaul.fleet.transfer).
    type: str
  filter:
    description: Filter rules in rsync's syntax, as in M(longhaul.fleet.transfer). What they exclude does not count.
    type: list
    elements: str
  include:
    description: Patterns of entries that count even if a pattern in O(exclude) matches them.
    type: list
    elements: str
  exclude:
    description: Patterns of entries that do not count.
    type: list
    elements: str
  one_file_system:
    description: Do not enter other file systems that are mounted inside O(src).
    type: bool
    default: false
  connect:
    description:
      - Which of the two hosts opens the connection, as in M(longhaul.fleet.transfer).
    type: str
    choices: [auto, push, pull]
    default: auto
  port:
    description: Port at which the other host listens. By default a free one is taken.
    type: int
  port_range:
    description: Range of ports from which a free one is taken, for example V(50000-50100). For hosts behind a firewall.
    type: str
  keep:
    description: Whether the result is kept on the control node, and shown with those of other pairs in C(report.html).
    type: bool
    default: true
  folder:
    description:
      - Folder on the control node for the results.
      - By default C(longhaul-benchmark) in the folder that the variable C(longhaul_state_dir) names, or without that beside
        the inventory.
    type: path
seealso:
  - module: longhaul.fleet.transfer
  - module: longhaul.fleet.nic_path_info
"""

EXAMPLES = r"""
- name: Measure the line between two hosts and their processors
  longhaul.fleet.benchmark:
    src_host: old.example.com
    dest_host: new.example.com
  register: measured

- name: Find out how long a move will take
  longhaul.fleet.benchmark:
    src_host: old.example.com
    src: /srv/data/
    dest_host: new.example.com
    dest: /srv/data
    exclude: [cache/]
  register: measured

- name: Run every method that is allowed
  longhaul.fleet.benchmark:
    src_host: old.example.com
    src: /srv/data/
    dest_host: new.example.com
    dest: /srv/data
    encryption: none
    methods: measured
"""

RETURN = r"""
measurement:
  description: The parts that were measured. Rates are bytes a second, times are seconds, and 0 means that it was not measured.
  returned: success
  type: dict
  contains:
    source:
      description: The host that sends.
      type: str
      sample: old.example.com
    dest:
      description: The host that receives.
      type: str
      sample: new.example.com
    at:
      description: When it was measured, in seconds since 1970.
      type: float
    seconds:
      description: Seconds that the measurement took.
      type: float
      sample: 21.4
    bytes_sent:
      description: Bytes that went over the line.
      type: int
    execution:
      description: Seconds that Ansible takes to ask the slower host something. Each prediction includes some of these.
      type: float
      sample: 0.4
    is_one_machine:
      description: Whether both hosts are one machine, as containers are, so that they share its processors.
      type: bool
      sample: false
    link:
      description: >-
        The line: V(forth) and V(back) with the rates of C(one_stream), C(several_streams) (of C(streams) connections) and
        C(encrypted); C(connect) (which end could connect), C(round_trip), C(loss), C(path_mtu), C(window), C(congestion),
        C(interfaces) and C(bonds).
      type: dict
    disks:
      description: >-
        By side (V(source), V(dest)): rates of C(large) files, C(small) files, C(entries) and C(compared) contents, whether
        the C(kernel) counts the device, how C(busy) it was, and a C(note).
      type: dict
    processors:
      description: >-
        By side: C(cores), the C(load) by others, and what one core does with C(ciphers), C(hashes) and C(compression).
      type: dict
    tree:
      description: >-
        The tree: C(entries), C(files), C(bytes_apparent), C(bytes_on_disk), C(large_bytes) in files of at least 1 MiB,
        whether the count C(is_complete), and the C(ratio) by which a sample compresses.
      type: dict
    gaps:
      description: What could not be measured, and why.
      type: list
      elements: str
candidates:
  description: Every method and variant, also those that are not allowed.
  returned: success
  type: list
  elements: dict
  contains:
    method:
      description: The method, as in O(longhaul.fleet.transfer#module:method).
      type: str
      sample: stream
    variant:
      description: V(TLS) or V(plain) for V(stream), else the cipher of ssh.
      type: str
      sample: TLS
    plain:
      description: Top speed with data that cannot be compressed.
      type: float
      sample: 117000000.0
    compressed:
      description: Top speed with the data of this tree, compressed on the way. 0 if the method does not compress.
      type: float
    first_byte:
      description: Seconds until the first byte arrives.
      type: float
    processor:
      description: Cores that are used at top speed, by side.
      type: dict
    resumes:
      description: V(range) if an interrupted transfer resumes inside a file, V(file) if it resumes at a file.
      type: str
    encrypted:
      description: Whether the data is encrypted on its way.
      type: bool
    allowed:
      description: Whether both hosts can run it, and trust and encryption allow it.
      type: bool
    refused:
      description: The reason if it is not allowed.
      type: str
    derived:
      description: Whether the speed is derived. If not, the method itself ran.
      type: bool
    limited_by:
      description: >-
        The slowest part: V(source_disk), V(source_cpu), V(network), V(destination_cpu) or V(destination_disk).
      type: str
recommendation:
  description: The method to use, with values for the options of M(longhaul.fleet.transfer).
  returned: if a method is allowed and its speed is known
  type: dict
  contains:
    method:
      description: The method.
      type: str
      sample: stream
    variant:
      description: As in RV(candidates[].variant).
      type: str
    streams:
      description: The number of streams that carries most.
      type: int
      sample: 4
    compress:
      description: The value of O(longhaul.fleet.transfer#module:compress).
      type: str
      sample: auto
    connect:
      description: The value of O(longhaul.fleet.transfer#module:connect).
      type: str
      sample: push
    reason:
      description: One sentence, with numbers.
      type: str
    first_copy:
      description: The predicted C(seconds) of the whole task for the first copy, and the range, C(low) to C(high).
      type: dict
      sample: {seconds: 312.0, low: 250.0, high: 390.0}
    unchanged:
      description: The same for a pass that finds nothing to do.
      type: dict
    comparison:
      description: The same for a comparison of both trees by content.
      type: dict
bottleneck:
  description: The slowest part of the way for the recommended method, in one sentence.
  returned: success
  type: str
advice:
  description: What would help.
  returned: success
  type: str
src:
  description: The value of O(src).
  returned: success
  type: str
dest:
  description: The value of O(dest).
  returned: success
  type: str
kept:
  description: The file on the control node that has the last results of this pair, empty if it is not kept.
  returned: success
  type: str
"""
