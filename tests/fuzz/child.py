# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fuzzer itself: ``child.py TARGET ARGUMENT ...``, with arguments of libFuzzer. It ends the process."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["ansible_collections.longhaul"]):
    from ansible_collections.longhaul.fleet.tests.fuzz import targets

if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    atheris.Setup([sys.argv[0], *arguments], targets.TARGETS[name].take)
    atheris.Fuzz()
