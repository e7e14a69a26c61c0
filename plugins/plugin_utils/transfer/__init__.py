# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One transfer between two hosts, from the control node's side. In the order in which to read them:

* ``session``: the steps of a transfer, from the probe to the clean-up; ``transfer_hosts``: the questions to both hosts;
* ``options``, ``rules``, ``roots``, ``owners``: what a user asked for; ``rsync_trust``: when rsync must not run;
* ``probe``: what a host says of itself; ``remembered``: the same from the last run; ``methods``: how data is sent;
  ``plan``: all of it as one plan; ``credentials``: keys made for this transfer;
* ``attach``: the job of an earlier run; ``routes``: ways to connect, tried in turn; ``status``: what a job says of
  itself; ``watching``: until it ends; ``steps``: questions that several places ask;
* ``completion``: the end; ``verification``, ``repair``: the comparison afterwards, and what is sent again;
  ``rsync_fallback``: what is left to rsync; ``owner_census``: owners that differ;
* ``comparison``: two trees, each read by its own host; ``tree_comparison``: that as a task;
* ``result``, ``report``: what a task returns; ``diagnosis``: names of the slowest part, and a sentence on each;
  ``account``: the time and the disk of an end as its host says it; ``bottleneck``, ``tcp_limits``: why it was not
  faster; ``link_memory``: what was learnt of the line.

Imports ``hosts`` and ``common``.
"""
