# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check mode says what a transfer then does, through everything from the options to the comparison."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.tests.soak import options
from ansible_collections.longhaul.fleet.tests.soak.case import Case
from ansible_collections.longhaul.fleet.tests.soak.judge import judge
from ansible_collections.longhaul.fleet.tests.soak.tree import FILE, FOLDER, Inode, Tree

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root")


@pytest.mark.often(2)
@needs_root
@pytest.mark.parametrize("preserve", [None, ("permissions",)])
@pytest.mark.parametrize(
    "row",
    [
        {"method": "stream"},
        {name: options.VALUES[name][1] for name in ("rsyncd_module", "rsyncd_user", "rsyncd_password")},
    ],
    ids=["stream", "module of a daemon"],
)
def test_a_destination_that_is_missing(row, preserve):
    source = Tree()
    source.add(b"", Inode(FOLDER, 0o755))
    source.add(b"file", Inode(FILE, size=5, data=((0, 5, 1),)))
    asked = {**options.DEFAULTS, "dest": "missing", "preserve": preserve, **row}
    options.mend(asked, ())
    verdict = judge(Case(asked, source, Tree(), Tree()))
    assert verdict.state == "same"
    assert [found for found in verdict.differences if found.aspect != "rerun"] == []
