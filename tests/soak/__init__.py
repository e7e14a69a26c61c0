# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random trees, edits, options and kills, compared with the real rsync: the tests that run as long as one likes.

Reading order: ``tree`` (a tree as data), ``grow`` (random trees and edits), ``disk`` (trees as data to trees on disk),
``hosts`` (both ends of a transfer, each a process of this machine), ``options`` (values of every option of transfer)
and ``pairwise``, ``case`` (one scenario), ``reference`` (what the real rsync makes of it), ``judge`` and ``expected``
(what may differ, and why), ``differential`` (rounds), ``machine`` (stateful, with kills).
Nothing here is imported by the product.
"""
