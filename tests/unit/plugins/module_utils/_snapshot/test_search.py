# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find and history answer as ``find`` and ``stat`` do on the trees, and say what they could not read."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.paths import escape
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import conditions, search
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    FIRST,
    NOON,
    SECOND,
    THIRD,
    records,
)

NOBODY = Holders(lambda _path: None, lambda _path: None)


def ask(bench, action, **options):
    return do_action(action, (str(bench.repository), "web1", "data"), options, NOBODY)


def found(bench, limit=200, **match):
    return ask(bench, "find", match=match, limit=limit).result


@pytest.fixture
def three(bench):
    """``a`` changes and comes back, ``gone`` goes, ``new`` comes."""
    bench.write("d/a", b"one")
    bench.write("gone", b"same")
    bench.backup()
    bench.write("d/a", b"two", NOON)
    (bench.source / "gone").unlink()
    bench.write("new", b"same", NOON)
    bench.backup()
    bench.write("d/a", b"one", NOON + 5)
    bench.backup()
    return bench


def test_what_is_found_is_told_once_with_its_snapshots(three):
    result = found(three, glob="a")
    (one,) = result["found"]
    assert (one["path"], one["type"], one["size"], one["mode"]) == ("d/a", "f", 3, "0644")
    assert (one["first"], one["last"], one["snapshots"], one["versions"]) == (FIRST, THIRD, 3, 2)
    assert (one["host"], one["job"], one["mtime"]) == ("web1", "data", "2026-11-21T12:00:05Z")
    assert (result["found_total"], result["matches"], result["searched"], result["unsearched"]) == (1, 3, 3, [])
    (gone,) = found(three, regex="^gone$")["found"]
    assert (gone["first"], gone["last"], gone["snapshots"]) == (FIRST, FIRST, 1)
    assert found(three, path="none")["found"] == []


def test_a_pattern_that_matches_everything_is_cut_and_counted(three):
    paths = ["", "d", "d/a", "gone", "new"]
    for limit in range(1, 7):
        result = found(three, limit=limit, glob="*")
        assert [one["path"] for one in result["found"]] == [path or "." for path in paths][:limit]
        assert (result["found_total"], result["matches"]) == (5, 12)
    for limit in (0, 5001):
        with pytest.raises(Refused, match="limit is"):
            found(three, limit=limit, glob="*")


def test_the_first_paths_are_exact_whatever_comes_in_which_snapshot(bench):
    rng = random.Random(5)
    expected = {}
    for _day in range(3):
        for number in range(30):
            bench.write(f"f{rng.randrange(60):02d}", b"x%d" % number)
        for name in rng.sample(sorted(os.listdir(bench.source)), 10):
            (bench.source / name).unlink()
        bench.backup()
        for name in os.listdir(bench.source):
            expected[name] = expected.get(name, 0) + 1
    for limit in (1, 3, 10, 25):
        result = found(bench, limit=limit, glob="f*")
        shown = [(one["path"], one["snapshots"]) for one in result["found"]]
        assert shown == sorted(expected.items())[:limit] and result["found_total"] == len(expected)


def test_a_regex_that_would_never_end_is_refused(bench, monkeypatch):
    bench.write("a" * 60 + "b", b"")
    bench.backup()
    assert found(bench, regex="^a+b$")["found_total"] == 1
    monkeypatch.setattr(conditions, "_GRACE", 0.1)
    with pytest.raises(Refused, match=r"regex takes too long: .* such as \(a\+\)\+"):
        found(bench, regex="^(a+)+$")
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0) and signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL
    assert found(bench, regex="^(a|b)+$")["found_total"] == 1


def test_all_jobs_of_a_host_and_all_hosts(three):
    shutil.copytree(three.folder, three.repository / "web1/other", symlinks=True)
    shutil.copytree(three.folder, three.repository / "web2/data", symlinks=True)
    (three.repository / "lost+found").mkdir()
    (three.repository / "file").write_text("")
    (three.repository / "link").symlink_to("web1")

    def jobs(host, job, limit=200):
        place = (str(three.repository), host, job)
        result = do_action("find", place, {"match": {"glob": "a"}, "limit": limit}, NOBODY).result
        assert result["found_total"] == result["searched"] // 3
        return [(one["host"], one["job"]) for one in result["found"]]

    assert jobs("web1", "other") == [("web1", "other")]
    assert jobs("web1", None) == [("web1", "data"), ("web1", "other")]
    assert jobs(None, None) == [("web1", "data"), ("web1", "other"), ("web2", "data")]
    assert jobs(None, None, limit=2) == [("web1", "data"), ("web1", "other")]
    opened = os.open

    def refuse(path, *given, **more):
        if path in ("web2", "lost+found"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refuse)
        done = do_action("find", (str(three.repository), None, None), {"match": {"glob": "a"}, "limit": 9}, NOBODY)
        with pytest.raises(Refused, match="could be searched: web2: its folder cannot be listed: Permission denied"):
            jobs("web2", None)
    reason = "its folder cannot be listed: Permission denied"
    assert done.result["unsearched"] == [{"host": "web2", "job": "", "snapshot": "", "reason": reason}]
    assert done.warnings == [f"web2: the folder was not searched: {reason}"]
    with pytest.raises(Refused, match="name the host, too"):
        jobs(None, "data")
    with pytest.raises(Refused, match="could be searched: there is none"):
        jobs("web3", None)
    with pytest.raises(Refused, match="give host and job"):
        do_action("history", (str(three.repository), None, None), {"path": "d/a"}, NOBODY)
    with pytest.raises(Refused, match="cannot be searched: No such file"):
        do_action("find", ("/none", None, None), {"match": {"glob": "a"}}, NOBODY)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_the_folder_of_another_user_is_told_and_the_others_are_searched(three):
    foreign = three.repository / "web1/foreign"
    shutil.copytree(three.folder, foreign, symlinks=True)
    os.chown(foreign, 4321, 4321)
    if os.stat(foreign).st_uid != 4321:
        pytest.skip("this file system does not keep owners")
    done = do_action("find", (str(three.repository), None, None), {"match": {"glob": "a"}}, NOBODY)
    assert [one["job"] for one in done.result["found"]] == ["data"] and done.result["searched"] == 3
    assert "web1/foreign: the folder was not searched: " in done.warnings[0] and "user 4321" in done.warnings[0]
    with pytest.raises(Refused, match="belongs to user 4321"):
        do_action("find", (str(three.repository), "web1", "foreign"), {"match": {"glob": "a"}}, NOBODY)


def test_a_manifest_that_cannot_be_read_is_told_and_the_others_are_searched(three):
    manifests = [three.path(name, "manifest") for name in (FIRST, SECOND, THIRD)]
    whole = manifests[1].read_bytes()
    for broken, reason in (
        (b"LHSNAP9\n" + whole[8:], "another format"),
        (whole[:-3], "cut short"),
        (b"x" * 100, "does not begin as a manifest"),
        (whole[:60] + bytes([whole[60] ^ 1]) + whole[61:], "the check of a frame is wrong"),
    ):
        manifests[1].write_bytes(broken)
        for action, options in (("find", {"match": {"glob": "new"}}), ("history", {"path": "new"})):
            if action == "history" and reason == "cut short":
                continue  # behind the path that it looks for it reads nothing
            done = ask(three, action, **options)
            (one,) = done.result["unsearched"]
            assert one["snapshot"] == SECOND and reason in one["reason"] and reason in done.warnings[0]
            assert done.result["searched"] == 2
    for manifest in manifests:
        manifest.unlink()
    with pytest.raises(Refused, match="could be searched: .*its manifest cannot be read: it is missing"):
        found(three, glob="new")
    with pytest.raises(Refused, match="could be searched"):
        ask(three, "history", path="new")


def test_a_snapshot_that_vanishes_while_it_is_searched_is_told(three, monkeypatch):
    real = search.open_to_read

    def vanishing(series, name):
        if name == SECOND:
            shutil.rmtree(three.path(SECOND))
        return real(series, name)

    monkeypatch.setattr(search, "open_to_read", vanishing)
    done = ask(three, "find", match={"glob": "a"})
    assert done.result["searched"] == 2 and done.result["found"][0]["snapshots"] == 2
    assert f"{SECOND} was not searched: it was removed while it was searched" in done.warnings[0]


def test_the_history_of_a_path(three):
    result = ask(three, "history", path="/d/a").result
    shown = [(one["first"], one["last"], one["snapshots"], one["mtime"]) for one in result["versions"]]
    assert shown == [(FIRST, THIRD, 2, "2026-11-21T12:00:05Z"), (SECOND, SECOND, 1, "2026-11-21T12:00:00Z")]
    contents = [record.content.hex() for record in (records(three, name)[b"d/a"] for name in (THIRD, SECOND))]
    assert [one["content"] for one in result["versions"]] == contents
    assert (result["versions_total"], result["vanished"], result["searched"]) == (2, {}, 3)
    gone = ask(three, "history", path="gone").result
    assert gone["vanished"] == {"last": FIRST, "gone_in": SECOND} and gone["versions_total"] == 1
    new = ask(three, "history", path="new").result
    assert new["vanished"] == {} and new["versions"][0]["first"] == SECOND
    assert ask(three, "history", path="d").result["versions"][0]["type"] == "d"
    latest = ask(three, "history", path="d/a", limit=1).result
    assert [one["first"] for one in latest["versions"]] == [SECOND] and latest["versions_total"] == 2


def test_a_path_that_no_snapshot_has_is_refused_with_what_may_be_meant(three):
    with pytest.raises(Refused, match="has 'd/A'. It is a path in the tree. Did you mean 'd/a'?"):
        ask(three, "history", path="d/A")
    with pytest.raises(Refused, match="has 'zzzz'"):
        ask(three, "history", path="zzzz")


def test_odd_names_are_shown_as_they_are_taken(bench):
    for name in (b"new\nline", b"\xff\xfe", b"\\#012", "ü ".encode()):
        with open(os.path.join(os.fsencode(bench.source), name), "wb"):
            pass
    bench.backup()
    shown = [one["path"] for one in found(bench, type="f")["found"]]
    assert len(shown) == 4 and all(path.isprintable() for path in shown)
    for path in shown:
        assert ask(bench, "history", path=path).result["versions_total"] == 1
        assert [one["path"] for one in found(bench, path=path)["found"]] == [path]


# Random questions

EPOCH = NOON - 10**6
CONDITIONS = ("path", "glob", "regex", "type", "size_min", "size_max", "newer", "older", "owner")


def make_random_tree(bench, rng):
    """Edit the source at random."""
    folders = ["", *(f"d{one}" for one in range(4)), *(f"d{one}/sub.{two}" for one in range(3) for two in range(3))]
    for _number in range(40):
        folder = rng.choice(folders)
        path = f"{folder}/{rng.choice(['file', 'x', 'Data'])}{rng.randrange(12)}.{rng.choice(['txt', 'jpg', 'c'])}"
        kind = rng.random()
        place = bench.source / path.strip("/")
        if kind < 0.2 and place.exists():
            place.unlink()
        elif kind < 0.3 and not os.path.lexists(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to("nowhere")
        elif not place.is_symlink():
            bench.write(path.strip("/"), b"z" * rng.choice([0, 1, 512, 5000, 70000]), EPOCH + rng.randrange(10**6))


def question(rng):
    """Return a match and the words for the program ``find`` that ask the same; the path comes first."""
    match, words, below = {}, [], ""
    for condition in rng.sample(
        ["path", "glob", "regex", "type", "size_min", "size_max", "newer", "older", "owner"], 2
    ):
        if condition == "path":
            below = match["path"] = rng.choice(["d0", "d1/sub.2", "d2/", "d3", "none"])
        elif condition == "glob":
            match["glob"] = rng.choice(["*", "*.txt", "file*", "x?.*", "[xD]*", "sub.[!1]", "Data1*.c"])
            words += ["-name", match["glob"]]
        elif condition == "regex":
            inner = match["regex"] = rng.choice(["sub", "1", "txt$", "^d1/", "le[0-9]+\\.j", "x|Data"])
            words += ["-regextype", "posix-extended", "-regex", f"data/({anchored(inner)})"]
        elif condition == "type":
            match["type"] = rng.choice("fdl")
            words += ["-type", match["type"]]
        elif condition.startswith("size"):
            size = rng.choice([0, 1, 512, 5000, 6000])
            match[condition] = size
            sign = [f"+{size - 1}c"] if condition == "size_min" and size else [f"-{size + 1}c"]
            words += ["-type", "f", *([] if condition == "size_min" and not size else ["-size", *sign])]
        elif condition == "owner":
            match["owner"] = rng.choice([os.getuid(), 4321])
            words += ["-uid", str(match["owner"])]
        else:
            at = EPOCH + rng.randrange(10**6)
            match[condition] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
            newer = ["-newermt", f"@{at - 1}.999999999"]
            words += newer if condition == "newer" else ["!", *newer]
    return match, f"data/{below.strip('/')}".rstrip("/"), words


def anchored(inner):
    """Return a regular expression for whole paths that is found where the other is found somewhere."""
    before = "" if inner.startswith("^") else ".*"
    after = "" if inner.endswith("$") else ".*"
    return f"{before}({inner.strip('^$')}){after}"


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_random_questions_are_answered_as_by_find_and_stat(bench, count):
    rng = random.Random(count)
    days = []
    for _day in range(4):
        make_random_tree(bench, rng)
        days.append(bench.backup().name)
    answered = 0
    for _number in range(count):
        match, start, words = question(rng)
        expected = {}
        for day in days:
            run = subprocess.run(
                ["find", start, *words, "-printf", "%P\\0%s\\0%Ts\\0%y\\0%m\\0%U\\0"],
                cwd=bench.path(day), capture_output=True, check=False,
            )  # fmt: skip
            values = run.stdout.split(b"\0")[:-1]
            for path, *stat in zip(*[iter(values)] * 6):
                whole = b"/".join(filter(None, (os.fsencode(start[5:]), path)))
                expected.setdefault(whole, []).append((day, stat))
        result = found(bench, limit=1000, **match)
        shown = {one["path"]: one for one in result["found"]}
        assert set(shown) == {escape(path) or "." for path in expected}, (match, words)
        assert result["matches"] == sum(map(len, expected.values()))
        for path, those in expected.items():
            one, (size, mtime, kind, mode, uid) = shown[escape(path) or "."], those[-1][1]
            assert (one["first"], one["last"], one["snapshots"]) == (those[0][0], those[-1][0], len(those))
            assert (one["type"], one["owner"]) == (kind.decode(), int(uid))
            if kind == b"f":
                at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(mtime)))
                assert (one["size"], one["mtime"], int(one["mode"], 8)) == (int(size), at, int(mode, 8))
        answered += bool(expected)
    assert answered > count / 4
