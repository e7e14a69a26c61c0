# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.limits import (
    LimitError,
    Limits,
    Pair,
    Resource,
    check_pairs,
    links_of,
    on_disks,
    parse_limits,
)


def test_what_is_not_named_has_its_default():
    assert parse_limits({}, "limits") == Limits(50, 2, 1, {})
    assert parse_limits({"per_source": None, "running": "7"}, "limits") == Limits(7, 2, 1, {})


def test_links_have_limits_of_their_own():
    assert parse_limits({"links": {"site-b": {"running": 10}}}, "limits").links == {"site-b": 10}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"running": 0}, "running is 0, so that no job could ever start"),
        ({"per_dest": -1}, "per_dest is -1"),
        ({"running": "many"}, "running is many"),
        ({"per_host": 3}, "no key per_host"),
        ({"links": {"site-b": 10}}, "link site-b must have the key running"),
        ({"links": {"site-b": {"running": 0}}}, "link site-b is 0"),
        ({"links": ["site-b"]}, "links is not a dictionary"),
        ("50", "not a dictionary"),
    ],
)
def test_limits_that_make_no_sense_are_refused(value, said):
    with pytest.raises(LimitError, match=said):
        parse_limits(value, "migrate_limits")


def test_a_job_names_its_link_or_its_hosts_do():
    hosts = [{"longhaul_link": "site-b"}, {"longhaul_link": "site-a"}]
    assert links_of({}, hosts) == ("site-a", "site-b")
    assert links_of({}, [hosts[0], hosts[0], {}]) == ("site-b",)
    assert links_of({"link": "sea"}, hosts) == ("sea",)


def test_a_link_without_a_limit_is_refused_with_what_to_add():
    pairs = {"data": Pair("a", "b", ("site-b",))}
    check_pairs(pairs, Limits(links={"site-b": 1}), "migrate_limits")
    with pytest.raises(LimitError, match=r"job data uses the link site-b.*there are no links.*site-b: \{running: 10\}"):
        check_pairs(pairs, Limits(), "migrate_limits")
    with pytest.raises(LimitError, match="there is only site-c"):
        check_pairs(pairs, Limits(links={"site-c": 1}), "migrate_limits")


@pytest.mark.parametrize(
    ("given", "disks", "hosts", "found"),
    [
        ({}, {"source": ["x"], "dest": ["y", "z"]}, [], ["dest disk b y", "dest disk b z", "source disk a x"]),
        ({}, {}, [], ["dest disk b ", "source disk a "]),  # what is not known may be the same
        ({"per_dest": 1}, {"source": ["sda"], "dest": ["sdb"]}, ["dest b"], ["source disk a sda"]),
        ({"per_dest": 1, "per_source": 3}, {"source": ["sda"], "dest": ["sdb"]}, ["dest b", "source a"], []),
        ({"running": 9}, {"dest": ["sdb", "sdb"]}, [], ["dest disk b sdb", "source disk a "]),
    ],
)  # fmt: skip
def test_in_a_cutover_disks_count_in_place_of_hosts_unless_the_user_limits_these(given, disks, hosts, found):
    limits = parse_limits(given, "limits")
    pair = on_disks(Pair("a", "b", ("site",)), disks, limits)
    resources = sorted(f"{one.kind} {one.name}" for one in pair.resources)
    assert resources == sorted(["all ", "link site", *hosts, *found])


def test_a_disk_has_the_limit_of_its_host_and_a_host_cannot_name_thousands():
    limits = parse_limits({}, "limits")
    assert [limits.of(Resource(f"{side} disk", "x")) for side in ("source", "dest")] == [2, 1]
    assert len(on_disks(Pair("a", "b"), {"dest": [str(number) for number in range(9999)]}, limits).disks) == 65
