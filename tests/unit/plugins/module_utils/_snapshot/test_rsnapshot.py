# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rsnapshot's tree is read as it is, becomes the first snapshots, and is not changed."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import names
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.adopt import adopt
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.check_run import check
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.rsnapshot import intervals
from ansible_collections.longhaul.fleet.plugins.module_utils._tree import xattr
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import DAY, NOON, contents


def stats(top):
    """Return what a change of any kind would change; the number of links and so the ctime of files may grow."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in ["", *folders, *files]:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            found[path] = (
                status.st_ino,
                status.st_mode,
                status.st_uid,
                status.st_gid,
                status.st_size,
                status.st_mtime_ns,
            )
    return found


@pytest.fixture
def old(bench):
    """hourly.0, hourly.1 and daily.0 of two backup points, the older the higher; a file is linked through all."""
    root = bench.repository / "rsnapshot"
    for age, name in enumerate(("hourly.0", "hourly.1", "daily.0")):
        tree = root / name / "web1" / "srv"
        (tree / "dir").mkdir(parents=True)
        (root / name / "web2").mkdir()
        (tree / "file").write_bytes(b"%d" % age)
        os.symlink("file", tree / "link")
        if age:
            os.link(root / "hourly.0/web1/srv/dir/shared", tree / "dir/shared")
        else:
            (tree / "dir/shared").write_bytes(b"shared")
            os.link(tree / "dir/shared", tree / "twin")
        (tree / "dir").chmod(0o750)
        os.utime(tree / "dir", (NOON - 99 * DAY, NOON - 99 * DAY))
        os.utime(root / name, (NOON - age * 3600, NOON - age * 3600))
    (root / "_delete.123").mkdir()
    (root / "hourly.2").touch()
    return root


def adopted(bench, old, path="web1/srv", **options):
    with bench.series() as series, series.lock("adopt"):
        return adopt(series, str(old), path, bench.now, **options)


def test_the_folders_become_snapshots_with_their_times(bench, old):
    before = stats(old)
    predicted = adopted(bench, old, check=True)
    assert bench.names() == [".lock"]
    done = adopted(bench, old)
    assert stats(old) == before
    wanted = {names.name_of(NOON - age * 3600): name for age, name in enumerate(("hourly.0", "hourly.1", "daily.0"))}
    assert done == predicted
    assert (done.changed, done.adopted, done.present, done.skipped, done.warnings) == (True, wanted, {}, [], [])
    for name, folder in wanted.items():
        assert bench.data(name) == contents(old / folder / "web1/srv")
        assert os.path.samefile(bench.path(name, "data/file"), old / folder / "web1/srv/file")
        made = bench.path(name, "data/dir").stat()
        assert (made.st_mode & 0o777, made.st_mtime) == (0o750, NOON - 99 * DAY)
    assert os.readlink(bench.path("latest")) == names.name_of(NOON)
    with bench.series() as series:
        report, _part = check(series, "contents", bench.now)
    assert report.problems == {}
    assert report.files_read == 4 + 1  # three of file; shared is one file, read again under its second name


def test_a_backup_goes_on_from_there(bench, old):
    adopted(bench, old)
    bench.now = NOON + DAY
    bench.write("file", b"0")
    os.utime(bench.source / "file", ns=(0, os.stat(old / "hourly.0/web1/srv/file").st_mtime_ns))
    bench.source.joinpath("file").chmod((old / "hourly.0/web1/srv/file").stat().st_mode & 0o7777)
    done = bench.backup()
    assert done.facts.base == names.name_of(NOON)
    assert os.path.samefile(bench.path(done.name, "data/file"), old / "hourly.0/web1/srv/file")
    assert done.facts.figures.new_files == 0


def test_adopting_again_changes_nothing_and_takes_what_is_new(bench, old):
    first = adopted(bench, old)
    again = adopted(bench, old)
    assert (again.changed, again.adopted, again.present) == (False, {}, first.adopted)
    for path in ("hourly.9", "monthly.0"):
        (old / path / "web1/srv").mkdir(parents=True)
        os.utime(old / path, (NOON - 30 * DAY, NOON - 30 * DAY))
    (old / "hourly.9").rename(old / "weekly.0")
    more = adopted(bench, old)
    assert sorted(more.adopted.values()) == ["monthly.0", "weekly.0"]
    assert sorted(more.adopted) == [names.name_of(NOON - 30 * DAY), names.name_of(NOON - 30 * DAY + 1)]


def test_folders_without_the_path_are_skipped(bench, old):
    (old / "weekly.0").mkdir()
    os.utime(old / "weekly.0", (NOON - 9 * DAY, NOON - 9 * DAY))
    assert adopted(bench, old).skipped == ["weekly.0"]


@pytest.mark.skipif(not xattr.SUPPORTED, reason="no xattrs here")
def test_attributes_of_folders_are_taken_over(bench, old):
    try:
        os.setxattr(old / "hourly.0/web1/srv/dir", "user.x", b"1")
    except OSError:
        pytest.skip("this file system has no attributes")
    adopted(bench, old)
    assert os.getxattr(bench.path(names.name_of(NOON), "data/dir"), "user.x") == b"1"


def test_what_cannot_be_adopted_is_refused(bench, old, tmp_path):
    with pytest.raises(Refused, match=r"no folder such as hourly\.0"):
        adopted(bench, old, levels=["nightly"])
    with pytest.raises(Refused, match="cannot be opened"):
        adopted(bench, tmp_path / "none")
    (tmp_path / "link").symlink_to(old)
    with pytest.raises(Refused, match="not a symbolic link"):
        adopted(bench, tmp_path / "link")
    with pytest.raises(Refused, match="path below"):
        adopted(bench, old, "web1/../..")
    with bench.series() as series:
        begin(series, "run", NOON)
    with pytest.raises(Refused, match="unfinished snapshot of a transfer"):
        adopted(bench, old)


def test_a_transfer_does_not_go_on_with_half_an_adoption(bench, old):
    def stop(name):
        if name == "link":
            raise KeyboardInterrupt

    bench.on_step = stop
    with pytest.raises(KeyboardInterrupt):
        adopted(bench, old)
    with bench.series() as series:
        with pytest.raises(Refused, match="run adopt_rsnapshot again"):
            begin(series, "run", NOON)


@pytest.mark.parametrize(
    "found, expected",
    [
        ([("hourly.0", 30), ("hourly.1", 20), ("daily.0", 10)], [(10, "daily.0"), (20, "hourly.1"), (30, "hourly.0")]),
        ([("alpha.0", 5), ("beta.0", 5)], [(5, "alpha.0"), (6, "beta.0")]),
        ([("hourly.1", 5), ("hourly.0", 5), ("daily.0", 6)], [(5, "hourly.1"), (6, "hourly.0"), (7, "daily.0")]),
        ([("hourly.01", 5), ("hourly", 6), (".sync", 7), ("_delete.42", 8), ("hourly.x", 9), ("other.0", 1)], []),
        ([("hourly.10", 1), ("hourly.9", 2)], [(1, "hourly.10"), (2, "hourly.9")]),
    ],
)
def test_folders_and_times(found, expected):
    assert [(at, item.name) for at, item in intervals(found)] == expected


def test_times_that_contradict_the_numbers_are_refused():
    with pytest.raises(Refused, match=r"hourly\.1 has a later time than hourly\.0.*touch -d"):
        intervals([("hourly.0", 10), ("hourly.1", 20)])
    assert [item.name for _at, item in intervals([("mine.0", 1)], ["mine"])] == ["mine.0"]
