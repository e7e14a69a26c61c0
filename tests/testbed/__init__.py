# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts on this machine that Ansible reaches by ssh, and a network between them that tests may break.

Each host is a set of namespaces (network, mounts, processes, name) with an overlay of the machine's own root, so it has
the machine's programs and files, and what is changed there is gone with the host. Nothing of it needs a container
engine, a bridge or a firewall rule of the machine::

    machine ── lhN ──┐            namespace "hub"
                     mgmt bridge ── eth0 of each host   10.99.N.1, .2, …   (fd99:N::1, …)    Ansible's way in
                     data bridge ── eth1 of each host   10.99.N.129, …     (fd99:N:1::1, …)  longhaul_address

``lengthen`` puts a long line between the data addresses of the first two: TUN devices on both hosts, and a process of
the machine that passes packets between them with delay, loss, rate and queue as they were asked for.

The two networks are why a test can cut the wire between the hosts and still talk to both. All namespaces end with their
processes, and those end when the program that made the testbed ends, however it ends.
"""

from __future__ import annotations

from .bed import Testbed, why_not
from .line import Line
from .on_hosts import Listener, Process, TestbedError

__all__ = ["Line", "Listener", "Process", "Testbed", "TestbedError", "why_not"]
