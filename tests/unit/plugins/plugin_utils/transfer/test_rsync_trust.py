# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Method rsync between hosts that are not trusted, and with versions that have holes: what is refused beforehand."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.rsync_trust import parse_floor
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.transfer.test_plan import (
    PROGRAMS,
    end,
    plan,
)

IN_MEMORY, BY_PATH, LATER = "CVE-2024-12084", "CVE-2024-12087", "CVE-2026-53784"


def host(side, version=(3, 5, 0), holes=(), **more):
    """Return a host with this rsync and its holes."""
    programs = copy.deepcopy(PROGRAMS)
    programs["rsync"].update(version=list(version), holes=list(holes))
    return end(side, programs=programs, **more)


@pytest.mark.parametrize(
    ("given", "source", "dest"),
    [
        ({"connect": "push"}, {}, {}),
        ({"connect": "pull"}, {}, {}),
        ({"connect": "push", "delete": True, "max_delete": 9}, {}, {"version": (3, 4, 1)}),
        ({"connect": "push"}, {}, {"version": (3, 4, 1), "holes": [BY_PATH, LATER]}),  # in a chroot
        ({"connect": "push"}, {}, {"uid": 1000, "user": "mover"}),  # --confine-root
        ({"connect": "pull", "numeric_ids": False}, {}, {}),
        ({"connect": "push", "rsync_floor": "3.4"}, {"version": (3, 4, 0), "holes": [LATER]}, {}),
    ],
    ids=str,
)
def test_what_is_confined_and_mended_runs(given, source, dest):
    made = plan(host("source", **source), host("dest", **dest), method="rsync", trust="none", **given)
    assert (made.choice.method, made.settings["trust"]) == ("rsync", "none")
    assert not [text for text in made.warnings if "rsync" in text]


@pytest.mark.parametrize(
    ("given", "source", "dest", "words"),
    [
        ({"connect": "push", "exclude": ["*.tmp"]}, {}, {}, "rsync cannot be used on dest: .* the filter rules"),
        ({"connect": "pull", "exclude": ["*.tmp"]}, {}, {}, "rsync cannot be used on source: .* the filter rules"),
        (
            {"connect": "push"},
            {},
            {"uid": 7, "user": "mover", "version": (3, 4, 1)},
            "on dest: only root can change its root folder, and rsync 3.4.1 has no --confine-root",
        ),
        ({"connect": "pull", "rsync_opts": ["--copy-links"], "verify": "none"}, {}, {}, "on source: with --copy-links"),
        ({"connect": "push"}, {"holes": [LATER]}, {}, "rsync of source has a known hole.*Update it to 3.5.0"),
        ({"connect": "push"}, {}, {"holes": [IN_MEMORY]}, "rsync of dest has a known hole.*set rsync_floor: 3.5.0"),
        ({"connect": "pull"}, {"holes": [BY_PATH]}, {"holes": [BY_PATH]}, "rsync of dest has a known hole"),
        ({"connect": "push", "rsync_floor": "3.5.1"}, {"holes": [LATER]}, {}, "rsync of source has a known hole"),
    ],
    ids=str,
)
def test_what_is_not_is_refused_with_the_remedy(given, source, dest, words):
    with pytest.raises(Refusal, match=f"trust is none.*{words}") as refused:
        plan(host("source", **source), host("dest", **dest), method="rsync", trust="none", **given)
    assert "method stream" in str(refused.value)


def test_a_source_that_is_connected_to_sends_over_one_connection():
    made = plan(host("source"), host("dest"), method="rsync", trust="none", connect="pull", streams="4")
    assert made.settings["streams"] == 1
    assert "streams is 4, but with trust: none" in made.warnings[0]
    assert plan(host("source"), host("dest"), method="rsync", connect="pull", streams="4").settings["streams"] == 4


def test_hosts_that_are_trusted_get_a_warning_for_old_holes_alone():
    made = plan(host("source", holes=[LATER]), host("dest", (3, 2, 7), [IN_MEMORY, LATER]), method="rsync")
    (warning,) = made.warnings
    assert warning.startswith("rsync 3.2.7 on dest has known holes: a client that may read can run code")
    assert "set rsync_floor: 3.2.7" in warning and LATER not in warning
    ends = host("source"), host("dest", (3, 2, 7), [IN_MEMORY])
    assert plan(*ends, method="rsync", rsync_floor="3.2.7").warnings == ()
    assert plan(*ends).warnings == ()  # by stream


@pytest.mark.parametrize(("text", "floor"), [(None, None), ("3.4", (3, 4, 0)), ("3.2.7", (3, 2, 7))])
def test_a_floor_is_a_version(text, floor):
    assert parse_floor(text) == floor


@pytest.mark.parametrize("text", ["", "3", "3.4.1.2", "3.4.1-5+deb13u1", "new"])
def test_what_is_no_version_is_refused(text):
    with pytest.raises(Refusal, match="give a version of rsync such as 3.4.1"):
        parse_floor(text)
