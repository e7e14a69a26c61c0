# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter rules mean what they mean to rsync; the real program is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.filters import FilterError, Filters
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk
from hypothesis import given, settings
from hypothesis import strategies as st

needs_rsync = pytest.mark.skipif(not shutil.which("rsync"), reason="compares with the real rsync")

NAMES = ["a", "b", "ab", "a*", "b?x", "a[b]", "a\\b", "-c", "é", "x.tmp"]


def fail(path, error):
    raise AssertionError((path, error))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("filters") / "tree"
    for name in NAMES:
        (root / "dirs" / name).mkdir(parents=True)
        (root / f"{name}.d" / "a" / "b").mkdir(parents=True)
        for folder in (root, root / "dirs" / name, root / f"{name}.d" / "a", root / f"{name}.d" / "a" / "b"):
            (folder / name).touch()
            (folder / "x.tmp").touch()
    return root


def rsync_sends(root, rules, empty):
    argv = ["rsync", "-rln", "--8-bit-output", "--out-format=%n", *[f"--filter={rule}" for rule in rules]]
    run = subprocess.run([*argv, f"{root}/", f"{empty}/"], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    return {line.rstrip(b"/") for line in run.stdout.splitlines()} - {b".", b""}


def rsync_deletes(root, rules, empty):
    argv = ["rsync", "-rln", "--8-bit-output", "--delete", "--force", "--out-format=%n"]
    argv += [f"--filter={rule}" for rule in rules]
    run = subprocess.run([*argv, f"{empty}/", f"{root}/"], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    # A dry run names directories that would stay because of what is protected in them: only files are compared.
    lines = [line for line in run.stdout.splitlines() if not line.endswith(b"/")]
    return {line[len(b"deleting ") :] for line in lines if line.startswith(b"deleting ")}


def we_send(root, rules):
    filters = Filters.parse(rules)
    return {entry.path for entry in walk(os.fsencode(root), filters=filters, on_error=fail)} - {b""}


def we_delete(root, rules):
    """The files that would go if the source were empty."""
    filters = Filters.parse(rules)

    def gone(path, removing):
        for entry in os.scandir(os.path.join(os.fsencode(root), path)):
            below = os.path.join(path, entry.name)
            if not filters.allows(below, entry.is_dir(), "dest", removing=removing):
                continue
            if entry.is_dir():
                yield from gone(below, True)
            else:
                yield below

    return set(gone(b"", False))


CASES = [
    ["- *.tmp"],
    ["- /a"],
    ["- a"],
    ["- a/"],
    ["+ /a.d/***", "- *"],
    ["+ */", "+ x.tmp", "- *"],
    ["- a/b"],
    ["- /a/b"],
    ["- a/*"],
    ["- a/**"],
    ["- a/***"],
    ["- **/b"],
    ["- **b"],
    ["- /**/b"],
    ["- [a-c]"],
    ["- [!a-c]"],
    ["- [^a]*"],
    ["- [[:alpha:]]"],
    ["- [[:nope:]]"],
    ["- [a"],
    ["- a\\*"],
    ["- a\\b"],
    ["- a[[]b]"],
    ["- a[/]b"],
    ["- b\\?x"],
    ["-! */"],
    ["-,! *b*"],
    ["-_*.tmp"],
    ["exclude *.tmp"],
    ["exclude,! */", "include x.tmp"],
    ["hide a"],
    ["H a", "show b", "- b"],
    ["- a", "!"],
    ["- a", "clear", "- b"],
    ["-s a"],
    ["-r a"],
    ["protect a"],
    ["P a", "R b", "risk ab"],
    ["-p x.tmp"],
    ["P,p x.tmp"],
    ["- é"],
    ["- ?"],
    ["- -c"],
    ["- /"],
    ["- //"],
    ["- ***"],
    ["- dirs/*/a"],
    ["- s/*/a"],
    ["- d*s/**a"],
    ["- irs/**"],
    ["- a**b"],
    ["- a.d/**/b"],
    ["- *a*b*"],
    ["- x.tmp "],
    ["-  x.tmp"],
]


@needs_rsync
@pytest.mark.often(18)
@pytest.mark.parametrize("rules", CASES, ids=str)
def test_rules_hide_and_protect_what_rsync_does(tree, tmp_path, rules):
    assert we_send(tree, rules) == rsync_sends(tree, rules, tmp_path)
    assert we_delete(tree, rules) == rsync_deletes(tree, rules, tmp_path)


parts = st.sampled_from(
    ["a", "b", "ab", "*", "**", "***", "?", "[ab]", "[!b]", "[a-b]*", "a*", "*.tmp", "*b*", "\\a", "a\\*"]
)
patterns = st.builds(
    lambda lead, middle, tail: lead + "/".join(middle) + tail,
    st.sampled_from(["", "", "/", "**/", "**"]),
    st.lists(parts, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", "/*", "/**", "/***", "*", "**"]),
)
kinds = st.sampled_from(["-", "+", "-!", "+!", "-s", "-r", "+s", "+r", "-p", "H", "S", "P", "R", "P!", "Pp"])
rule_lists = st.lists(st.builds("{} {}".format, kinds, patterns), min_size=1, max_size=4)


@needs_rsync
@pytest.mark.parametrize("examples", [12, pytest.param(200, marks=pytest.mark.long)])
def test_any_small_rule_list_means_what_it_means_to_rsync(tree, tmp_path, examples):
    @settings(max_examples=examples)
    @given(rules=rule_lists)
    def ask_rsync(rules):
        assert we_send(tree, rules) == rsync_sends(tree, rules, tmp_path)
        assert we_delete(tree, rules) == rsync_deletes(tree, rules, tmp_path)

    ask_rsync()


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (". /etc/rules", "merge files"),
        ("merge rules", "merge files"),
        (": .rsync-filter", "merge files"),
        ("dir-merge,n .x", "merge files"),
        ("-C", "CVS"),
        ("-x user.*", "xattrs"),
        ("*.tmp", "must begin with"),
        ("-*.tmp", "modifier"),
        ("-n x", "modifier"),
        ("Hs x", "modifier"),
        ("- ", "no pattern"),
        ("-", "no pattern"),
        ("", "not understood"),
        ("! x", "nothing may follow"),
        ("include", "no pattern"),
        ("excluded x", "not understood"),
        ("- a\0b", "NUL"),
        ("-/ /srv/x", "relative to src"),
    ],
)
def test_what_cannot_be_honoured_is_refused(rule, why):
    with pytest.raises(FilterError, match=why):
        Filters.parse([rule])


@needs_rsync
@pytest.mark.parametrize("rule", ["*.tmp", "-*.tmp", "-n x", "Hs x", "- ", "! x", "include", "excluded x"])
def test_rsync_refuses_them_too(tree, tmp_path, rule):
    argv = ["rsync", "-rn", f"--filter={rule}", f"{tree}/", f"{tmp_path}/"]
    assert subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode == 1


def test_a_pattern_with_many_stars_takes_no_longer_than_others():
    filters = Filters.parse(["- " + "a*" * 30 + "b", "- " + "**a" * 10 + "/x*y"])
    started = time.perf_counter()
    assert filters.allows(b"a" * 200, False)
    assert filters.allows(b"/".join([b"a" * 100] * 10), False)
    assert time.perf_counter() - started < 2


def test_names_are_bytes():
    filters = Filters.parse([os.fsdecode(b"- \xff*"), "- new\nline"])
    assert not filters.allows(b"d/\xff\xfe", False)
    assert not filters.allows(b"new\nline", True)
    assert filters.allows(b"\xfe", False)


def test_no_rules_allow_everything(tmp_path: Path):
    assert not Filters.parse([])
    assert Filters.parse([]).allows(b"anything", False)
