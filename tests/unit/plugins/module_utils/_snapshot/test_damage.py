# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a check found damaged is never linked into a later snapshot, and a backup heals it from the source."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import check as checks
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.check_run import check
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.finish import finish
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.quarantine import accept
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    DAY,
    NOON,
    contents,
    rot,
    transfer,
)

ONE, TWO, THREE, FOUR = (names.name_of(NOON + day * DAY) for day in range(4))


def nightly_check(bench, **options):
    """Check as the module does; gives (why it failed, warnings, problems)."""
    nobody = Holders(lambda path: None, lambda path: None)
    done = do_action("check", (str(bench.repository), "web1", "data"), options, nobody)
    return done.failed, done.warnings, done.result["problems"]


def begun(bench):
    """Begin the next snapshot in check mode."""
    with bench.series() as series:
        return begin(series, "next", bench.now, check=True)


@pytest.fixture
def two(bench, monkeypatch):
    """Two snapshots that share all files; ``first`` and ``second`` are names of one file."""
    monkeypatch.setattr("time.time", lambda: bench.now)
    bench.write("a", b"a")
    bench.write("d/b", b"b")
    bench.write("first", b"linked")
    os.link(bench.source / "first", bench.source / "second")
    bench.backup()
    bench.backup()
    return bench


def test_a_damaged_file_is_healed_by_the_next_backup_and_told_for_good(two):
    rot(two.path(TWO, "data/a"))
    failed, _warnings, (problem,) = nightly_check(two)
    assert "'a' in" in failed and (problem["snapshots"], problem["known"]) == ([ONE, TWO], False)
    assert nightly_check(two)[0]  # while the newest one has it
    done = two.backup()
    assert done.facts.figures.healed == 1 and done.facts.figures.new_files == 1
    assert done.warnings[0].startswith(f"healed 1 file, in which a check of {TWO} had found damage")
    assert two.data(THREE) == contents(two.source)
    failed, (told,), (problem,) = nightly_check(two)
    assert failed == "" and problem["known"] and problem["intact_in"] == [THREE]
    assert f"'a' in {ONE}, {TWO}" in told and THREE in told
    again = two.backup()
    assert (again.facts.figures.healed, again.facts.figures.new_files, again.warnings) == (0, 0, [])
    assert nightly_check(two, check_level="structure")[:2] == ("", [told.replace(THREE, FOUR)])
    rot(two.path(ONE, "data/d/b"))
    assert "'d/b'" in nightly_check(two)[0]


def test_all_names_of_a_damaged_file_count(two):
    rot(two.path(TWO, "data/first"))
    with two.series() as series:
        check(series, "contents", two.now, (1, 2), [ONE])
        check(series, "contents", two.now, (1, 2), [ONE])
    checked = two.path(ONE, "checked.json")
    text = checked.read_text()
    assert '"first"' in text and '"second"' in text
    checked.write_text(text.replace('"second"', '"elsewhere"'))  # as if only the other one's turn had come
    assert not two.path(TWO, "checked.json").exists()
    assert begun(two).link_dest_exclude == ["first", "second"]
    two.backup()
    assert two.data(THREE) == contents(two.source) and begun(two).link_dest_exclude == []
    first, second = (two.path(THREE, "data", name) for name in ("first", "second"))
    assert first.samefile(second)


def test_what_is_known_stays_known_until_it_is_looked_at_again(two):
    rot(two.path(TWO, "data/a"))
    shares = [nightly_check(two, check_subset="1/5")[2] for _night in range(5)]
    assert any(shares)
    for level in ("structure", "files"):
        nightly_check(two, check_level=level)
        assert begun(two).link_dest_exclude == ["a"]
    assert nightly_check(two, check_level="files")[0]
    rot(two.path(TWO, "data/a"))  # the same bit again: a repair
    assert nightly_check(two) == ("", [], []) and begun(two).link_dest_exclude == []


def test_wrong_attributes_are_no_doubt_about_contents_and_a_written_file_is(two):
    two.path(TWO, "data/a").chmod(0o600)
    os.utime(two.path(TWO, "data/d/b"), (NOON, NOON))
    folder = os.stat(two.path(TWO, "data"))
    two.path(TWO, "data/stranger").write_bytes(b"x")
    two.path(ONE, "data/first").unlink()
    for name in (ONE, TWO):
        os.utime(two.path(name, "data"), ns=(folder.st_atime_ns, folder.st_mtime_ns))
    failed, _warnings, problems = nightly_check(two)
    assert failed and {one["path"]: one["kind"] for one in problems} == {
        "a": "differs",
        "d/b": "differs",
        "first": "missing",
        "stranger": "extra",
    }
    assert begun(two).link_dest_exclude == ["d/b", "stranger"]
    assert two.backup().facts.figures.healed == 1
    assert two.data(THREE) == contents(two.source)
    assert nightly_check(two)[0] == ""


def test_too_much_damage_puts_the_whole_snapshot_in_doubt(two, monkeypatch):
    monkeypatch.setattr(checks, "MAX_PROBLEMS", 1)
    for name in ("a", "d/b"):
        rot(two.path(TWO, "data", name))
    nightly_check(two)
    said = begun(two)
    assert (said.base, said.link_dest, said.link_dest_exclude) == (TWO, [], [])
    nightly_check(two, check_level="files")
    assert begun(two).link_dest == []
    done = two.backup()
    assert done.facts.figures.healed == 3 and two.data(THREE) == contents(two.source)
    assert nightly_check(two)[0] == "" and begun(two).link_dest != []


def test_a_snapshot_that_no_manifest_vouches_for_is_no_basis(two):
    manifest = two.path(TWO, "manifest")
    manifest.write_bytes(manifest.read_bytes()[:-1])
    rot(two.path(TWO, "data/d/b"))
    nightly_check(two)
    assert (begun(two).base, begun(two).link_dest_exclude) == (ONE, ["d/b"])
    two.path(ONE, "manifest").unlink()
    said = begun(two)
    assert (said.base, said.link_dest) == (TWO, [])
    two.backup()
    assert two.data(THREE) == contents(two.source)
    assert not two.path(THREE, "data/a").samefile(two.path(TWO, "data/a"))
    assert "its manifest cannot be used: it is missing" in nightly_check(two)[0]
    assert nightly_check(two)[0] == ""


def test_who_links_to_known_damage_is_told_and_does_not_hide_it(two):
    rot(two.path(TWO, "data/a"))
    nightly_check(two)
    done = two.backup(exclude=False)
    assert "1 file is one of" in done.warnings[0] and "link_dest_exclude" in done.warnings[0]
    assert done.facts.figures.healed == 0
    failed, _warnings, _problems = nightly_check(two, check_level="files")
    assert "'a'" in failed and THREE in failed
    two.backup()
    assert two.data(FOUR) == contents(two.source) and nightly_check(two)[0] == ""


def test_what_was_set_aside_keeps_what_is_known_of_it(two):
    for name in ("a", "d/b"):
        (two.source / name).unlink()
    aside = two.backup(shrink_limit=10).name
    assert aside.startswith("aside-")
    rot(two.path(aside, "data/first"))
    nightly_check(two)
    assert begun(two).link_dest_exclude == ["first", "second"]  # of the one before, by the file that they share
    with two.series() as series:
        accept(series, aside, two.now)
    assert begun(two).base == THREE and begun(two).link_dest_exclude == ["first", "second"]


def test_damage_that_is_found_while_a_snapshot_is_unfinished_does_not_get_into_it(two):
    with two.series() as series:
        said = begin(series, "one", two.now)
        transfer(two.source, said.path, said.link_dest)
    rot(two.path(TWO, "data/a"))
    nightly_check(two)
    with two.series() as series:
        said = begin(series, "two", two.now)
        assert said.resumed and said.link_dest_exclude == ["a"]
        transfer(two.source, said.path, said.link_dest, said.link_dest_exclude)
        assert finish(series, "two", two.now).facts.figures.healed == 1
    assert two.data(THREE) == contents(two.source)


def test_a_file_that_the_source_does_not_have_any_more_is_not_healed(two):
    rot(two.path(TWO, "data/a"))
    nightly_check(two)
    (two.source / "a").unlink()
    done = two.backup()
    assert done.facts.figures.healed == 0 and done.warnings == []
    failed, (told,), _problems = nightly_check(two)
    assert failed == "" and f"'a' in {ONE}, {TWO}" in told
    for name in (ONE, TWO):  # the documented way by hand
        os.rename(two.path(name), two.path(f".removing-{name}"))
    assert nightly_check(two) == ("", [], [])
