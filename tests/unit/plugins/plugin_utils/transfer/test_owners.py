# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option owner_map in numbers, and what is said where two hosts do not mean the same owners."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer import owners

HOSTS = {"source": "old1", "dest": "new1"}
KNOWN = {
    "source": {"users": {"mysql": 103, "alice": 1001, "ghost": None}, "groups": {"web": 1004}},
    "dest": {"users": {"mysql": 101, "deploy": 1003, "nobody-there": None}, "groups": {"www": 33}},
}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("1003", "deploy", "text of digits"),
        ("alice", "1003", "text of digits"),
        ("alice", "-5", "text of digits"),
        (-1, "deploy", "from 0 to 4294967294"),
        ("alice", 4294967295, "from 0 to 4294967294"),
        (True, "deploy", "is True"),
        ("alice", False, "is False"),
        ("alice", None, "is None"),
        ("alice", 1.5, "is 1.5"),
        ("alice", ["deploy"], "deploy"),
        ("", "deploy", "is empty"),
        ("alice", " ", "is empty"),
    ],
)
@pytest.mark.parametrize("kind", ["users", "groups"])
def test_refused(kind, key, value, words):
    with pytest.raises(Refusal, match=words) as refused:
        owners.check_owner_map({kind: {key: value}})
    assert f"owner_map.{kind}" in str(refused.value)


@pytest.mark.parametrize(
    "good", [None, {}, {"users": None}, {"users": {"a": "b", 0: 5, 7: "c"}, "groups": {5: 4294967294}}]
)
def test_accepted(good):
    owners.check_owner_map(good)


def test_names_go_to_the_host_that_has_them():
    given = {"users": {"mysql": "deploy", 5: "x", "y": 6}, "groups": {}}
    assert owners.names_to_look_up(given, "source") == {"users": ["mysql", "y"], "groups": []}
    assert owners.names_to_look_up(given, "dest") == {"users": ["deploy", "x"], "groups": []}
    assert owners.names_to_look_up(None, "source") == {}


def test_the_table():
    given = {"users": {"mysql": "mysql", 1003: "deploy", "alice": 7, "ghost": 8}, "groups": {"web": "www"}}
    table, warnings = owners.owner_table(given, KNOWN, HOSTS)
    assert table == {"users": [[103, 101], [1001, 7], [1003, 1003]], "groups": [[1004, 33]]}
    assert warnings == ["owner_map.users names ghost, and old1 has no such user: nothing there belongs to it"]
    assert owners.owner_table(None, {}, HOSTS) == ({}, [])


def test_a_name_that_the_destination_lacks_is_refused():
    with pytest.raises(Refusal, match=r"makes alice of old1 the user nobody-there, and new1 has no such user"):
        owners.owner_table({"users": {"alice": "nobody-there"}}, KNOWN, HOSTS)


def test_two_keys_for_one_user_are_refused():
    with pytest.raises(Refusal, match=r"names mysql and 103, which are the same user on old1 \(number 103\)"):
        owners.owner_table({"users": {"mysql": 1, 103: 2}}, KNOWN, HOSTS)


def test_a_map_of_what_is_not_kept_is_refused():
    owners.refuse_lost_map({"users": {1: 2}, "groups": {}}, ("owner",))
    with pytest.raises(Refusal, match="does not keep the group of anything"):
        owners.refuse_lost_map({"users": {1: 2}, "groups": {3: 4}}, ("owner", "acls"))


def test_tables_are_merged():
    assert owners.merged({"users": [[1, 2]]}, {"users": [[1, 5], [0, 3]], "groups": []}) == {"users": [[0, 3], [1, 2]]}


def one(**given):
    found = {"type": "user", "id": 103, "name": "mysql", "name_there": "", "id_there": 101, "numeric_ids": True}
    return dict(found, entries=214, path="db") | given


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({}, "uid 103 is mysql on old1 and nobody on new1, where mysql is 101: 214 entries"),
        ({"name_there": "bob"}, "uid 103 is mysql on old1 and bob on new1, where mysql is 101: 214 entries"),
        (
            {"name_there": "nobody", "id_there": None, "entries": 1},
            "uid 103 is mysql on old1 and the user nobody on new1, where there is no mysql: 1 entry",
        ),
        ({"name": "", "name_there": "bob", "id_there": None}, "uid 103 is nobody on old1 and bob on new1: 214 entries"),
        (
            {"type": "group", "id": 1004, "name": "webteam", "id_there": 1020},
            "gid 1004 is webteam on old1 and no group on new1, where webteam is 1020: 214 entries",
        ),
        (
            {"name": "carol", "id": 1003, "id_there": None, "numeric_ids": False, "entries": 65},
            "carol does not exist on new1: 65 entries keep the number 1003",
        ),
        (
            {
                "name": "carol",
                "id_there": None,
                "numeric_ids": False,
                "entries": 1,
                "name_there": "eve",
                "type": "group",
            },
            "the group carol does not exist on new1: 1 entry keeps the number 103, which is eve there",
        ),
    ],
)
def test_the_words(found, text):
    assert owners.owner_text(one(**found), "old1", "new1") == text


def test_a_transfer_warns_once_of_what_goes_to_somebody_else():
    harmless = one(name="carol", id_there=None)
    assert owners.owner_warnings([harmless], [], "old1", "new1") == []
    (said,) = owners.owner_warnings([one(id=n) for n in range(12)] + [harmless], ["/jail has a passwd"], "old1", "new1")
    assert said.count("is mysql on old1") == 10 and "; and 2 more (see owner_mismatches)" in said
    assert "/jail has a passwd" in said and said.endswith("keep their numbers (numeric_ids: true)")
    result = {"warnings": ["before"]}
    owners.add_owners(result, [one()], ["hint"], ("old1", "new1"))
    assert len(result["warnings"]) == 2 and result["owner_mismatches"] == [one()] and result["owner_hints"] == ["hint"]
    result = {}
    owners.add_owners(result, [one()], [], ("old1", "new1"), warn=False)
    assert result == {"owner_mismatches": [one()], "owner_hints": []}
    result = {}
    owners.add_owners(result, [], ["hint"], ("old1", "new1"))
    assert result == {"owner_mismatches": [], "owner_hints": []}
