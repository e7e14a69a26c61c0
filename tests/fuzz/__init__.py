# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Feed what reads from a peer with what a fuzzer finds by looking at which lines it reaches (atheris): ``make fuzz``.

``__main__`` is the command line. It runs ``child``, which is the fuzzer, and then ``coverage``, which runs the inputs
again that the fuzzer kept, and says which lines they reach. ``targets`` has what is fuzzed.
"""
