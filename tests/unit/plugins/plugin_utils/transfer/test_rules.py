# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules that someone who comes from rsync writes, and that would mean something else here."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.refusal import Refusal
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.roots import Roots
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.rules import (
    filter_rules,
    refuse_misread_rules,
    refuse_old_prefixes,
)

TREE = Roots("/srv/data", "/d/data", {})
FILE = Roots("/srv", "/d", {}, only="data")


def test_rules_keep_their_order():
    given = {"filter": ["P /keep"], "include": ["*.c"], "exclude": ["*"]}
    assert filter_rules(given) == ["P /keep", "+ *.c", "- *"]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("- /data/cache", "write /cache instead of /data/cache"),
        ("- /data/cache/", "write /cache/ instead of /data/cache/"),
        ("+ /data/a/***", "write /a/*** instead of /data/a/***"),
        ("P /data/own", "write /own instead"),
        ("exclude /data/cache", "write /cache instead"),
        ("-,s! /data/cache", "write /cache instead"),
        ("+ /data", "leave it out"),
        ("+ /data/", "leave it out"),
        ("+ /data/***", "leave it out"),
        ("- /data*/x", None),
        ("- /database", None),
        ("- data/cache", None),
        ("- /cache", None),
        ("- /x/data/cache", None),
        ("!", None),
    ],
)
def test_a_rule_that_begins_with_the_name_of_src(rule, words):
    refuse_misread_rules("/srv/data/", "/d/data", TREE, [rule])  # with a slash rsync means the same
    refuse_misread_rules("/srv/other/.", "/d", TREE, [rule])
    if words is None:
        refuse_misread_rules("/srv/data", "/d", TREE, ["- *.tmp", rule])
        return
    with pytest.raises(Refusal) as refusal:
        refuse_misread_rules("/srv/data", "/d/", TREE, ["- *.tmp", rule])
    assert words in str(refusal.value) and repr(rule) in str(refusal.value)
    assert "set src: /srv/data/ and dest: /d/data," in str(refusal.value)


@pytest.mark.parametrize("rule", ["- data", "- /data", "- d*", "- *", "H data", "hide,! other"])
def test_rules_that_leave_out_a_single_file(rule):
    with pytest.raises(Refusal, match="the rules .* leave out src /srv/data,"):
        refuse_misread_rules("/srv/data", "/d/", FILE, [rule])


@pytest.mark.parametrize("rules", [[], ["- other"], ["+ data", "- *"], ["P data"], ["- data/"], ["- /data/x"]])
def test_rules_that_leave_a_single_file_in(rules):
    refuse_misread_rules("/srv/data", "/d/", FILE, rules)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"exclude": ["*.o", "+ a"]}, ["exclude has '+ a'", "'- + a' into filter"]),
        ({"exclude": ["- a"]}, ["exclude has '- a'"]),
        ({"include": ["- a"]}, ["include has '- a'", "'+ - a' into filter"]),
        ({"exclude": ["!"]}, ["exclude has '!'", "'- !' into filter"]),
    ],
)
def test_prefixes_in_lists_of_patterns(given, words):
    with pytest.raises(Refusal) as refusal:
        refuse_old_prefixes({"include": None, "exclude": None, **given})
    assert all(word in str(refusal.value) for word in words)


def test_what_only_looks_like_a_prefix_is_a_pattern():
    refuse_old_prefixes({"include": ["+a", "-"], "exclude": ["[+] a", "!a", "a - b", "+", " - a"]})
