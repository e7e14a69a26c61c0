# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible runs it: each action, check mode and diff true to the word, and clear failures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._snapshot.conftest import (
    Bench,
    contents,
    transfer,
)

MODULE = Path(__file__).resolve().parents[4] / "plugins/modules/snapshot.py"


class Host:
    """A bench whose repository the module works on."""

    def __init__(self, top):
        self.bench = Bench(top)
        self.top = top

    def run(self, action, check=False, **options):
        """Run the module; gives its result."""
        arguments = {
            "action": action,
            "repository": str(self.bench.repository),
            "host": "web1",
            "job": "data",
            "_ansible_check_mode": check,
            "_ansible_diff": True,
            "_ansible_remote_tmp": str(self.top),
            **options,
        }
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(self.top)}
        ran = subprocess.run(
            [sys.executable, str(MODULE)],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.stdout.startswith("\n{") or ran.stdout.startswith("{"), ran.stderr + ran.stdout
        return json.loads(ran.stdout)

    def both(self, action, **options):
        """Run in check mode, which must change nothing and promise what the real run then does; gives that one."""
        before = self.state()
        promised = self.run(action, check=True, **options)
        assert self.state() == before
        done = self.run(action, **options)
        assert not done.get("failed"), done["msg"]
        for key in ("changed", "diff", "removed", "kept", "resumed", "base", "aside"):
            assert without_times(promised.get(key)) == without_times(done.get(key)), key
        return done

    def state(self):
        if not self.bench.folder.exists():
            return sorted(os.listdir(self.bench.repository))
        return sorted((path, os.lstat(path).st_mtime_ns) for path in self.bench.folder.rglob("*"))


def without_times(found):
    """Leave out what the second of the run decides: the name that an unfinished snapshot will have."""
    return json.loads(re.sub(r"to be [0-9TZ-]+", "to be named", json.dumps(found)))


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_the_life_of_backups(host):
    host.bench.write("a", b"1")
    host.bench.write("b", b"2")
    begun = host.both("begin", run="one")
    assert (begun["changed"], begun["link_dest"], begun["resumed"]) == (True, [], False)
    unfinished = f".unfinished unfinished, to be {begun['name']}\n"
    assert begun["diff"] == {"before": "", "after": unfinished}
    assert not host.both("begin", run="one")["changed"]
    transfer(host.bench.source, begun["path"])
    done = host.both("finish", run="one", expected_entries=3, expected_bytes=2)
    first = done["name"]
    assert done["diff"] == {"before": unfinished, "after": f"{first} complete\nlatest -> {first}\n"}
    assert done["figures"]["new_bytes"] == 2
    assert not host.both("finish", run="one")["changed"]
    again = host.both("begin", run="one")
    assert (again["changed"], again["finished"], again["name"]) == (False, True, first)

    begun = host.both("begin", run="two")
    assert begun["link_dest"] == [str(host.bench.path(first, "data"))]
    transfer(host.bench.source, begun["path"], begun["link_dest"])
    second = host.both("finish", run="two")["name"]
    found = host.run("list")
    assert not found["changed"]
    shown = [[item[key] for key in ("name", "state", "latest", "size", "new_data")] for item in found["snapshots"]]
    assert shown == [[first, "complete", False, 2, 2], [second, "complete", True, 2, 0]]
    assert found["snapshots"][0]["time"].replace(":", "") == first

    # set aside, refused to prune, discarded
    begun = host.run("begin", run="three")
    (host.bench.source / "a").unlink()
    transfer(host.bench.source, begun["path"], begun["link_dest"])
    aside = host.both("finish", run="three", shrink_limit=10)
    assert "(1 of 2)" in aside["aside"]
    assert "was set aside" in json.dumps(aside["warnings"])
    refused = host.run("prune", keep={"last": 1})
    assert refused["failed"]
    assert "accept or discard" in refused["msg"]
    assert host.both("discard", name=aside["name"])["changed"]
    assert not host.both("discard", name=aside["name"])["changed"]

    # checked and pruned
    sound = host.run("check")
    assert (sound["sound"], sound["changed"], sound["checked"]["files_read"]) == (True, False, 2)
    lazy = host.both("prune", keep={"last": 1}, lazy=True)
    assert lazy["diff"]["after"] == f".removing-{first} removing\n{second} complete\nlatest -> {second}\n"
    assert host.both("prune", keep={"last": 1})["leftovers"] == [f".removing-{first}"]
    assert not host.both("prune", keep={"last": 1})["changed"]
    assert host.bench.data(second) == {"a": b"1", "b": b"2"}


def test_accepting(host):
    for run, name in (("one", "a"), ("two", "b")):
        for old in host.bench.source.iterdir():
            old.unlink()
        host.bench.write(name, b"1")
        begun = host.run("begin", run=run)
        transfer(host.bench.source, begun["path"], begun["link_dest"])
        done = host.run("finish", run=run)
    assert done["aside"]
    assert host.both("accept", name=done["name"])["changed"]
    assert not host.both("accept", name=done["name"])["changed"]
    assert host.run("list")["snapshots"][-1]["latest"]


def test_a_damaged_file_fails_the_check_and_is_named(host):
    host.bench.write("a", b"1234")
    name = host.bench.backup().name
    place = host.bench.path(name, "data/a")
    status = place.stat()
    place.write_bytes(b"1235")
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
    before = host.state()
    for check in (True, False):
        found = host.run("check", check=check, check_subset="1/1")
        assert found["failed"]
        assert (found["sound"], found["problems_total"], found["problems"][0]["path"]) == (False, 1, "a")
        assert f"'a' in {name}: its contents are" in found["msg"]
        assert (host.state() == before) == check  # only a real run writes down what it found
    assert host.run("list")["snapshots"][0]["damaged"] == ["a"]


def test_one_damaged_file_of_several_snapshots_is_one_problem(host):
    host.bench.write("a", b"1234")
    first, second = host.bench.backup().name, host.bench.backup().name
    place = host.bench.path(second, "data/a")
    status = place.stat()
    place.write_bytes(b"1235")
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
    found = host.run("check", check_subset="1/1")
    assert found["problems_total"] == len(found["problems"]) == 1
    assert f"1 problem: 'a' in {first}, {second}: " in found["msg"] and "more" not in found["msg"]


def test_adopting(host):
    tree = host.bench.repository / "old" / "daily.0" / "web1"
    tree.mkdir(parents=True)
    (tree / "file").write_bytes(b"1")
    options = {"rsnapshot_root": str(host.bench.repository / "old"), "rsnapshot_path": "web1"}
    done = host.both("adopt_rsnapshot", **options)
    ((name, folder),) = done["adopted"].items()
    assert folder == "daily.0"
    assert host.bench.data(name) == contents(tree)
    again = host.both("adopt_rsnapshot", **options)
    assert (again["changed"], again["present"]) == (False, {name: "daily.0"})
    nightly = tree.parents[1] / "nightly.0" / "web1"  # a level of a name that nobody could guess
    nightly.mkdir(parents=True)
    os.utime(nightly.parent, (1_000_000_000, 1_000_000_000))
    assert not host.both("adopt_rsnapshot", **options)["changed"]
    more = host.both("adopt_rsnapshot", rsnapshot_levels=["nightly"], **options)
    assert (list(more["adopted"].values()), more["present"]) == (["nightly.0"], {})


def test_a_whole_run_in_check_mode_leaves_nothing(host):
    assert host.run("begin", check=True, run="one")["changed"]
    done = host.run("finish", check=True, run="one")
    assert (done["changed"], done["name"]) == (True, "")
    assert host.run("list")["snapshots"] == []
    assert not host.both("prune", keep={"daily": 1})["changed"]
    assert os.listdir(host.bench.repository) == []


@pytest.mark.parametrize(
    "action, options, text",
    [
        ("prune", {"keep": {}}, "policy is empty"),
        ("prune", {"keep": {"within": "soon"}}, "no span of time"),
        ("prune", {"keep": {"last": 1}, "timezone": "Europe/Nowhere"}, "time zone"),
        ("prune", {}, "keep"),
        ("begin", {}, "run"),
        ("begin", {"run": "x", "repository": "/nonexistent/backup"}, "mount it"),
        ("begin", {"run": "x", "host": "../../etc"}, "name of a folder"),
        ("finish", {"run": "x"}, "begin one first"),
        ("check", {}, "nothing that a check could prove"),
        ("check", {"check_subset": "2/1"}, "the subset"),
        ("accept", {"name": "x"}, "no name of a snapshot"),
        ("adopt_rsnapshot", {"rsnapshot_root": "/nonexistent"}, "cannot be opened"),
    ],
)
def test_failures_are_clear(host, action, options, text):
    found = host.run(action, **options)
    assert found["failed"]
    assert text in found["msg"]
    assert "Traceback" not in found["msg"]


def test_a_held_lock_is_said(host):
    host.bench.backup()
    with host.bench.series() as series, series.lock("backup of web1"):
        found = host.run("prune", keep={"last": 1})
        assert host.run("list")["snapshots"]
        assert not host.run("prune", check=True, keep={"last": 1}).get("failed")
    assert found["failed"]
    assert "in use: backup of web1" in found["msg"]


def test_an_error_of_the_file_system_is_no_traceback(host):
    host.bench.series().close()
    (host.bench.folder / "latest").mkdir()
    (host.bench.folder / "latest" / "precious").touch()
    begun = host.run("begin", run="one")
    assert not begun.get("failed")
    found = host.run("finish", run="one", shrink_limit=100)
    assert found["failed"]
    assert "cannot be worked on" in found["msg"]
    assert (host.bench.folder / "latest" / "precious").exists()
