# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tree went through the daemon of the role, whole."""

from __future__ import annotations

import pytest
import testinfra

testinfra_hosts = ["ansible://pair-debian13"]

LISTING = (
    "cd /srv/data && find . -printf '%p %y %m %U:%G %n %l %T@' -type f -printf ' %s' -printf '\\n' | LC_ALL=C sort | "
    "sed 's/\\(^[^ ]* d .* \\)[0-9]* \\( .*\\)/\\1\\2/'"
)
ATTRIBUTES = "cd /srv/data && getfattr -Rhd . | LC_ALL=C sort; getfacl -Rn . | LC_ALL=C sort"
CONTENTS = "cd /srv/data && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum"


@pytest.fixture
def old():
    return testinfra.get_host("docker://pair-debian12")


@pytest.mark.parametrize("command", [LISTING, ATTRIBUTES, CONTENTS], ids=["entries", "attributes", "contents"])
def test_both_trees_are_the_same(host, old, command):
    there, here = old.check_output(command), host.check_output(command)
    assert there.count("\n") > 10 or "user.colour" in there
    assert there == here


def test_symlinks_and_devices_are_what_they_were(host):
    assert host.check_output("readlink /srv/data/absolute") == "/etc/hostname"
    assert host.check_output("readlink /srv/data/outside") == "../outside"
    assert host.check_output("stat -c '%F %t,%T' /srv/data/null") == "character special file 1,3"
    assert host.check_output("stat -c %i '/srv/data/a/1/file 1' /srv/data/b/linked | uniq | wc -l") == "1"


def test_it_went_through_the_daemon(host):
    log = host.file("/var/log/rsyncd.log").content_string
    assert "rsync allowed access on module migrate" in log
    assert "rsync to migrate/data" in log


def test_the_job_was_switched_over_once(host, old):
    assert old.file("/srv/stopped").exists
    assert host.file("/srv/started").exists


def test_nothing_is_left_behind(host, old):
    for end in (host, old):
        left = "find / -xdev -name '.longhaul*' -not -path '/proc/*' -exec ls -laR {} + 2>/dev/null || true"
        assert end.check_output(left) == ""
        # The migration keeps a record of each job at its destination, for good, and who had it last, for a month.
        assert end.check_output("ls /var/lib/longhaul 2>/dev/null || true") in ("", "leases\nrecords")
    assert len(host.check_output("ls /var/lib/longhaul/records").split()) == 1


def test_the_password_is_in_no_log(host, old):
    for end in (host, old):
        found = end.run("grep -rl only-for-the-move /var/log /root /tmp /run 2>/dev/null")
        assert found.stdout == ""
