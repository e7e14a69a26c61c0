# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every row and every file that the old host acknowledged is on the new one, and belongs to the same user by name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import testinfra

testinfra_hosts = ["ansible://database-debian13"]
REPORTS = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "migrate"


@pytest.fixture
def old():
    return testinfra.get_host("docker://database-debian12")


def report(job: str) -> dict:
    """Return what the role wrote of a job."""
    return json.loads((REPORTS / f"{job}.json").read_text())


def test_the_system_users_have_other_numbers(host, old):
    assert host.user("mysql").uid != old.user("mysql").uid
    assert host.user("deploy").uid != old.user("deploy").uid


def test_every_acknowledged_row_arrived(host, old):
    said = set(old.check_output("cat /var/log/rows.acknowledged").split())
    there = set(
        host.check_output("mariadb app -Ne \"select number from entries where host='database-debian12'\"").split()
    )
    assert len(said) > 50
    assert said - there == set()
    assert host.check_output("mariadb app -Ne 'check table entries extended'").split()[-1] == "OK"
    print(f"rows: {len(said)} acknowledged, {len(there)} arrived, {len(said - there)} lost")


def test_every_complete_upload_arrived(host, old):
    listed = [line.split() for line in old.check_output("cat /var/log/uploads/complete").splitlines()]
    wanted = {path: checksum for _number, path, checksum in listed}
    sums = host.check_output("find /srv/www/uploads -type f ! -name .part -exec sha256sum {} +").splitlines()
    found = {line.split("  ", 1)[1]: line.split("  ", 1)[0] for line in sums}
    assert len(wanted) > 50
    assert {path: checksum for path, checksum in wanted.items() if found.get(path) != checksum} == {}
    print(f"uploads: {len(wanted)} complete at the old host, none lost")


def test_the_new_host_took_over(host):
    assert (
        int(host.check_output("mariadb app -Ne \"select count(*) from entries where host='database-debian13'\"")) >= 5
    )
    assert host.service("nginx").is_running
    assert host.service("mariadb").is_running


def test_the_old_host_stands_still(old):
    for name in ("mariadb", "nginx", "rows", "uploads"):
        assert not old.service(name).is_running


@pytest.mark.parametrize(
    ("folder", "user"),
    [("/var/lib/mysql/app", "mysql"), ("/srv/www/static/a", "deploy"), ("/srv/www/uploads", "deploy")],
)
def test_owners_are_the_same_by_name(host, old, folder, user):
    for end in (host, old):
        assert set(end.check_output(f"find {folder} -printf '%u %g\\n' | sort -u").splitlines()) == {f"{user} {user}"}


def test_acls_name_the_same_users(host, old):
    command = "getfacl -p /srv/www/static/a"
    assert "user:mysql:r--" in host.check_output(command)
    assert host.check_output(command) == old.check_output(command)


def test_the_report_says_the_downtime():
    for job in ("site", "db"):
        written = report(job)
        assert written["switch"]["done"]
        (downtime,) = written["downtimes"]
        assert 0 < downtime["seconds"] < 600 and downtime["lasted"]
        print(f"{job}: downtime {downtime['lasted']}")


def test_nothing_is_left_behind(host, old):
    for end in (host, old):
        assert end.check_output("find / -xdev -name '.longhaul*' -not -path '/proc/*' 2>/dev/null || true") == ""
        assert end.check_output("ls /var/lib/longhaul 2>/dev/null || true") in ("", "leases\nrecords")
