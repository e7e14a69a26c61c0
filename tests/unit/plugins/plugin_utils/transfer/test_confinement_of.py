# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a result says of the confinement on each host."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import confinement_of

ALL = ["no_new_privs", "capabilities", "landlock_write"]


def test_each_side_speaks_for_itself():
    found = confinement_of("source", Outcome(confinement=ALL), {"confinement": ALL[:1]})
    assert found == {"source": ALL, "dest": ALL[:1]}
    assert confinement_of("dest", Outcome(confinement=ALL), {}) == {"dest": ALL, "source": []}


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        ({"confined": "chroot"}, ["chroot"]),
        ({"confined": "confine_root"}, ["confine_root"]),
        ({"confined": ""}, []),
        ({"chroot": True}, ["chroot"]),  # a daemon for this transfer
        ({"chroot": False}, []),
    ],
)
def test_the_listening_sides_rsync_is_named(ready, expected):
    assert confinement_of("source", None, ready) == {"source": [], "dest": expected}


def test_words_that_mean_nothing_here_are_left_out():
    lies = ["\x1b[31mall is well", "no_new_privs", "no_new_privs", "chroot\n"]
    assert confinement_of("dest", Outcome(confinement=lies), {"confinement": lies, "confined": "{{ 1 }}"}) == {
        "dest": ["no_new_privs"],
        "source": ["no_new_privs"],
    }
