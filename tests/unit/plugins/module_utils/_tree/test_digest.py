# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two trees are compared by what little is sent between their hosts."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import socket
import stat
import subprocess

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._model.ids import NUMERIC, IdMap
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.content_hash import (
    common_algorithm,
    hash_file,
    speeds,
    with_contents,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.digest import TreeDigest, differing_buckets, report
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.dirfd import Root
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.record import FIELDS, Describer
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.record_store import (
    BUCKETS,
    Listing,
    RecordStore,
    RecordStoreError,
    RecordWriter,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.walk import walk

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may do this")
EARLY = 1_000_000_000_000_000_000


class Side:
    """One host: its tree, its record store, and what it is asked over the wire, which is JSON."""

    def __init__(self, root, spool, fields=FIELDS, ids=NUMERIC):
        self.describer = Describer(fields, ids)
        with RecordWriter(str(spool)) as writer:
            self.digest = TreeDigest(self.describer, writer)
            entries = walk(os.fsencode(root), xattrs=True, on_error=self.digest.error)
            for entry, content in with_contents(entries, os.fsencode(root), "sha256"):
                self.digest.add(entry, content)
        self.spool = RecordStore(str(spool), self.describer)


def over_the_wire(data):
    return json.loads(json.dumps(data))


def compare(tmp_path, fields=FIELDS, extras=False, changed_after_ns=None, limit=1000, portion=1_000_000, ids=NUMERIC):
    """All three steps, as a control node takes them; gives the counts and the differences by path."""
    source = Side(tmp_path / "s", tmp_path / "spool.s", fields, ids)
    dest = Side(tmp_path / "d", tmp_path / "spool.d", fields)
    buckets = differing_buckets(over_the_wire(source.digest.as_dict()), over_the_wire(dest.digest.as_dict()))
    counts, differences = dict.fromkeys(["missing", "differs", "extra", "unstable"], 0), []
    absent, left = [], buckets
    while left:
        listing = source.spool.listing(left, portion)
        absent += over_the_wire(dest.spool.absent(listing))
        left = sorted(set(left) - set(listing.buckets))
    while buckets:
        listing = source.spool.listing(buckets, portion, changed_after_ns)
        listing = Listing.from_dict(over_the_wire(listing.as_dict()))
        explained = over_the_wire(dest.spool.explain(listing, limit, extras, absent))
        details = over_the_wire(source.spool.details(explained["ask"], changed_after_ns))
        differences += report(explained, details)
        counts = {name: counts[name] + explained[name] for name in counts}
        assert listing.buckets
        buckets = sorted(set(buckets) - set(listing.buckets))
    return counts, {difference["path"]: difference for difference in differences}


def same(path, data=b"data"):
    with open(path, "wb") as file:
        file.write(data)
    os.utime(path, ns=(EARLY, EARLY))


@pytest.fixture
def twins(tmp_path):
    """Two equal trees with one of everything that can be made without rights."""
    for side in ("s", "d"):
        root = tmp_path / side
        (root / "sub" / "deep").mkdir(parents=True)
        for name in ("f", "sub/f", "sub/deep/f", "new\nline", "é"):
            same(root / name)
        os.link(root / "f", root / "sub" / "linked")
        os.symlink("f", root / "link")
        os.mkfifo(root / "fifo")
        with socket.socket(socket.AF_UNIX) as listener:
            here = os.getcwd()
            os.chdir(root)
            listener.bind("socket")
            os.chdir(here)
        os.setxattr(root / "f", "user.x", b"1")
        if shutil.which("setfacl"):
            subprocess.run(["setfacl", "-m", "u:12345:r", str(root / "sub")], check=True)
        for name in ("link", "fifo", "socket", "sub/deep", "sub", ""):
            os.utime(root / name, ns=(EARLY, EARLY), follow_symlinks=False)
    return tmp_path


def test_equal_trees_are_equal_and_cost_little(twins):
    source, dest = (Side(twins / side, twins / f"spool.{side}") for side in ("s", "d"))
    ours, theirs = source.digest.as_dict(), dest.digest.as_dict()
    assert ours == theirs
    assert differing_buckets(ours, theirs) == []
    assert ours["types"] == {"d": 3, "f": 6, "l": 1, "p": 1, "s": 1}
    assert (ours["entries"], ours["bytes"], ours["errors"]) == (12, 6 * 4 + 1, [])
    assert len(json.dumps(ours)) < 32_000


def acl(path, rule):
    subprocess.run(["setfacl", "-m", rule, path], check=True)


def rewritten(path):
    with open(path, "r+b") as file:
        file.write(b"DATA")
    os.utime(path, ns=(EARLY, EARLY))


def longer(path):
    with open(path, "ab") as file:
        file.write(b"more")
    os.utime(path, ns=(EARLY, EARLY))


def copied(path):
    os.rename(path, path + "~")
    shutil.copy2(path + "~", path)
    os.setxattr(path, "user.x", b"1")
    os.unlink(path + "~")
    os.utime(os.path.dirname(path), ns=(EARLY, EARLY))


def retarget(path):
    os.unlink(path)
    os.symlink("elsewhere", path)
    os.utime(path, ns=(EARLY, EARLY), follow_symlinks=False)
    os.utime(os.path.dirname(path), ns=(EARLY, EARLY))


def becomes_directory(path):
    os.unlink(path)
    os.mkdir(path)
    os.utime(os.path.dirname(path), ns=(EARLY, EARLY))


CHANGES = {
    "contents": ("sub/f", rewritten, ["content"]),
    "size": ("sub/f", longer, ["content", "size"]),
    "mode": ("sub/deep", lambda path: os.chmod(path, 0o700), ["mode"]),
    "time": ("é", lambda path: os.utime(path, ns=(1, EARLY + 1)), ["mtime"]),
    "the root's time": (".", lambda path: os.utime(path, ns=(1, 1)), ["mtime"]),
    "symlink's time": ("link", lambda path: os.utime(path, ns=(1, 1), follow_symlinks=False), ["mtime"]),
    "target": ("link", retarget, ["target"]),
    "xattr": ("f", lambda path: os.setxattr(path, "user.x", b"2"), ["xattrs"]),
    "type": ("fifo", becomes_directory, ["type"]),
    "link that became a copy": ("sub/linked", copied, ["links"]),
    "unreadable name": ("new\\#012line", lambda path: rewritten(path.replace("\\#012", "\n")), ["content"]),
}


@pytest.mark.parametrize(("path", "change", "fields"), CHANGES.values(), ids=CHANGES.keys())
def test_every_difference_is_found_and_named(twins, path, change, fields):
    change(str(twins / "d" / path))
    counts, differences = compare(twins)
    # f and sub/linked are one file: what changes one changes the other.
    changed = {path} | ({"sub/linked"} if path == "f" else set())
    assert set(differences) == changed
    assert counts == {"missing": 0, "differs": len(changed), "extra": 0, "unstable": 0}
    assert (differences[path]["kind"], differences[path]["fields"]) == ("differs", fields)
    for name in fields:
        assert differences[path]["source"].get(name) != differences[path]["dest"].get(name)


@as_root
def test_owner_acl_and_device_numbers(twins):
    for side, number in (("s", 3), ("d", 5)):
        os.mknod(twins / side / "null", stat.S_IFCHR | 0o600, os.makedev(1, number))
        os.utime(twins / side / "null", ns=(EARLY, EARLY))
        os.utime(twins / side, ns=(EARLY, EARLY))
    os.chown(twins / "d" / "é", 1, 2)
    acl(str(twins / "d" / "sub"), "u:12345:rx")
    _counts, differences = compare(twins)
    assert {path: found["fields"] for path, found in differences.items()} == {
        "null": ["device"],
        "é": ["owner"],
        "sub": ["acls"],
    }
    assert (differences["é"]["source"], differences["é"]["dest"]) == ({"owner": "0:0"}, {"owner": "1:2"})


@as_root
def test_owners_are_what_the_source_s_numbers_become_at_the_destination(twins):
    os.chown(twins / "s" / "é", 70001, 70002)
    os.chown(twins / "d" / "é", 70002, 70001)
    for side, user, group in (("s", 70001, 70003), ("d", 70002, 70003)):
        subprocess.run(["setfacl", "-m", f"u:{user}:rx,g:{group}:r", str(twins / side / "sub")], check=True)
        os.utime(twins / side / "sub", ns=(EARLY, EARLY))
    ids = IdMap({70001: 70002, 70002: 70001}, {70002: 70001, 70001: 70002})
    assert compare(twins, ids=ids) == (dict.fromkeys(["missing", "differs", "extra", "unstable"], 0), {})
    _counts, differences = compare(twins)
    assert {path: found["fields"] for path, found in differences.items()} == {"é": ["owner"], "sub": ["acls"]}
    _counts, differences = compare(twins, ids=IdMap({70001: 5}, {}))
    assert (differences["é"]["source"], differences["é"]["dest"]) == ({"owner": "5:70002"}, {"owner": "70002:70001"})


def test_fields_that_are_not_asked_for_do_not_count(twins):
    os.chmod(twins / "d" / "f", 0o600)
    os.utime(twins / "d" / "f", ns=(1, 1))
    counts, differences = compare(twins, fields=frozenset(["size", "content"]))
    assert (set(counts.values()), differences) == ({0}, {})
    with pytest.raises(ValueError, match="unknown fields colour"):
        Describer(frozenset(["colour"]))


def test_what_is_missing_and_what_is_extra(twins):
    shutil.rmtree(twins / "d" / "sub" / "deep")
    os.utime(twins / "d" / "sub", ns=(EARLY, EARLY))
    same(twins / "d" / "more")
    os.utime(twins / "d", ns=(EARLY, EARLY))
    counts, differences = compare(twins)
    assert counts == {"missing": 2, "differs": 0, "extra": 0, "unstable": 0}
    assert {path: found["kind"] for path, found in differences.items()} == {
        "sub/deep": "missing",
        "sub/deep/f": "missing",
    }
    assert differences["sub/deep/f"]["source"]["size"] == 4
    assert differences["sub/deep/f"]["dest"] == {}
    counts, differences = compare(twins, extras=True)
    assert counts == {"missing": 2, "differs": 0, "extra": 1, "unstable": 0}
    assert (differences["more"]["kind"], differences["more"]["dest"]["size"]) == ("extra", 4)


def test_what_changed_after_the_transfer_began_is_told_apart(twins):
    rewritten(str(twins / "d" / "sub" / "f"))
    now = os.stat(twins / "s" / "é").st_ctime_ns
    counts, differences = compare(twins, changed_after_ns=now + 10**18)
    assert (counts["differs"], counts["unstable"], differences["sub/f"]["unstable"]) == (1, 0, False)
    counts, differences = compare(twins, changed_after_ns=0)
    assert (counts["differs"], counts["unstable"], differences["sub/f"]["unstable"]) == (1, 1, True)


def test_lists_are_capped_and_counts_are_not(tmp_path):
    for side in ("s", "d"):
        (tmp_path / side).mkdir()
        for number in range(300):
            same(tmp_path / side / f"{number}", b"x" if side == "s" else b"y")
        same(tmp_path / side / f"only-{side}")
        os.utime(tmp_path / side, ns=(EARLY, EARLY))
    counts, differences = compare(tmp_path, extras=True, limit=10)
    assert counts == {"missing": 1, "differs": 300, "extra": 1, "unstable": 0}
    assert len(differences) == 11


@pytest.mark.newest
def test_a_destination_full_of_extras_works_in_portions(tmp_path):
    for side in ("s", "d"):
        (tmp_path / side).mkdir()
        for number in range(750):
            same(tmp_path / side / f"{number}")
    for number in range(1250):
        same(tmp_path / "d" / f"extra{number}")
    rewritten(str(tmp_path / "d" / "77"))
    os.unlink(tmp_path / "d" / "78")
    for side in ("s", "d"):
        os.utime(tmp_path / side, ns=(EARLY, EARLY))
    counts, differences = compare(tmp_path, portion=125)
    assert counts == {"missing": 1, "differs": 1, "extra": 0, "unstable": 0}
    assert {path: found["kind"] for path, found in differences.items()} == {"77": "differs", "78": "missing"}


LINKED = [  # groups of names that share a file at the source, and at the destination, and what differs
    ("bc", "abc", {}),
    ("b", "ab", {}),
    ("cd", "abcd", {}),
    ("ac", "abc", {}),
    ("ab", "abc", {}),
    ("bc ef", "abcef", {"e": ["links"], "f": ["links"]}),
    ("b c", "abc", {"c": ["links"]}),
    ("bcd", "abc d", {"d": ["links"]}),
    ("bcd", "ab cd", {"c": ["links"], "d": ["links"]}),
]


@pytest.mark.parametrize("portion", [1, 1_000_000])
@pytest.mark.parametrize(("source", "dest", "expected"), LINKED)
def test_names_that_the_destination_alone_has_do_not_count(tmp_path, source, dest, expected, portion):
    for side, groups in (("s", source), ("d", dest)):
        (tmp_path / side).mkdir()
        for group in groups.split():
            same(tmp_path / side / group[0])
            for name in group[1:]:
                os.link(tmp_path / side / group[0], tmp_path / side / name)
        os.utime(tmp_path / side, ns=(EARLY, EARLY))
    counts, differences = compare(tmp_path, portion=portion)
    assert {path: found["fields"] for path, found in differences.items()} == expected
    assert counts == {"missing": 0, "differs": len(expected), "extra": 0, "unstable": 0}


ENTRY = Entry(b"", "f", 0o644, 0, 0, 4, EARLY, 0, 1, 2, 1, 0, 8)


def digest_of(entries):
    return TreeDigest.of(entries, FIELDS, lambda entry: entry.path).as_dict()


def test_the_order_does_not_matter_and_the_cost_does_not_grow():
    entries = [ENTRY._replace(path=b"%d" % number, ino=number) for number in range(5_000)]
    shuffled = entries[:]
    random.Random(5).shuffle(shuffled)
    ours, theirs = digest_of(entries), digest_of(shuffled)
    assert ours == theirs
    assert len(json.dumps(ours)) < 32_000
    entries[777] = entries[777]._replace(mtime_ns=EARLY + 1)
    assert len(differing_buckets(ours, digest_of(entries))) == 1
    # Sums, so nothing cancels out: not even the same entry twice.
    assert differing_buckets(digest_of([ENTRY, ENTRY]), digest_of([])) != []


def test_unreadable_contents_are_an_error_and_no_match(twins):
    def unreadable(entry):
        raise OSError(5, "Input/output error")

    entries = list(walk(os.fsencode(twins / "s"), on_error=lambda *_: None))
    digest = TreeDigest.of(entries, FIELDS, unreadable).as_dict()
    assert digest["errors_total"] == 6
    assert digest["errors"][0] == {"path": "f", "reason": "Input/output error"}
    assert differing_buckets(digest, TreeDigest.of(entries, FIELDS, lambda entry: b"x").as_dict())


@pytest.mark.parametrize(
    "damage",
    [{}, {"buckets": [1], "entries": "!", "unstable": ""}, {"buckets": ["x"], "entries": "", "unstable": ""}]
    + [{"buckets": [1], "entries": "AAAA", "unstable": ""}, {"buckets": None, "entries": "", "unstable": ""}],
    ids=str,
)
def test_a_damaged_listing_is_refused(damage):
    with pytest.raises(RecordStoreError, match="damaged|cut short"):
        Listing.from_dict(damage)


def test_a_damaged_digest_question_or_spool_is_refused(twins):
    side = Side(twins / "s", twins / "spool")
    good = side.digest.as_dict()
    for bad in ({}, {"sums": "!"}, {"sums": "AAAA"}, {"sums": None}):
        with pytest.raises(RecordStoreError):
            differing_buckets(good, bad)
    with pytest.raises(RecordStoreError, match="damaged"):
        side.spool.details(["xyz"])
    os.truncate(twins / "spool", os.stat(twins / "spool").st_size - 1)
    with pytest.raises(RecordStoreError, match="cut short"):
        side.spool.listing(range(BUCKETS))


def test_a_spool_is_for_its_owner_alone(twins):
    Side(twins / "s", twins / "spool")
    assert stat.S_IMODE(os.stat(twins / "spool").st_mode) == 0o600


@pytest.mark.parametrize("algorithm", ["sha256", "blake2b"])
@pytest.mark.parametrize("size", [0, 1, 1 << 20, (5 << 20) + 3])
def test_contents_are_hashed_whole(tmp_path, algorithm, size):
    data = random.Random(size).getrandbits(8 * size).to_bytes(size, "big") if size else b""
    same(tmp_path / "f", data)
    with Root(os.fsencode(tmp_path)) as root:
        found = hash_file(root, b"f", algorithm)
    assert found == (hashlib.sha256(data) if algorithm == "sha256" else hashlib.blake2b(data, digest_size=32)).digest()


@pytest.mark.parametrize("workers", [1, 3])
def test_many_files_are_hashed_in_order_and_errors_are_kept_with_them(tmp_path, workers):
    for number in range(200):
        same(tmp_path / f"{number:03}", b"%d" % number)
    same(tmp_path / "large", b"x" * (3 << 20))
    (tmp_path / "dir").mkdir()
    entries = list(walk(os.fsencode(tmp_path), on_error=lambda *_: None))
    os.unlink(tmp_path / "100")
    os.unlink(tmp_path / "101")
    os.mkfifo(tmp_path / "101")
    before = len(os.listdir("/proc/self/fd"))
    found = list(with_contents(iter(entries), os.fsencode(tmp_path), "sha256", workers))
    assert len(os.listdir("/proc/self/fd")) == before
    assert [entry for entry, _content in found] == entries
    by_path = {entry.path: content for entry, content in found}
    assert by_path[b"007"] == hashlib.sha256(b"7").digest()
    assert by_path[b"large"] == hashlib.sha256(b"x" * (3 << 20)).digest()
    assert by_path[b"dir"] == by_path[b""] == b""
    assert isinstance(by_path[b"100"], FileNotFoundError)
    assert isinstance(by_path[b"101"], OSError)


def test_files_whose_hash_is_known_are_not_read(tmp_path):
    same(tmp_path / "known", b"1")
    same(tmp_path / "read", b"2")
    root = os.open(tmp_path, os.O_RDONLY)
    asked = []

    def known(entry):
        asked.append(entry.path)
        return b"as before" if entry.path == b"known" else b""

    try:
        entries = walk(root, on_error=lambda *_: None)
        found = {entry.path: content for entry, content in with_contents(entries, root, "sha256", known=known)}
    finally:
        os.close(root)
    assert asked == [b"", b"known", b"read"]
    assert found == {b"": b"", b"known": b"as before", b"read": hashlib.sha256(b"2").digest()}


def test_both_sides_take_the_algorithm_that_suits_the_slower():
    assert set(speeds()) == {"blake2b", "sha256"}
    fast, slow = {"blake2b": 900.0, "sha256": 1600.0}, {"blake2b": 300.0, "sha256": 150.0}
    assert common_algorithm(fast, fast) == "sha256"
    assert common_algorithm(fast, slow) == common_algorithm(slow, fast) == "blake2b"


def test_a_portion_is_never_empty_however_small_the_limit(twins):
    buckets = range(BUCKETS)
    side = Side(twins / "s", twins / "spool")
    assert side.spool.listing(buckets, limit=0).buckets
    os.chmod(twins / "d" / "f", 0o600)
    counts, _differences = compare(twins, portion=0)
    assert counts["differs"] == 2  # two names of one file


@pytest.mark.parametrize(
    "explained, details",
    [
        ({}, []),
        ({"ask": [], "found": [{"key": "00"}], "extras": []}, []),
        ({"ask": ["00"], "found": [], "extras": []}, [{"key": "00", "path": 7, "values": {}}]),
        ({"ask": [7], "found": [], "extras": []}, []),
    ],
)
def test_what_a_host_says_of_its_entries_is_checked(explained, details):
    with pytest.raises(RecordStoreError, match="what a host says of its entries is damaged"):
        report(explained, details)
