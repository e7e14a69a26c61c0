# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked for is completed from the jobs, goes to the right place, and is refused where it could not be meant."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.request import complete_request
from ansible_collections.longhaul.fleet.tests.unit.plugins.plugin_utils.jobs.restore.options import make_options

VAULT = {"host": "vault", "path": "/srv/backup"}
JOBS = [
    {"name": "data", "hosts": "web", "src": "/srv/data/", "repository": VAULT},
    {"name": "etc", "host": "web1", "src": ["/etc"], "repository": VAULT},
    {"name": "db", "hosts": ["db1"], "src": ["/var/lib/db", "/srv/dumps"], "repository": VAULT},
]
GROUPS = {"all": ["web1", "web2", "db1", "vault"], "web": ["web1", "web2"]}


def ask(jobs=None, **given):
    return complete_request(make_options(**given), JOBS if jobs is None else jobs, GROUPS)


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"client": "web1", "job": "data"}, ("web1", "data", "", "web1", "/srv/data")),
        ({"client": "web2"}, ("web2", "data", "", "web2", "/srv/data")),
        ({"job": "etc", "path": "ssh/sshd_config"}, ("web1", "etc", "ssh/sshd_config", "web1", "/etc/ssh/sshd_config")),
        ({"job": "etc", "path": "/etc/ssh/"}, ("web1", "etc", "ssh", "web1", "/etc/ssh")),
        ({"job": "etc", "path": "/"}, ("web1", "etc", "", "web1", "/etc")),
        ({"job": "etc", "path": "./ssh//keys"}, ("web1", "etc", "ssh/keys", "web1", "/etc/ssh/keys")),
        ({"job": "etc", "path": "a\\#012b"}, ("web1", "etc", "a\nb", "web1", "/etc/a\nb")),  # as a search shows it
        ({"job": "etc", "path": "."}, ("web1", "etc", "", "web1", "/etc")),
        ({"client": "web1", "job": "data", "to": "web2"}, ("web1", "data", "", "web2", "/srv/data")),
        ({"job": "db", "path": "dumps/new"}, ("db1", "db", "dumps/new", "db1", "/srv/dumps/new")),
        ({"job": "db", "path": "/var/lib/db/x"}, ("db1", "db", "db/x", "db1", "/var/lib/db/x")),
        ({"job": "db", "dest": "/tmp/x"}, ("db1", "db", "", "db1", "")),
    ],
)
def test_a_request_is_completed(given, expected):
    found = ask(**given)
    assert (found.client, found.job, found.path, found.to, found.origin) == expected
    assert {"host": found.repository_host, "path": found.repository} == VAULT


def test_without_jobs_all_must_be_said():
    found = ask([], repository=VAULT, client="gone", job="data", to="web1", dest="/srv/back", path="a")
    assert found.client == "gone" and found.origin == ""


@pytest.mark.parametrize(
    "given, jobs, words",
    [
        ({}, JOBS, ["restore_from: db1, web1, web2"]),
        ({"client": "web1"}, JOBS, ["restore_job: data, etc"]),
        ({"job": "data"}, JOBS, ["restore_from: web1, web2"]),
        ({"client": "web1", "job": "dta"}, JOBS, ["no job dta of web1", "data of web1", "etc of web1"]),
        ({"client": "web1", "job": "data"}, [], ["restore_repository"]),
        ({"client": "web1", "job": "data", "repository": "/srv"}, [], ["restore_repository"]),
        (
            {"client": "web1", "job": "data", "repository": {"host": "valut", "path": "/b"}},
            JOBS,
            ["valut is not in the"],
        ),
        ({"client": "web1", "job": "data", "repository": VAULT}, [], ["restore_dest"]),
        ({"client": "web1", "job": "data", "to": "web9"}, JOBS, ["restore_to web9"]),
        ({"client": "web1", "job": "data", "dest": "x"}, JOBS, ["restore_dest x is not an absolute"]),
        ({"client": "web1", "job": "data", "dest": "/srv/x/.."}, JOBS, ["restore_dest /srv/x/.. has '..' in it"]),
        ({"client": "web1", "job": "data", "delete": True}, JOBS, ["restore_over=true"]),
        (
            {"job": "etc", "transfer": {"bwlimt": "1M", "timeout": "1h", "src": "/x"}},
            JOBS,
            [
                "restore_transfer.bwlimt is no option. Did you mean bwlimit?",
                "restore_transfer.timeout is 1h. Write a whole number",
                "restore_transfer.src is an option that a restore sets itself: set restore_path",
            ],
        ),
        (
            {"job": "etc", "transfer": {"method": "scp", "port_range": "2-1", "max_delete": -1}},
            JOBS,
            [
                "restore_transfer: trust is none, and with method scp",
                "restore_transfer: port_range is '2-1'",
                "restore_transfer: max_delete is -1: give 0 or more",
            ],
        ),
        ({"job": "etc", "path": "/srv/data"}, JOBS, ["only /etc was backed up"]),
        ({"job": "etc", "path": "/etcetera"}, JOBS, ["only /etc was backed up"]),
        ({"job": "etc", "path": "a/../../b"}, JOBS, ["'..'"]),
        ({"job": "db"}, JOBS, ["several trees", "db, dumps"]),
    ],
)
def test_what_is_not_clear_is_said(given, jobs, words):
    with pytest.raises(Refusal, match="^Nothing was restored, because the request is not valid:\n- ") as refused:
        ask(jobs, **given)
    assert [word for word in words if word not in str(refused.value)] == []
