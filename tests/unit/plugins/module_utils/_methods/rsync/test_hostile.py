# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A driving end that runs the real rsync, and not as the plan says: it gets nothing, and changes nothing."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.subprocesses import environment
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import server_command
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.leftover import adopt
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.staging import Staging
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import ID, Pair, settings


@pytest.fixture(name="pair")
def a_pair(tmp_path: Path) -> Pair:
    pair = Pair(tmp_path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "shadow").write_text("root:secret")
    return pair


def state(folder: Path) -> list[tuple[str, str]]:
    """Return everything below a folder with what is in it, but for the staging folder."""
    found = [path for path in sorted(folder.rglob("*")) if ".longhaul-" not in str(path.relative_to(folder))]
    return [(str(path), path.read_text() if path.is_file() else str(path.lstat().st_mode)) for path in found]


def run(pair: Pair, side: str, options: list[str], **plan: object) -> int:
    """Run rsync against the serving end (``side``) with options of our own; gives its exit code."""
    given = settings(**plan)
    pair.staged(given)
    pair.context(side, "serve", given)
    argv = ["rsync", "--no-protect-args", *options, f"--rsh={pair.shell(side, given)}"]
    argv += [f"{pair.source}/", "peer:./"] if side == "dest" else ["peer:./", f"{pair.dest}/"]
    code = subprocess.run(argv, env=environment(), capture_output=True, check=False).returncode
    pair.close()
    return code


@pytest.mark.parametrize(
    "options",
    [
        ["-rltK"],
        ["-rlt", "--delete"],
        ["-rlt", "--delete-after", "--force", "--max-delete=100"],
        ["-rlt", "--inplace"],
        ["-rltpog", "-D", "--super"],
        ["-rlt", "--usermap=*:root"],
        ["-rlt", "--temp-dir=/tmp"],
        ["-rlt", "--append"],
    ],
    ids=" ".join,
)
def test_a_source_writes_as_planned_or_not_at_all(pair, options):
    (pair.source / "link").mkdir()
    (pair.source / "link" / "cron-evil").write_text("* * * * * root id")
    os.symlink(pair.folder / "outside", pair.dest / "link")
    (pair.dest / "kept").write_text("old")
    before = state(pair.dest), state(pair.folder / "outside")
    plan = {"preserve": ["times"], "delete": "--max-delete=100" in options, "max_delete": 0}
    assert run(pair, "dest", options, **plan) != 0
    assert (state(pair.dest), state(pair.folder / "outside")) == before


def test_the_same_source_is_served_as_planned(pair):
    """The tests above refuse for what they say, and not for something else."""
    (pair.source / "a").write_text("new")
    assert run(pair, "dest", ["-rlt", "--numeric-ids"], preserve=["times"]) == 0
    assert (pair.dest / "a").read_text() == "new"


@pytest.mark.parametrize(
    "options", [["-rltL"], ["-rltk"], ["-rlt", "--copy-unsafe-links"], ["-rlt", "--remove-source-files"]]
)
def test_a_destination_reads_as_planned_or_not_at_all(pair, options):
    os.symlink(pair.folder / "outside", pair.source / "current")
    (pair.source / "a").write_text("x")
    assert run(pair, "source", options, preserve=["times"]) != 0
    assert state(pair.dest) == [] and (pair.source / "a").exists()


@pytest.mark.parametrize("plan", [{}, {"only": "a"}, {"streams": 2}], ids=str)
def test_a_destination_does_not_name_what_it_gets(pair, plan):
    """rsync follows symlinks in the names of --files-from, and out of the source with them."""
    os.symlink(pair.folder / "outside", pair.source / "current")
    (pair.source / "a").write_text("x")
    names = pair.folder / "names"
    names.write_bytes(b"current/shadow\0b\0")
    (pair.source / "b").write_text("another")
    assert run(pair, "source", ["-dlt", "--from0", f"--files-from={names}"], preserve=["times"], **plan) != 0
    assert state(pair.dest) == []


def test_a_single_file_is_all_that_is_sent(pair):
    """With a tree asked for in place of it, and by the honest end, in a name that is a pattern, too."""
    name = "a [b]*?\\c"
    for each in (name, "b", "a b c"):
        (pair.source / each).write_text(each)
    assert run(pair, "source", ["-rlt"], preserve=["times"], only=name) != 0
    assert state(pair.dest) == []
    outcome = pair.over_shell("pull", only=name)
    assert (outcome.failure, outcome.errors) == ("", [])
    assert [Path(path).name for path, _text in state(pair.dest)] == [name]


def test_an_older_snapshot_is_not_written_to(pair):
    """A later run may ask for anything: a file that an honest one has linked to the older one is not written to."""
    older, name = pair.folder / "older", "a"

    def recorded() -> tuple[object, ...]:
        status = (older / name).stat()
        return (older / name).read_text(), status.st_ino, status.st_mode, status.st_mtime_ns

    older.mkdir()
    for folder, text in ((older, "the older text"), (pair.source, "the older text")):
        (folder / name).write_text(text)
        os.utime(folder / name, (1_000_000_000, 1_000_000_000))
    linked = ["-rlt", "--numeric-ids", "--link-dest=/longhaul/link/0"]
    plan = {"preserve": ["times"], "link_dest": [str(older)]}
    assert run(pair, "dest", linked, **plan) == 0
    assert (pair.dest / name).samefile(older / name)
    before = recorded()
    (pair.source / name).write_text("ENCRYPTED, pay")
    (pair.source / name).chmod(0o600)
    for planned in (plan, {**plan, "inplace": True}):
        for options in ([*linked, "--inplace"], ["-rlt", "--numeric-ids", "--inplace"], [*linked, "--append-verify"]):
            assert run(pair, "dest", options, **planned) != 0
            assert recorded() == before
    assert run(pair, "dest", linked, **plan) == 0
    assert recorded() == before and (pair.dest / name).read_text() == "ENCRYPTED, pay"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="cannot run here: descriptors have no paths")
def test_what_takes_the_place_of_the_staging_folder_leads_nowhere(pair):
    """The serving rsync is told where to stage before its client says anything, and by descriptor."""
    for name in ("a", "b"):
        (pair.source / name).write_text("new text")
    given = settings(preserve=["times"])
    staging, moved, outside = pair.staged(given), pair.folder / "moved", pair.folder / "outside"
    context = pair.context("dest", "serve", given)
    asked = "rsync --server -ltre.iLsfxCIvu --numeric-ids --temp-dir /longhaul/tmp --partial-dir /longhaul/partial . ./"
    argv = server_command.server_argv(asked, "dest", server_command.own_folders(context), given)
    staging.rename(moved)
    for name in ("tmp", "partial"):
        (outside / name).mkdir()
        for folder in (outside, moved):
            (folder / name / "a").write_text("of an earlier run")
            os.utime(folder / name, ns=(0, 0))
    staging.symlink_to(outside)
    shell = pair.folder / "shell"
    shell.write_text(f"#!/bin/sh\ncd {pair.dest} && exec {os.fsdecode(b' '.join(argv))}\n")
    shell.chmod(0o755)
    client = ["rsync", "--no-protect-args", "-rlt", f"--rsh={shell}", f"{pair.source}/", "peer:./"]
    descriptors = server_command.own_descriptors(context)
    ended = subprocess.run(client, env=environment(), capture_output=True, check=False, pass_fds=descriptors)
    pair.close()
    assert ended.returncode == 0, ended.stderr
    assert [(pair.dest / name).read_text() for name in ("a", "b")] == ["new text"] * 2
    assert (moved / "tmp").stat().st_mtime_ns and not (moved / "partial" / "a").exists()  # they were worked in
    assert [(outside / name).stat().st_mtime_ns for name in ("tmp", "partial")] == [0, 0]
    assert [(outside / name / "a").read_text() for name in ("tmp", "partial")] == ["of an earlier run"] * 2


def test_a_planted_staging_folder_leads_nowhere(pair):
    """What is adopted was never read or written through names that the source can replace."""
    given = settings(preserve=["times"])
    pair.staged(given)
    with contextlib.closing(Staging(os.fsencode(pair.dest), f".longhaul-{ID}".encode())) as staged:
        planted = pair.source / f".longhaul-{ID}"
        (planted / "tmp").mkdir(parents=True)
        (planted / "tmp" / "evil-job.aaaaaa").write_text("* * * * * root id")
        (planted / "tmp" / "shadow.aaaaaa").write_text("root::0:0:a longer one, without a password")
        os.symlink(pair.folder / "outside", planted / "partial")
        before = state(pair.folder / "outside")
        assert run(pair, "dest", ["-rlt", "--numeric-ids"], preserve=["times"]) == 0
        assert (pair.dest / f".longhaul-{ID}" / "partial").is_symlink()
        adopt(staged)
        assert state(pair.folder / "outside") == before
