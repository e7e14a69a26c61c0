# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The argv of rsync, option by option, and which options a user may add."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync import argv as rsync_argv
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.argv import Far, RsyncRun, build_argv
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.user_options import check_user_options
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import ID, settings
from hypothesis import given
from hypothesis import strategies as st

FAR = Far(address="peer:./", shell="ssh -T")
OLD = {"source": [3, 1, 2], "dest": [3, 5, 0]}


def argv(side: str = "source", far: Far = FAR, run: RsyncRun = RsyncRun(), **changes) -> list[str]:  # noqa: B008
    return build_argv(settings(**changes), side, b"/data", far, run)


@pytest.mark.parametrize(
    ("changes", "present", "absent"),
    [
        ({"preserve": []}, [], ["--owner", "--group", "--perms", "--times", "--acls", "--xattrs", "-D", "--sparse"]),
        ({"preserve": ["owner"]}, ["--owner"], ["--group"]),
        ({"preserve": ["group"]}, ["--group"], ["--owner"]),
        ({"preserve": ["permissions"]}, ["--perms"], ["--times"]),
        ({"preserve": ["times"]}, ["--times", "--modify-window=-1"], ["--perms"]),
        (
            {"preserve": ["times"], "time_units": {"": 10**9, "data": 1}},
            ["--times"],
            ["--modify-window=-1", "--modify-window=1", "--checksum"],
        ),
        ({"preserve": ["times"], "time_units": {"": 2 * 10**9}}, ["--modify-window=1"], ["--modify-window=-1"]),
        ({"time_units": {"": 100}, "link_dest": ["/b"]}, ["--checksum"], ["--modify-window=-1"]),
        ({"preserve": ["acls"]}, ["--acls"], ["--xattrs"]),
        ({"preserve": ["xattrs"]}, ["--xattrs"], ["--acls"]),
        ({"preserve": ["hardlinks"]}, ["--hard-links"], []),
        ({"preserve": ["devices"]}, ["-D"], []),
        ({"preserve": ["sparse"]}, ["--sparse"], []),
        ({"preserve": ["times"], "rsync": OLD}, ["--times"], ["--modify-window=-1"]),
        ({"numeric_ids": False}, [], ["--numeric-ids"]),
        ({"numeric_ids": True}, ["--numeric-ids"], []),
        ({"one_file_system": True}, ["--one-file-system"], []),
        ({"checksum": True}, ["--checksum"], []),
        ({}, [], ["--checksum", "--one-file-system", "--compress", "--delete-after", "--force", "--dry-run"]),
        ({"bwlimit": 1}, ["--bwlimit=1"], ["--bwlimit=0"]),
        ({"bwlimit": 10 * 1024}, ["--bwlimit=10"], []),
        ({"timeout": 60}, ["--timeout=30"], ["--contimeout=30"]),
        ({"timeout": 0}, [], ["--timeout=0"]),
        ({"compress": {"algorithm": "zstd", "level": 3}}, ["--compress-choice=zstd", "--compress-level=3"], []),
        ({"compress": {"algorithm": "zlib", "level": None}, "rsync": OLD}, ["--compress"], ["--compress-choice=zlib"]),
        ({"partial": True}, ["--temp-dir=/longhaul/tmp", "--partial-dir=/longhaul/partial"], []),
        ({"partial": False}, [], ["--temp-dir=/longhaul/tmp", "--partial-dir=/longhaul/partial", "--partial"]),
        ({"link_dest": ["/b/1", "/b/2"]}, ["--link-dest=/longhaul/link/0", "--link-dest=/longhaul/link/1"], []),
        ({"rsync_opts": ["--fuzzy", "--max-size=1G"]}, ["--fuzzy", "--max-size=1G"], []),
    ],
)
def test_a_setting_in_rsyncs_words(changes, present, absent):
    found = argv(**changes)
    assert [option for option in present if option not in found] == []
    assert [option for option in absent if option in found] == []


def test_the_order_of_rules_is_kept_and_ours_come_first():
    rules = ["+ /a/**", "- *.tmp", "P /keep"]
    found = [option[len("--filter=") :] for option in argv(rules=rules) if option.startswith("--filter=")]
    own = [f"P /.longhaul-{ID}", "H .longhaul-" + "[0-9a-f]" * 16]
    assert [rule for rule in found if not rule.startswith("-x")] == [*own, *rules]


def test_the_driving_destination_uses_its_own_paths():
    found = argv("dest", link_dest=["/b/1"])
    assert f"--temp-dir=/data/.longhaul-{ID}/tmp" in found
    assert f"--partial-dir=/data/.longhaul-{ID}/partial" in found
    assert "--link-dest=/b/1" in found
    assert found[-3:] == ["--", "peer:./", "/data/"]


def test_a_daemon_gets_its_own_terms():
    far = Far("rsync://u@h:1/m/", password_on_stdin=True, daemon=True, base="/x/.longhaul", link_dest=("/y",))
    found = argv(far=far, link_dest=["/backup/y"])
    assert {"--password-file=-", "--temp-dir=/x/.longhaul/tmp", "--link-dest=/y", "--contimeout=15"} <= set(found)
    assert not [option for option in found if option.startswith("--rsh")]
    assert found[-2:] == ["/data/", "rsync://u@h:1/m/"]


def test_a_dry_run_names_no_folder_that_is_not_there():
    found = argv(run=RsyncRun(dry=True, delete=True, max_delete=7))
    assert {"--dry-run", "--delete-after", "--force", "--max-delete=7"} <= set(found)
    assert not [option for option in found if option.startswith(("--temp-dir", "--partial-dir"))]


def test_a_list_of_files_is_not_recursed_into():
    found = argv(run=RsyncRun(files_from="/list"))
    assert {"--dirs", "--from0", "--files-from=/list", "--no-implied-dirs", "--omit-dir-times"} <= set(found)
    assert "--recursive" not in found
    assert "--omit-dir-times" not in argv(run=RsyncRun(files_from="/list", directories_only=True))


@given(limit=st.integers(1, 1 << 40), shares=st.integers(1, 64))
def test_shares_of_a_limit_are_never_unlimited_and_never_more_than_the_whole(limit, shares):
    (option,) = rsync_argv.bandwidth_options(limit, shares)
    share = int(option.partition("=")[2])
    assert share >= 1
    assert share == 1 or share * 1024 * shares <= limit


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ({"source": [3, 0, 9], "dest": [3, 5, 0]}, ["source", "3.0.9", "3.1.0"]),
        ({"source": [3, 5, 0], "dest": []}, ["destination", "install"]),
        ({"source": [3, 5, 0]}, ["destination"]),
    ],
)
def test_versions_that_cannot_do_it(versions, words):
    with pytest.raises(TransferFailed) as refusal:
        argv(rsync=versions)
    assert all(word in str(refusal.value) for word in words)


def test_without_delta_files_travel_whole():
    assert "--whole-file" in argv(delta="none")
    assert "--whole-file" not in argv(delta="auto")


def test_in_place_nothing_is_staged():
    found = argv(inplace=True)
    assert "--inplace" in found
    assert not [word for word in found if word.startswith(("--temp-dir", "--partial-dir"))]
    with pytest.raises(TransferFailed, match=r"sparse.*3\.1\.3.*3\.1\.2"):
        argv(inplace=True, preserve=["times", "sparse"], rsync=OLD)
    assert "--inplace" in argv(inplace=True, preserve=["times"], rsync=OLD)


def test_an_old_rsync_cannot_be_told_the_algorithm():
    with pytest.raises(TransferFailed, match=r"zstd.*3\.2\.0.*3\.1\.2"):
        argv(compress={"algorithm": "zstd", "level": None}, rsync=OLD)


def test_the_directories_of_a_divided_tree_are_made_without_the_roots_files():
    found = argv(run=RsyncRun(files_from="/x", directories_only=True), rules=["+ *.txt"])
    assert found.index("--filter=-! */") < found.index("--filter=+ *.txt")
    assert "--filter=-! */" not in argv(run=RsyncRun(files_from="/x"))


@pytest.mark.parametrize("run", [RsyncRun(again=True), RsyncRun(delete=True, again=True)])
def test_what_was_sent_whatever_its_time_is_not_sent_again(run):
    options = ["-IU", "--fuzzy"]
    assert {"--ignore-times", "--atimes", "--fuzzy"} <= set(argv(rsync_opts=options))
    found = argv(rsync_opts=options, run=run)
    assert "--fuzzy" in found and "--ignore-times" not in found and "--atimes" not in found


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ("--delete", "delete"),
        ("--exclude=x", "exclude"),
        ("-z", "compress"),
        ("--inplace", "inplace"),
        ("-n", "check mode"),
        ("--daemon", "method"),
        ("-e", "connection"),
        ("--rsh=sh", "connection"),
        ("--rsync-path=sh -c id", "method"),
        ("-M--fake-super", "the peer"),
        ("--remove-source-files", "source"),
        ("--out-format=%n", "account"),
        ("--log-file=/etc/passwd", "account"),
        ("--info=all", "account"),
        ("--temp-dir=/x", "temporary"),
        ("--ignore-errors", "read error"),
        ("--write-batch=x", "does not know"),
        ("--files-from=/etc/shadow", "src, filter"),
        ("--max-size", "same word"),
        ("--no-such-thing", "safe"),
        ("/etc/passwd", "safe"),
        ("-", "safe"),
        ("", "safe"),
    ],
)
def test_options_that_are_refused_with_a_reason(option, word):
    with pytest.raises(TransferFailed, match="rsync_opts") as refusal:
        check_user_options([option])
    assert word in str(refusal.value)
