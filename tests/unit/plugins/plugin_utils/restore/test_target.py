# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A restore goes to the right place, and is refused where it could spoil something."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.restore.request import complete_request
from ansible_collections.longhaul.fleet.plugins.plugin_utils.restore.target import find_target

VAULT = {"host": "vault", "path": "/srv/backup"}
ETC = [{"name": "etc", "host": "web1", "src": ["/etc"], "repository": VAULT}]
GROUPS = {"all": ["web1", "vault"]}
SNAPSHOT = {"name": "2026-11-21T173009Z", "path": "/srv/backup/web1/etc/2026-11-21T173009Z/data"}


def ask(jobs=None, **given):
    return complete_request(given, ETC if jobs is None else jobs, GROUPS)


@pytest.mark.parametrize(
    "given, kind, options, src, dest, occupies",
    [
        ({}, "directory", {}, "/", "/etc.restored-2026-11-21T173009Z", "/etc.restored-2026-11-21T173009Z"),
        ({}, "directory", {"over": True}, "/", "/etc", "/etc"),
        ({}, "directory", {"dest": "/tmp/x/"}, "/", "/tmp/x", "/tmp/x"),
        ({"path": "ssh"}, "directory", {"over": True}, "/ssh/", "/etc/ssh", "/etc/ssh"),
        (
            {"path": "ssh/key"},
            "file",
            {},
            "/ssh/key",
            "/etc/ssh/key.restored-2026-11-21T173009Z/",
            "/etc/ssh/key.restored-2026-11-21T173009Z/key",
        ),
        ({"path": "ssh/key"}, "file", {"over": True}, "/ssh/key", "/etc/ssh/", "/etc/ssh/key"),
        ({"path": "ssh/key"}, "file", {"dest": "/"}, "/ssh/key", "/", "/key"),
    ],
)
def test_where_it_goes(given, kind, options, src, dest, occupies):
    found = find_target(ask(job="etc", **given), SNAPSHOT, kind, **options)
    assert found["problems"] == []
    assert (found["src"], found["dest"], found["occupies"]) == (SNAPSHOT["path"] + src, dest, occupies)


def test_a_whole_system_goes_beside_too():
    jobs = [{"name": "all", "host": "web1", "src": "/", "repository": VAULT}]
    assert find_target(ask(jobs), SNAPSHOT, "directory")["dest"] == "/restored-2026-11-21T173009Z"
    assert find_target(ask(jobs, path="/etc"), SNAPSHOT, "directory", over=True)["dest"] == "/etc"
    unfinished = {**SNAPSHOT, "name": ".unfinished"}
    assert find_target(ask(job="etc"), unfinished, "directory")["dest"] == "/etc.restored-unfinished"


@pytest.mark.parametrize(
    "given, kind, options, words",
    [
        ({}, "other", {}, "symbolic link"),
        ({}, "file", {"over": True, "delete": True}, "restore_delete is for folders"),
        ({"to": "vault"}, "directory", {"dest": "/srv/backup/web1"}, "in each other"),
        ({"to": "vault"}, "directory", {"dest": "/srv/backup"}, "in each other"),
        ({"to": "vault"}, "directory", {"dest": "/srv"}, "in each other"),
    ],
)
def test_where_it_cannot_go(given, kind, options, words):
    (problem,) = find_target(ask(job="etc", path="ssh", **given), SNAPSHOT, kind, **options)["problems"]
    assert words in problem
