# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdict on every option of rsync, and with the real rsync that it is right."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._job.digest_job import quick_digest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.user_options import (
    COMPARED,
    KNOWN,
    REFUSED,
    UNCOMPARED,
    check_user_options,
    of_later_pass,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.digest import differing_buckets
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.report import verified_fields
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import ALL, Pair

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: owners and devices are made")
VALUES = {  # one that is accepted, of each option that takes one
    "--block-size": "4096",
    "--checksum-choice": "xxh64,md5",
    "--checksum-seed": "7",
    "--chmod": "D750,F640",
    "--chown": "7:8",
    "--compress-threads": "1",
    "--groupmap": "*:8",
    "--iconv": "utf-8,iso-8859-1",
    "--max-alloc": "512M",
    "--max-size": "1K",
    "--min-size": "1K",
    "--modify-window": "10",
    "--outbuf": "N",
    "--protocol": "31",
    "--skip-compress": "gz/mp[34]",
    "--sockopts": "SO_SNDBUF=65536",
    "--usermap": "*:7",
}
COUNTS = ("files_created", "files_updated", "files_deleted", "attributes_changed", "files_total")
WAYS = [("rsync", "push", True), ("rsyncd", "pull", False)]
NOT_HERE = {"--atimes": "each reading changes them"}  # what a rerun changes again


def spelled(use: str, start: str = "--") -> list[str]:
    """Return the options with a verdict, each with a value where it takes one."""
    found = {}
    for name, rule in KNOWN.items():
        if rule.use == use and name.startswith("--") == (start == "--"):
            value = next((VALUES[long] for long in VALUES if KNOWN[long] is rule), None)
            joined = f"{name}={value}" if start == "--" else f"{name}{value}"
            found[name] = name if rule.value is None else joined
    return list(found.values())


def one_spelling_each(use: str) -> list[str]:
    return [option for option in spelled(use) if check_user_options([option]) == [option]]


def of_help() -> set[str]:
    """Return every spelling that rsync's own help names."""
    text = subprocess.run(["rsync", "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    lines = [line for line in text.partition("\nOptions\n")[2].splitlines() if line.startswith("-")]
    assert len(lines) > 130
    found = set()
    for line in lines:
        left = re.split(r"\s{2,}| \(\*\)", line)[0]
        found.update(re.sub(r"=.*", "", word) for word in left.split(", "))
        found.update(re.findall(r"\(aka (--\w+)\)", line))
    return found - {"--no-OPTION"}


def test_every_option_of_rsync_has_a_verdict():
    assert sorted(of_help() - set(KNOWN)) == []


def test_every_verdict_says_why():
    for name, rule in KNOWN.items():
        assert bool(rule.reason) != bool(rule.own), name
        assert rule.use in (COMPARED, UNCOMPARED, REFUSED), name
        assert (rule.value is None) or rule.use != REFUSED, name


def test_every_value_that_can_be_given_is_tried():
    assert {name for name in VALUES if KNOWN[name].value is None} == set()
    rules = {id(rule) for rule in KNOWN.values() if rule.value is not None}
    assert {id(KNOWN[name]) for name in VALUES} == rules


@pytest.mark.parametrize("option", spelled(COMPARED) + spelled(COMPARED, "-"))
def test_what_arrives_the_same_may_be_used(option):
    (checked,) = check_user_options([option], compared=True)
    assert KNOWN[checked.partition("=")[0]] is KNOWN[re.match(r"--[\w-]+|-.", option).group()]


@pytest.mark.parametrize("option", spelled(UNCOMPARED) + spelled(UNCOMPARED, "-"))
def test_what_arrives_otherwise_needs_verify_none(option):
    assert check_user_options([option])
    with pytest.raises(TransferFailed, match="rsync_opts: .* needs verify: none"):
        check_user_options([option], compared=True)


@pytest.mark.parametrize("name", [name for name, rule in KNOWN.items() if rule.use == REFUSED])
def test_what_breaks_a_promise_is_refused(name):
    for option in (name, f"{name}=1" if name.startswith("--") else f"{name}1"):
        for compared in (True, False):
            with pytest.raises(TransferFailed, match="rsync_opts"):
                check_user_options([option], compared)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-yW"], ["--fuzzy", "--whole-file"]),
        (["-yyB4096"], ["--fuzzy", "--fuzzy", "--block-size=4096"]),
        (["-B=4096"], ["--block-size=4096"]),
        (["-@-1"], ["--modify-window=-1"]),
        (
            ["--no-W", "--cc=md5", "--zt=2", "--i-r"],
            ["--no-whole-file", "--checksum-choice=md5", "--compress-threads=2", "--inc-recursive"],
        ),
        (["--skip-compress=gz"], ["--skip-compress=gz"]),
        ([], []),
    ],
)
def test_each_option_becomes_a_word_with_its_long_name(given, expected):
    assert check_user_options(given) == expected


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--fuzzy=2", "takes no value"),
        ("--max-size", "write --max-size=VALUE"),
        ("-B", "write --block-size=VALUE"),
        ("--block-size=", "takes a number"),
        ("--block-size=4096 --delete", "takes a number"),
        ("--checksum-choice=none", "other than none"),
        ("--checksum-choice=md5,none", "other than none"),
        ("--protocol=30", "31 or 32"),
        ("--chmod=u+s\n--delete", "text without slashes"),
        ("--iconv=/etc/x", "text without slashes"),
        ("-yn", "check mode"),
        ("-yé", "known to be safe"),
        ("-Wa", "preserve"),
        ("--no-fuzzy", "nothing sets"),
        ("--no-delete", "use delete"),
        ("--no-y", "nothing sets"),
        ("--no-compress", "use compress"),
        ("--no-protect-args", "peer checks"),
        ("--no-such-thing", "known to be safe"),
        ("--FUZZY", "known to be safe"),
        ("--", "known to be safe"),
        ("-", "known to be safe"),
        ("", "known to be safe"),
        ("fuzzy", "known to be safe"),
    ],
)
def test_a_word_that_is_not_what_it_seems(option, words):
    with pytest.raises(TransferFailed, match="rsync_opts") as refusal:
        check_user_options([option])
    assert words in str(refusal.value)


def test_a_later_pass_sends_nothing_again():
    assert of_later_pass(check_user_options(["-yI", "--fsync"])) == ["--fuzzy", "--fsync"]


# With the real rsync


def make_source(root) -> None:
    """Make what an option could do otherwise: links of each kind, sizes, modes, owners, times, names."""
    at = 1_500_000_000_123_456_789
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    for name, size in {
        "small": 100,
        "large": 300_000,
        "sub/new": 2000,
        "sub/grown": 9000,
        "é": 5,
        "sub/deep/a.o": 7,
    }.items():
        path = root / name
        path.write_bytes(bytes(at % 251 for at in range(size)))
        path.chmod(0o4711 if name == "small" else 0o662)
        os.chown(path, 1234, 4321)
    os.link(root / "small", root / "sub" / "small again")
    os.symlink("small", root / "to a file")
    os.symlink("sub", root / "to a folder")
    os.symlink("/etc/hostname", root / "to the outside")
    os.mkfifo(root / "fifo")
    os.mknod(root / "null", 0o20600, os.makedev(1, 3))
    os.setxattr(root / "large", "user.word", b"value")
    with open(root / "sparse", "wb") as stream:
        stream.truncate(2 << 20)
    for folder, folders, files in os.walk(root, topdown=False):
        for name in [*folders, *files]:
            os.utime(os.path.join(folder, name), ns=(at, at), follow_symlinks=False)
    os.utime(root, ns=(at, at))
    subprocess.run(["setfacl", "-m", "u:77:r", str(root / "sub" / "new")], check=True)


def make_older(root) -> None:
    """Make a destination that holds what was there before, changed in every way."""
    (root / "sub").mkdir()
    (root / "extra").mkdir()
    (root / "extra" / "file").write_text("goes")
    (root / "large").write_bytes(b"x" * 300_000)  # the same size
    (root / "sub" / "grown").write_bytes(b"\0\1\2")
    (root / "sub" / "new").write_bytes(b"newer than the source's")
    os.symlink("elsewhere", root / "to a file")
    (root / "to the outside").write_text("no link")
    at = 1_400_000_000_000_000_000
    for name in ("large", "sub/grown", "to the outside", "sub", "extra"):
        os.utime(root / name, ns=(at, at))
    (root / "small").write_bytes(bytes(at % 251 for at in range(100)))
    os.utime(root / "small", ns=(at + 10**17 + 123_456_000, at + 10**17 + 123_456_000))  # the same to the second


def same(pair: Pair, *, content: bool = True) -> bool:
    """Compare both trees as a transfer does that has ended."""
    fields = verified_fields(ALL, content, True)
    request = {
        "rules": [],
        "fields": fields,
        "owner_map": {},
        "one_file_system": False,
        "only": None,
        "special_files": ["devices"],
        "algorithm": "blake2b",
    }
    digests = [quick_digest({**request, "root": str(root)}, 60.0) for root in (pair.source, pair.dest)]
    assert all(digest is not None and not digest["errors_total"] for digest in digests)
    return not differing_buckets(*digests)


@pytest.fixture(name="pair")
def a_pair(tmp_path) -> Pair:
    pair = Pair(tmp_path)
    make_source(pair.source)
    return pair


@needs_root
@pytest.mark.long
@pytest.mark.parametrize(
    ("option", "method", "connect", "older"),
    [
        (option, *WAYS[number % len(WAYS) if option != "--ipv6" else 0])  # the daemon of this test has an IPv4 address
        for number, option in enumerate(one_spelling_each(COMPARED))
    ],
)
def test_what_may_be_used_brings_the_same_tree(pair, option, method, connect, older):
    if older:
        make_older(pair.dest)
    given = {"rsync_opts": [option], "delete": True, "compress": {"algorithm": "zstd", "level": None}}
    if "whole-file" not in option:
        given["streams"] = 2
    predicted = pair.over(method, connect, check=True, **given)
    assert (predicted.failure, predicted.errors) == ("", []), predicted.stderr
    outcome = pair.over(method, connect, **given)
    assert (outcome.failure, outcome.errors) == ("", []), outcome.stderr
    assert [getattr(outcome, name) for name in COUNTS] == [getattr(predicted, name) for name in COUNTS]
    if (
        option == "--size-only" and older
    ):  # as asked for: the size alone decided, so only a comparison of contents finds it
        assert same(pair, content=False)
        repaired = pair.over(method, connect, rsync_opts=[option], checksum=True)
        assert (repaired.failure, repaired.files_updated) == ("", 1)
    assert same(pair)
    assert differences(pair.source, pair.dest) == []
    again = pair.over(method, connect, **given)
    assert not again.failure
    if option == "--ignore-times":
        assert again.files_updated == 7 and again.files_created == again.files_deleted == 0
    elif option not in NOT_HERE:
        assert not again.changed, again.changes


PROOF = {  # what stands in the way of the comparison, where it is not seen in every transfer
    "--update": "older",
    "--existing": "empty",
    "--ignore-non-existing": "empty",
    "--ignore-existing": "older",
    "--modify-window": "older",
    "--no-perms": "older",
}
NOT_SEEN = {"--no-sparse", "--preallocate"}  # holes are not compared, so zeros in their place go unnoticed


@needs_root
@pytest.mark.long
@pytest.mark.parametrize(
    ("option", "method", "connect"),
    [
        # A daemon refuses --iconv unless its configuration names the character set.
        (option, *((("rsync", "pull"), ("rsyncd", "push"))[number % 2 if "--iconv" not in option else 0]))
        for number, option in enumerate(one_spelling_each(UNCOMPARED))
    ],
)
def test_what_needs_verify_none_would_fail_the_comparison(pair, option, method, connect):
    name = option.partition("=")[0]
    if PROOF.get(name) == "older":
        make_older(pair.dest)
        os.utime(pair.dest / "sub" / "new")
    if name == "--munge-links" and connect == "push":  # it takes effect on the connecting side
        os.symlink("/rsyncd-munged/small", pair.source / "munged")
    preserve = [word for word in ALL if (word, name) != ("acls", "--no-perms")]  # ACLs bring modes with them
    outcome = pair.over(method, connect, rsync_opts=[option], delete=True, preserve=preserve)
    assert not outcome.failure, outcome.stderr
    assert same(pair) == (name in NOT_SEEN)
