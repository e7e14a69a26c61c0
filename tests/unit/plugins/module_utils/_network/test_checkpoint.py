# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a checkpoint keeps and brings back: files, and the state of links."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._network import revert_agent
from ansible_collections.longhaul.fleet.plugins.module_utils._network.arming import build_archive
from ansible_collections.longhaul.fleet.plugins.module_utils._network.checkpoint import (
    Checkpoint,
    CheckpointError,
    armed_names,
    ended_sentence,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._network.live import parse_state, way_back
from ansible_collections.longhaul.fleet.plugins.module_utils._network.request import (
    Application,
    ArmingTerms,
    CheckpointRequest,
    CommandResult,
    Ending,
    Timer,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._network.saved import is_as_saved, restore, save
from ansible_collections.longhaul.fleet.plugins.module_utils._network.timer import timer_lives
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import address, link

ARMED_BY_0_1_0 = (
    '{"token": "ab12", "wanted": {"paths": ["/etc/netplan/95.yaml"], "links": ["eth0"], "made": [], '
    '"commands": [["netplan", "apply"]], "timeout": 180}, "files": [{"path": "/etc/netplan/95.yaml", '
    '"type": "absent", "highest": "/etc/netplan/95.yaml"}, {"path": "/etc/x", "mode": 420, "uid": 0, "gid": 0, '
    '"mtime": 1234567890123456789, "xattrs": {"user.a": "YQ=="}, "type": "file", "content": "2"}], '
    '"state": {"system": "Linux", "links": {"eth0": {"name": "eth0", "kind": "physical", "mtu": 1500, '
    '"min_mtu": 68, "max_mtu": 9216, "up": true, "mac": "02:00:00:00:00:01", "master": null, "parent": null, '
    '"addresses": [{"address": "10.0.0.1/24", "dynamic": false, "scope": "global", "broadcast": null}], '
    '"ports": [], "children": [], "speed": 10000, "driver": "virtio_net"}}, '
    '"routes": ["-4 default via 10.0.0.254 dev eth0"]}, "made": [], "commands": [["netplan", "apply"]], '
    '"boot_commands": [["netplan", "generate"]], "deadline": 1790000000.25, '
    '"timer": {"kind": "systemd", "unit": "longhaul-revert-one.timer"}, "survives_reboot": "systemd"}'
)


def snapshot(top):
    """Everything of a folder that a way back has to bring back."""
    found = {}
    for folder, names, files in os.walk(top):
        for name in ["", *names, *files]:
            path = os.path.join(folder, name)
            about = os.lstat(path)
            text = os.readlink(path) if os.path.islink(path) else Path(path).read_text() if name in files else None
            found[path] = (stat.S_IMODE(about.st_mode), about.st_uid, about.st_gid, about.st_mtime_ns, text)
    return found


@pytest.fixture
def tree(tmp_path):
    top = tmp_path / "etc"
    (top / "network").mkdir(parents=True)
    (top / "network/one").write_text("one\n")
    (top / "network/one").chmod(0o640)
    (top / "network/two").write_text("two\n")
    (top / "network/link").symlink_to("one")
    os.utime(top / "network/one", ns=(1, 1234567890123456789))
    (tmp_path / "kept").mkdir()
    return top


def test_a_folder_comes_back_exactly(tree):
    kept = str(tree.parent / "kept")
    before = snapshot(tree)
    records = save([str(tree / "network")], kept)
    (tree / "network/one").write_text("changed")
    (tree / "network/one").chmod(0o777)
    (tree / "network/two").unlink()
    (tree / "network/link").unlink()
    (tree / "network/link").mkdir()
    (tree / "network/link/in").write_text("x")
    (tree / "network/three").write_text("new")
    (tree / "network").chmod(0o700)
    assert restore(records, kept)
    assert {path: what for path, what in snapshot(tree).items() if path != f"{tree}/"} == {
        path: what for path, what in before.items() if path != f"{tree}/"
    }
    assert restore(records, kept) == []


def test_what_was_not_there_goes_with_the_folders_that_came_with_it(tree):
    kept = str(tree.parent / "kept")
    made = tree / "netplan/deep/90.yaml"
    records = save([str(made)], kept)
    made.parent.mkdir(parents=True)
    made.write_text("x")
    assert restore(records, kept) == [str(made)]
    assert not (tree / "netplan").exists() and tree.is_dir()


def test_a_folder_that_somebody_else_uses_by_now_stays(tree):
    kept = str(tree.parent / "kept")
    made = tree / "netplan/90.yaml"
    records = save([str(made)], kept)
    made.parent.mkdir()
    made.write_text("x")
    (tree / "netplan/other.yaml").write_text("y")
    restore(records, kept)
    assert os.listdir(tree / "netplan") == ["other.yaml"]


def test_a_file_that_became_a_folder(tree):
    kept = str(tree.parent / "kept")
    records = save([str(tree / "network/one")], kept)
    (tree / "network/one").unlink()
    (tree / "network/one/inside").mkdir(parents=True)
    restore(records, kept)
    assert (tree / "network/one").read_text() == "one\n"
    assert all(is_as_saved(record, kept) for record in records)


def test_what_cannot_be_kept_is_refused(tree):
    os.mkfifo(tree / "pipe")
    with pytest.raises(ValueError, match="neither a file, a folder nor a symlink"):
        save([str(tree)], str(tree.parent / "kept"))


def test_one_that_cannot_be_put_back_does_not_hold_up_the_others(tree):
    kept = tree.parent / "kept"
    records = save([str(tree / "network/one"), str(tree / "network/two")], str(kept))
    (tree / "network/one").unlink()
    (tree / "network/two").unlink()
    (kept / records[0].content).unlink()
    with pytest.raises(OSError, match="network/one"):
        restore(records, str(kept))
    assert (tree / "network/two").read_text() == "two\n"


def state(*links, routes=(), system="Linux"):
    return parse_state({"system": system, "links": {one["name"]: one for one in links}, "routes": list(routes)})


def back(before, after, made=()):
    return [" ".join(argv) for argv in way_back(before, after, made)]


def test_nothing_is_done_where_nothing_differs():
    assert back(state(link("eth0")), state(link("eth0"))) == []


def test_what_was_made_goes_first_and_alone():
    after = state(
        link("eth0", mtu=9000, master="bond0"),
        link("bond0", kind="bond", ports=["eth0"]),
        link("bond0.5", kind="vlan", parent="bond0"),
    )
    made = ["bond0", "bond0.5"]
    assert back(state(link("eth0")), after, made) == ["ip link delete dev bond0.5", "ip link delete dev bond0"]
    # one that was there before stays
    assert "ip link delete dev bond0" not in back(state(link("eth0"), link("bond0", kind="bond")), after, made)


def test_mtu_flags_addresses_and_routes():
    had = [address("10.0.0.1/24"), address("10.0.0.9/24", dynamic=True), address("fd00::9/64", dynamic=True)]
    had[0]["broadcast"] = "10.0.0.255"
    before = state(
        link("eth0", addresses=had),
        routes=["-4 default via 10.0.0.254 dev eth0 metric 5", "-4 10.0.0.0/24 dev eth0 proto kernel scope link"],
    )
    now = [address("192.0.2.1/24"), address("192.0.2.2/24", dynamic=True)]
    assert back(before, state(link("eth0", mtu=9000, up=False, addresses=now))) == [
        "ip link set dev eth0 mtu 1500",
        "ip link set dev eth0 up",
        "ip address delete 192.0.2.1/24 dev eth0",
        "ip address add 10.0.0.1/24 broadcast 10.0.0.255 dev eth0",
        "ip address add 10.0.0.9/24 dev eth0",
        "ip -4 route replace default via 10.0.0.254 dev eth0 metric 5",
    ]


def test_a_port_returns_to_its_bond_and_another_leaves():
    bond = link("bond0", kind="bond")
    before = state(link("eth0", master="bond0"), link("eth1"), bond)
    after = state(link("eth0", up=False), link("eth1", master="bond0"), bond)
    assert back(before, after) == [
        "ip link set dev eth0 down",
        "ip link set dev eth0 master bond0",
        "ip link set dev eth1 nomaster",
        "ip link set dev eth0 up",
    ]


def test_freebsd():
    before = state(link("em0", addresses=[address("10.0.0.1/24")]), system="FreeBSD")
    after = state(link("em0", mtu=9000), link("lagg0", kind="bond"), system="FreeBSD")
    assert back(before, after, ["lagg0"]) == [
        "ifconfig lagg0 destroy",
        "ifconfig em0 mtu 1500",
        "ifconfig em0 inet 10.0.0.1/24 alias",
    ]


def request(**more):
    wanted = ArmingTerms(["/etc/x"], ["eth0"], [], [["true"]], 60)
    return CheckpointRequest("t", wanted, [], state(link("eth0")), [], [["true"]], [], **more)


def test_a_checkpoint_is_armed_as_long_as_its_folder_says_so(tmp_path):
    one = Checkpoint("one", str(tmp_path / "root"))
    assert one.request is None and one.last is None and armed_names(one.root) == [] and one.seconds_left() == 0
    one.create()
    assert armed_names(one.root) == []  # an arming that did not come to its end
    one.write_request(request(deadline=100.0))
    assert armed_names(one.root) == ["one"] and one.seconds_left(40.0) == 60 and one.seconds_left(200.0) == 0
    assert stat.S_IMODE(os.stat(one.folder).st_mode) == 0o700
    with one.locked():
        one.close("reverted", "timer", ["eth0 is gone"])
    assert armed_names(one.root) == [] and not os.path.exists(one.folder)
    assert one.last.outcome == "reverted" and one.last.by == "timer" and one.last.errors == ["eth0 is gone"]


def test_what_is_armed_is_read_back(tree):
    one = Checkpoint("one", str(tree.parent / "root"))
    one.create()
    kept = save([str(tree / "network"), str(tree / "missing/file")], one.files)
    armed = request(timer=Timer("process", pid=7), deadline=5.5, survives_reboot="cron")._replace(files=kept)
    one.write_request(armed)
    assert one.request == armed and {record.type for record in kept} == {"folder", "file", "link", "absent"}
    assert one.applied == Application()
    job = Application([["true"], ["false"]], (CommandResult(["true"], 0, "", 0.5),))
    one.write_applied(job)
    assert one.applied == job


def test_what_an_earlier_version_armed_is_read(tmp_path):
    one = Checkpoint("one", str(tmp_path / "root"))
    one.create()
    Path(one.folder, "checkpoint.json").write_text(ARMED_BY_0_1_0)
    found = one.request
    assert found.timer == Timer("systemd", "longhaul-revert-one.timer") and found.deadline == 1790000000.25
    assert found.files[0].highest == "/etc/netplan/95.yaml" and found.state.links["eth0"].addresses[0].fixed
    # and what is written now is the same, byte for byte
    one.write_request(found)
    assert Path(one.folder, "checkpoint.json").read_text() == ARMED_BY_0_1_0


def test_another_shape_is_refused_with_the_way_out(tmp_path):
    one = Checkpoint("one", str(tmp_path / "root"))
    one.create()
    Path(one.folder, "checkpoint.json").write_text('{"token": 5}')
    with pytest.raises(CheckpointError, match="checkpoint.json cannot be read: wanted is None.* put back"):
        assert one.request
    Path(one.folder, "checkpoint.json").write_text("{")  # a crash while it was written
    assert one.request is None


def test_an_arming_that_was_interrupted_has_no_timer():
    assert not timer_lives(Timer("none")) and timer_lives(Timer("process", pid=os.getpid()))


def test_what_could_not_be_put_back_is_kept_until_the_next_time(tmp_path):
    one = Checkpoint("one", str(tmp_path / "root"))
    for keep in (True, False):
        one.create()
        one.write_request(request())
        one.close("reverted", "timer", ["x"], keep=keep)
        assert os.path.isdir(f"{one.kept}/files") == keep and armed_names(one.root) == []


def test_how_it_ended_is_said():
    last = Ending("reverted", "timer", 100.0, [])
    assert ended_sentence("x", last, 130.0) == "the checkpoint x was reverted by its own timer 30 s ago"
    assert "was confirmed 5 s ago" in ended_sentence("x", last._replace(outcome="confirmed", by="request", at=125), 130)
    assert ended_sentence("x", last._replace(errors=["a", "b"]), 130.0).endswith("with errors: a; b")
    assert "was ever armed" in ended_sentence("x", None, 0)


@pytest.mark.parametrize("name", ["", "a/b", "../x", "-x", "a b", "x" * 65])
def test_names_that_would_be_no_unit_are_refused(name):
    with pytest.raises(CheckpointError):
        Checkpoint(name)


def test_the_program_holds_all_that_it_imports(tmp_path):
    path = str(tmp_path / "checkpoint.pyz")
    build_archive(path)
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
    modules = ("revert_agent", "saved", "live", "timer", "checkpoint")
    assert {"longhaul/_core/subprocesses.py", *(f"longhaul/_network/{name}.py" for name in modules)} <= names
    argv = [sys.executable, "-I", path, "wait", str(tmp_path), "name", "token", "60"]  # for what is not armed
    ended = subprocess.run(argv, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_commands_that_come_late_do_not_run_against_the_way_back(tmp_path, monkeypatch):
    """A process that systemd starts late finds the way back at work, and must wait until it is too late for it."""
    one = Checkpoint("one", str(tmp_path / "root"))
    one.create()
    one.write_request(request())
    one.write_applied(Application([["touch", str(tmp_path / "applied")]]))
    late = []

    def restore_slowly(_records, _folder):
        late.append(threading.Thread(target=revert_agent.main, args=(["apply", one.root, "one", "t", "0"],)))
        late[0].start()
        time.sleep(0.5)
        return []

    monkeypatch.setattr(revert_agent, "restore", restore_slowly)
    monkeypatch.setattr(revert_agent, "bring_back", lambda _state, _made: [])
    monkeypatch.setattr(revert_agent.os, "setsid", lambda: None)
    assert revert_agent.revert(one, "t", "timer") == 0
    late[0].join()
    assert not (tmp_path / "applied").exists() and not os.path.exists(one.folder)
