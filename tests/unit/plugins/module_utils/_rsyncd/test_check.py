# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users write for the rsync daemon: what is taken, what is refused, and that each refusal says why."""

from __future__ import annotations

import re

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.check import (
    all_problems,
    daemon_values,
    doubts,
    may_write,
    module_values,
    plain_users,
    secret_problems,
    write_as_root,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.options import (
    OF_A_MODULE,
    OF_THE_DAEMON,
    OPTIONS,
)

GOOD = {"name": "data", "path": "/srv/data"}


def module(**changes) -> dict:
    return {**GOOD, **changes}


@pytest.mark.parametrize(
    "key, given, value",
    [
        ("read_only", True, True),
        ("read_only", "no", False),
        ("read_only", "True", True),
        ("read_only", "1", True),
        ("read_only", 0, False),
        ("read_only", "off", False),
        ("max_connections", "4", 4),
        ("max_connections", -1, -1),
        ("timeout", 600, 600),
        ("hosts_allow", "10.0.0.1, 10.1.0.0/16 fe80::1%eth0", ("10.0.0.1", "10.1.0.0/16", "fe80::1%eth0")),
        ("hosts_allow", ["*.example.com", "@group"], ("*.example.com", "@group")),
        ("hosts_deny", "*", ("*",)),
        ("hosts_allow", "10.0.0.0/255.0.0.0", ("10.0.0.0/255.0.0.0",)),
        ("hosts_allow", ["fe80::/ffff:ffff:ffff:ffff::"], ("fe80::/ffff:ffff:ffff:ffff::",)),
        ("auth_users", ["alice:rw", "@some group:ro"], ("alice:rw", "@some group:ro")),
        ("auth_users", ", joe:deny, @Some Group:deny", ("joe:deny", "@Some Group:deny")),
        ("gid", 0, ("0",)),
        ("uid", 1000, "1000"),
        ("exclude", ["*.tmp", "- /foo"], ("*.tmp", "- /foo")),
        ("comment", "nightly # backup", "nightly # backup"),
        ("comment", "", ""),
        ("path", "/srv/with some spaces", "/srv/with some spaces"),
        ("path", "/home/%RSYNC_USER_NAME%", "/home/%RSYNC_USER_NAME%"),
        ("path", "/srv/./inner", "/srv/./inner"),
        ("log_file", "", ""),
        ("syslog_facility", "local3", "local3"),
        ("auth_digest", "sha256", "sha256"),
        ("read_only", None, "unset"),
    ],
)
def test_values_that_are_taken(key, given, value):
    values, problems = module_values(module(**{key: given}))
    assert problems == []
    assert values.get(key, "unset") == value


@pytest.mark.parametrize(
    "key, given, words",
    [
        ("read_only", "no # x", "no boolean"),
        ("read_only", "", "no boolean"),
        ("read_only", [True], "no boolean"),
        ("max_connections", "abc", "no number"),
        ("max_connections", True, "no number"),
        ("max_connections", "4 # four", "no number"),
        ("timeout", -1, "not between"),
        ("timeout", 1.5, "no number"),
        ("path", "srv/data", "no absolute path"),
        ("path", "", "empty"),
        ("path", "/srv/data # the data", "holds a #"),
        ("path", "/srv/../etc", ".."),
        ("path", "/srv/data ", "space"),
        ("path", "/srv\nread only = no", "more than one line"),
        ("path", "/srv\\", "backslash"),
        ("path", ["/srv"], "no text"),
        ("path", True, "no text"),
        ("lock_file", "run/lock", "no absolute path"),
        ("uid", "some body", "one word"),
        ("hosts_allow", "10.0.0.999", "no address"),
        ("hosts_allow", "10.0.0.0/33", "no address"),
        ("hosts_allow", ["10.0.0.1 # me"], "holds a #"),
        ("hosts_allow", [], "empty"),
        ("hosts_allow", {"a": 1}, "no list"),
        ("hosts_allow", ["a\nb"], "more than one line"),
        ("auth_users", ["a,b"], "comma"),
        ("exclude", ["my file"], "space"),
        ("syslog_facility", "nope", "none of"),
        ("auth_digest", "crc", "none of"),
        ("log_file", "rsyncd.log", "no absolute path"),
        ("refuse_options", "# none", "holds a #"),
    ],
)
def test_values_that_are_refused(key, given, words):
    problems = all_problems([module(**{key: given})], {})
    assert len(problems) == 1, problems
    assert words in problems[0]
    assert problems[0].startswith(f"module data: {key}: ")


@pytest.mark.parametrize(
    "key, words",
    [
        ("readonly", "it is called read_only"),
        ("read-only", "it is called read_only"),
        ("read only", "it is called read_only"),
        ("ReadOnly", "it is called read_only"),
        ("pre-xfer exec", "it is called pre_xfer_exec"),
        ("port", "counts for the daemon as a whole"),
        ("pid_file", "counts for the daemon as a whole"),
        ("owner", "no option of rsyncd.conf"),
    ],
)
def test_unknown_options_are_named(key, words):
    (problem,) = all_problems([module(**{key: "x"})], {})
    assert words in problem


@pytest.mark.parametrize(
    "modules, words",
    [
        ([module(), module()], "there twice"),
        ([module(), module(name="DATA")], "takes data and DATA for one"),
        ([module(), module(name="da ta")], "for one"),
        ([module(name="a/b")], "slash"),
        ([module(name="a]b")], "bracket"),
        ([module(name="Global")], "[global]"),
        ([module(name=" data")], "spaces"),
        ([module(name="a  b")], "spaces"),
        ([module(name="#x")], "begins with #"),
        ([module(name="a\nb")], "line's end"),
        ([module(name="")], "no name"),
        ([{"path": "/x"}], "no name"),
        ([{"name": "x"}], "path is missing"),
        (["data"], "no module"),
        ([module(state="gone")], "present or absent"),
        ([module(path_mode="rwx")], "octal"),
        ([module(create_path="perhaps")], "create_path"),
        ([module(write_only=True)], "nobody could do anything"),
        ([module(auth_users=["a"])], "no passwords"),
        ([module(path="/etc", secrets_file="/etc/secrets", auth_users=["a"])], "holds the passwords"),
    ],
)
def test_modules_that_cannot_be_meant(modules, words):
    problems = all_problems(modules, {})
    assert any(words in problem for problem in problems), problems


def test_modules_that_can():
    modules = [module(), module(name="other"), {"name": "gone", "state": "absent"}]
    assert all_problems(modules, {"port": 873, "timeout": "600", "log_file": None}) == []


def test_a_user_needs_a_password_in_the_file_that_the_role_writes():
    modules = [module(auth_users=["alice:rw", "bob", "@group", "x*", "mallory:deny"])]
    (problem,) = all_problems(modules, {}, ["alice"], "/etc/s")
    assert "names bob, who has no password" in problem
    assert all_problems([dict(modules[0], secrets_file="/etc/other")], {}, ["alice"], "/etc/s") == []


def test_options_of_the_daemon():
    values, problems = daemon_values({"port": "8730", "address": "::1", "motd_file": "", "max_connections": 2})
    assert problems == []
    assert values == {"port": 8730, "address": "::1", "motd_file": "", "max_connections": 2}
    assert daemon_values({"path": "/srv"})[1]
    assert "not between" in daemon_values({"port": 70000})[1][0]


@pytest.mark.parametrize(
    "secrets, words",
    [
        ([{"name": "a:b", "password": "x"}], "colon"),
        ([{"name": "#a", "password": "x"}], "begins with #"),
        ([{"password": "x"}], "missing"),
        ([{"name": "a", "password": "geheim\nb:c"}], "more than one line"),
        ([{"name": "a", "password": ""}], "empty"),
        ([{"name": "a"}], "empty"),
        ([{"name": "a", "password": "x"}, {"name": "a", "password": "y"}], "two passwords"),
    ],
)
def test_secrets_that_a_file_cannot_hold(secrets, words):
    (problem,) = secret_problems(secrets)
    assert words in problem
    assert "geheim" not in problem


def test_secrets_that_it_can():
    assert secret_problems([{"name": "a", "password": "x:#y z"}, {"name": "@g", "password": 5}]) == []


@pytest.mark.parametrize(
    "changes, writable",
    [({}, False), ({"read_only": False}, True), ({"auth_users": ["a:rw"]}, True), ({"auth_users": ["a:ro"]}, False)],
)
def test_who_may_write(changes, writable):
    assert may_write(module_values(module(**changes))[0]) is writable


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"read_only": False}, "everybody"),
        ({"hosts_deny": ["bad.example.com"]}, "before 3.5.0 lets a host in"),
        ({"insecure_links": True}, "symlink"),
    ],
)
def test_doubts(changes, words):
    (doubt,) = doubts(module_values(module(**changes))[0])
    assert words in doubt


@pytest.mark.parametrize(
    ("allow", "who"),
    [
        (["172.18.0.0/16", "10.0.0.1"], "everybody in 172.18.0.0/16 may"),
        (["*"], "everybody in \\* may"),
        (["*.example.com", "fd00::/8"], r"everybody in \*\.example\.com, fd00::/8 may"),
        (["10.0.0.1"], None),
        (["10.0.0.1/32", "fd00::1", "backup.example.com"], None),
        (None, "everybody who reaches the port may"),
    ],
)
def test_a_network_that_may_write_as_root(allow, who):
    given = {"read_only": False, "uid": "root", **({"hosts_allow": allow} if allow else {})}
    said = write_as_root(module_values(module(**given))[0])
    assert bool(said) == bool(who)
    if who:
        assert re.match(f"{who} write as root. Set auth_users", said)
        (doubt,) = doubts(module_values(module(**given))[0])
        assert said in doubt or not allow
    for other in ({"read_only": True}, {"uid": "backup"}, {"auth_users": ["a"], "secrets_file": "/etc/s"}):
        assert not write_as_root(module_values(module(**{**given, **other}))[0])
    assert write_as_root(module_values(module(**{**given, "uid": 0}))[0]) == said


def test_no_doubts():
    assert doubts(module_values(module(read_only=False, hosts_allow=["10.0.0.1"]))[0]) == []


def test_the_first_rule_of_a_user_counts():
    assert plain_users({"auth_users": ("a:ro", "a:rw", "b:deny", "@c", "d?")}) == {"a": "ro"}


def test_the_table_is_that_of_the_manual():
    # rsyncd.conf(5) of 3.5.0 has 11 options of the daemon and 47 of modules.
    assert (len(OF_THE_DAEMON), len(OF_A_MODULE)) == (11, 47)
    assert OPTIONS["pre_xfer_exec"].name == "pre-xfer exec"
