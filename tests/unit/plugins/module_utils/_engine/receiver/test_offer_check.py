# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A source may offer what the plan says, each entry once, where a walk would give it."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.offer_check import OfferCheck
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.sender.sender import gather
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import FrameError
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.messages import Shard
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._model.filters import Filters
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings
from hypothesis import given
from hypothesis import strategies as st

RULES = ["- /protected/", "- *.key", "+ /kept/", "- /kept/**", "H /hidden", "-! */"]


def entry(path: bytes, kind: str = "f") -> Entry:
    return Entry(path, kind, 0o755, 0, 0, 0, 1, 2, 3, 4, 1, 0, 0)


def offers(*words: str) -> list[Entry]:
    """Return entries by their paths, those that end in a slash being directories; the root comes first."""
    below = [entry(word.rstrip("/").encode(), "d" if word.endswith("/") else "f") for word in words]
    return [entry(b"", "d"), *below]


def check(entries: list[Entry], **changes: object) -> None:
    OfferCheck(settings("stream", **changes)).check(Shard(1, entries))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["a", "a"], "'a' arrived twice, or out of order"),
        (["b", "a"], "'a' arrived twice, or out of order"),
        (["a/", "a/x", "b", "a/y"], "'a/y' arrived, and not behind its directory"),
        (["a/", "a/", "a/x"], "'a' arrived twice"),
        (["a/x"], "'a/x' arrived, and not behind its directory"),
        (["a", "a/x"], "'a/x' arrived, and not behind its directory"),
        (["a/", "a/b", "a/b/c"], "'a/b/c' arrived, and not behind its directory"),
        (["/".join("a" * 500_000)], "not behind its directory"),
    ],
)
def test_what_no_walk_gives_is_refused(words, reason):
    with pytest.raises(FrameError, match=reason):
        check(offers(*words))


def test_the_root_comes_first_and_once():
    with pytest.raises(FrameError, match="not behind its directory"):
        check([entry(b"a")])
    with pytest.raises(FrameError, match="root arrived twice"):
        check([entry(b"", "d"), entry(b"", "d")])


@pytest.mark.parametrize(
    "words", [["protected/"], ["x.key"], ["kept/", "kept/x"], ["hidden"], ["protected/", "protected/file"]]
)
@pytest.mark.parametrize("rule", RULES[:-1])
def test_what_the_rules_exclude_is_refused(words, rule):
    filters = Filters.parse([rule])
    hidden = not all(filters.allows(word.rstrip("/").encode(), word.endswith("/")) for word in words)
    if not hidden:
        check(offers(*words), rules=[rule])
        return
    with pytest.raises(FrameError, match="which the filter rules exclude"):
        check(offers(*words), rules=[rule])


@pytest.mark.parametrize("entries", [offers("x"), [entry(b"x"), entry(b"x")], [entry(b"x", "d")], [entry(b"y")]])
def test_of_a_single_file_nothing_else_is_taken(entries):
    check([entry(b"x")], only="x")
    check([entry(b"x", "l")], only="x")
    with pytest.raises(FrameError, match="one file alone"):
        check(entries, only="x")


def test_what_comes_again_was_asked_for():
    offered = OfferCheck(settings("stream"))
    first, second = entry(b"a"), entry(b"b")
    offered.check(Shard(1, offers("a", "b")))
    offered.ask_again(first, 1)
    for wrong in (
        Shard(2, [second], 2),
        Shard(2, [first], 3),
        Shard(2, [first._replace(type="d")], 2),
        Shard(2, [first, first], 2),
    ):
        with pytest.raises(FrameError, match="was not asked for"):
            offered.check(wrong)
        offered.ask_again(first, 1)
    offered.check(Shard(2, [first], 2))
    with pytest.raises(FrameError, match="was not asked for"):
        offered.check(Shard(3, [first], 3))


def test_directories_without_contents_need_one_file_system():
    shard = Shard(1, offers("mnt/"))
    shard.opaque = [1]
    with pytest.raises(FrameError, match="not one_file_system"):
        OfferCheck(settings("stream")).check(shard)
    offered = OfferCheck(settings("stream", one_file_system=True))
    offered.check(shard)
    with pytest.raises(FrameError, match="not behind its directory"):
        offered.check(Shard(2, [entry(b"mnt/x")]))


def test_of_a_tagged_directory_only_its_tags_are_taken():
    tags = {"exclude_if_present": [".nobackup"], "exclude_caches": True}
    shard = Shard(1, offers("skip/", "skip/.nobackup", "skip/CACHEDIR.TAG", "skip0/", "skip0/x"))
    shard.tagged = [1]
    with pytest.raises(FrameError, match="no exclude_if_present"):
        OfferCheck(settings("stream")).check(shard)
    OfferCheck(settings("stream", **tags)).check(shard)
    for words in (["skip/", "skip/x"], ["skip/", "skip/.nobackup/"], ["skip/", "skip/.nobackup", "skip/.nobackup"]):
        shard = Shard(1, offers(*words))
        shard.tagged = [1]
        with pytest.raises(FrameError, match="left out by a tag|arrived twice"):
            OfferCheck(settings("stream", **tags)).check(shard)


NAMES = st.sampled_from(["a", "b", "b.key", "protected", "kept", "hidden", "zz", "a.b", "A-", "é"])
TREES = st.recursive(st.none(), lambda below: st.dictionaries(NAMES, below, max_size=4), max_leaves=20)


@given(tree=st.dictionaries(NAMES, TREES, max_size=5), rules=st.lists(st.sampled_from(RULES), max_size=4))
def test_an_honest_source_is_never_refused(tmp_path_factory, tree, rules):
    root = tmp_path_factory.mktemp("tree")

    def make(folder, below):
        for name, inside in below.items():
            if inside is None:
                (folder / name).touch()
            else:
                (folder / name).mkdir()
                make(folder / name, inside)

    make(root, tree)
    found = walk(os.fsencode(root), filters=Filters.parse(rules), on_error=lambda path, error: pytest.fail(str(error)))
    offered = OfferCheck(settings("stream", rules=rules))
    for number, entries in enumerate(gather(found, max_entries=3), 1):
        offered.check(Shard(number, entries))
