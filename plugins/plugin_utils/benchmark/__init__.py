# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure a pair of hosts, compare the methods for it, and predict how long its transfers take.

* ``measurement``: what is measured and what is concluded, as plain data.
* ``abilities``: which methods a pair can run and may run; ``candidates``: how fast each is, derived from the measured
  parts; ``recommend``: the best one, and how long its transfers take.
* ``trial``: each method really runs; ``result_text``: the result as lines for a terminal;
  ``report_page``: results as a page for people.
* ``kept``: the last results of each pair on the control node.
* ``run``: all of it for one pair, from the request to the conclusion.
* ``measure``: runs the measurements on both hosts. ``answers``: parses what they say.

Imports ``report``, ``transfer``, ``hosts`` and ``common``.
"""
