# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which capabilities, files and folders the settings of a transfer leave to a process."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.confinement import capabilities, landlock
from ansible_collections.longhaul.fleet.plugins.module_utils._core.confinement.plan import plan_process
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, settings

DANGEROUS = (16, 17, 19, 12, 13, 22, 25, 39)  # modules, raw I/O, ptrace, the network, reboot, the clock, BPF
TIMES = ["times"]


def kept(side, part="drive", chroots=False, **changes):
    return capabilities.kept(settings("stream", **changes), side, part, chroots)


@pytest.mark.parametrize("side", ["source", "dest"])
@pytest.mark.parametrize("part", ["drive", "serve"])
def test_nobody_keeps_what_no_transfer_needs(side, part):
    found = kept(side, part, chroots=True)
    assert not found & set(DANGEROUS)
    assert {capabilities.DAC_OVERRIDE, capabilities.DAC_READ_SEARCH, capabilities.FOWNER} <= found


@pytest.mark.parametrize(
    ("capability", "side", "needs"),
    [
        (capabilities.MKNOD, "dest", "devices"),
        (capabilities.SETFCAP, "dest", "xattrs"),
        (capabilities.SYS_ADMIN, "dest", "xattrs"),  # trusted.*
        (capabilities.SYS_ADMIN, "source", "xattrs"),
    ],
)
def test_what_an_attribute_needs_is_kept_for_it_alone(capability, side, needs):
    assert capability in kept(side, preserve=ALL)
    assert capability in kept(side, preserve=[needs])
    assert capability not in kept(side, preserve=[word for word in ALL if word != needs])


def test_a_source_cannot_give_away_files_and_makes_none():
    writing = {capabilities.CHOWN, capabilities.FSETID, capabilities.MKNOD, capabilities.SETFCAP}
    assert not kept("source", preserve=ALL) & writing
    assert writing <= kept("dest", preserve=ALL)


def test_a_root_folder_is_changed_only_where_rsync_does_it():
    chroot = {capabilities.SYS_CHROOT, capabilities.SETUID, capabilities.SETGID}
    assert not kept("dest", "serve") & chroot
    assert chroot <= kept("dest", "serve", chroots=True)


def test_only_the_listening_side_has_ports():
    assert capabilities.NET_BIND_SERVICE in kept("dest", "serve")
    assert capabilities.NET_BIND_SERVICE not in kept("dest", "drive")


def test_the_mask_is_that_of_the_kernel():
    assert capabilities.mask(frozenset([0, 21, 33])) == 1 | 1 << 21 | 1 << 33


def files(side, part="drive", method="stream", made=(), **changes):
    context = Context(side, part, b"/data/root", settings(method, **changes), "/var/lib/longhaul/id/side")
    context.made = list(made)
    return plan_process(context).files


def rights(rules, place):
    """Add up what a rule set allows at a place, by the rules for it and what is above it."""
    found = 0
    while place:
        for where, allowed in rules.allowed:
            found |= allowed if where in (place, os.fsencode(place)) else 0
        place = os.path.dirname(place) if place != "/" else ""
    return found


def test_a_destination_writes_to_the_root_and_its_state_alone():
    rules = files("dest")
    assert not rules.reads
    assert rights(rules, "/data/root/a/b") == landlock.ALL_WRITE
    assert rights(rules, "/var/lib/longhaul/id/side/status.json") == landlock.ALL_WRITE & ~landlock.DEVICES
    assert rights(rules, "/var/lib/longhaul/id/other") == rights(rules, "/data") == rights(rules, "/etc/cron.d") == 0
    assert rights(rules, "/var/lib/longhaul/locks/x") == landlock.REMOVE_FILE


def test_devices_are_made_only_where_they_are_preserved():
    assert rights(files("dest", preserve=TIMES), "/data/root") == landlock.ALL_WRITE & ~landlock.DEVICES


def test_check_mode_writes_nothing_below_the_root():
    assert rights(files("dest", check=True), "/data/root") == 0


def test_nothing_restricts_what_links_from_an_older_tree():
    assert files("dest", link_dest=["/data/older"]) is None


def test_folders_that_were_made_can_be_taken_back():
    rules = files("dest", made=[b"/data/root", b"/data"])
    assert rights(rules, "/") == landlock.REMOVE_DIR
    assert rights(files("dest"), "/") == 0


def test_a_source_writes_nothing_and_reads_the_root_alone():
    rules = files("source")
    assert rights(rules, "/data/root/a") == landlock.READ
    assert rights(rules, "/data/other") == rights(rules, "/root/.ssh") == rights(rules, "/srv/backup") == 0
    assert rights(rules, "/usr/lib") == landlock.READ


def test_a_source_reads_elsewhere_with_options_of_rsync():
    rules = files("source", method="rsync", rsync_opts=["--copy-links"])
    assert not rules.reads and rights(rules, "/data/root") == 0


def test_only_a_daemon_has_files_in_memory():
    assert rights(files("dest", "serve", "rsyncd"), "/dev/shm/x") & landlock.MAKE_REG
    assert rights(files("dest", "drive", "rsyncd"), "/dev/shm/x") == 0


@pytest.mark.parametrize(
    ("folder", "readable"),
    [
        ("/usr/bin", "/usr"),
        ("/opt/tool/bin", "/opt"),
        ("/data/python/bin", "/data/python"),
        ("/srv/bin", "/srv/bin"),
        ("/root/bin", "/root/bin"),
        ("/home/alice/bin", "/home/alice/bin"),
        ("/home/alice/.local/bin", "/home/alice/.local"),
    ],
)
def test_programs_are_read_with_their_libraries_and_no_home(folder, readable):
    rules = landlock.reading(landlock.writing(None, "/state"), "/data/root", "/state", (), [folder])
    above = os.path.dirname(readable)
    assert rights(rules, f"{readable}/x") == landlock.READ
    assert above == "/" or rights(rules, f"{above}/x") == 0


def test_a_program_that_unpacks_makes_files_and_folders_only():
    where, rights = landlock.unpacking(7).allowed[0]
    assert where == 7
    assert not rights & (landlock.DEVICES | landlock.MAKE_SYM | landlock.MAKE_FIFO | landlock.MAKE_SOCK)


def test_the_second_version_knows_no_truncation():
    assert landlock.for_version(landlock.ALL_WRITE, 2) == landlock.ALL_WRITE & ~landlock.TRUNCATE
    assert landlock.for_version(landlock.ALL_WRITE, 3) == landlock.ALL_WRITE
