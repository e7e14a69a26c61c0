# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Method rsyncd with real daemons, on the loopback net."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import PeerUnreachable, TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsyncd import method as rsyncd
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsyncd import server as rsyncd_server
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsyncd.conf import (
    DaemonPlan,
    boolean,
    daemon_conf,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsyncd.server import password_files
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.conf import load
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import ID, Pair, settings
from hypothesis import given
from hypothesis import strategies as st

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
SECRET = "not-a-secret-of-anybody"


@pytest.fixture(name="pair")
def a_pair(tmp_path) -> Pair:
    return Pair(tmp_path)


def modules_of(text: str) -> dict[str, dict[str, str]]:
    """Read a configuration as the probe does: the options of each module, by their names."""
    return {module.name: module.named() for module in load("conf", lambda _path: text, lambda _path: None).modules}


def serving(pair: Pair, side: str = "dest", **serve):
    context = pair.context(side, "serve", settings(method="rsyncd"))
    context.serve.update({"address": "127.0.0.1", "ports": [0], "allow": ["127.0.0.1"], **serve})
    context.secrets = {"daemon": SECRET}
    return context


# configuration


def test_a_configuration_is_read_as_rsync_reads_it():
    text = """\
# a comment
uid = root
Read Only = no
[one]
  path = /srv/one
  hosts_allow = 10.0.0.1 \\
     10.0.0.2
  use chroot = no # not a comment
[ two  words ]
ReadOnly=yes
path = /srv/[2]
[global]
timeout = 5
[three]
read-only = true
"""
    found = modules_of(text)
    assert found["one"]["hosts allow"] == "10.0.0.1 10.0.0.2"
    assert found["one"]["read only"] == "no"
    assert found["one"]["uid"] == "root"
    assert found["one"]["use chroot"] == "no # not a comment"
    assert boolean(found["one"]["use chroot"], True) is True  # badly formed: the default stands
    assert found["two words"] == {"uid": "root", "read only": "yes", "path": "/srv/[2]"}
    assert found["three"]["read only"] == "no"
    assert found["three"]["timeout"] == "5"


PLAN = DaemonPlan("/srv/data", True, True, True, ("10.0.0.2",), "/dev/shm/s", "/job", 60)


def test_what_is_written_is_what_is_read():
    module = modules_of(daemon_conf(PLAN))["longhaul"]
    assert module["path"] == "/srv/data"
    assert (module["read only"], module["write only"], module["use chroot"]) == ("no", "yes", "yes")
    assert (module["hosts allow"], module["hosts deny"], module["uid"]) == ("10.0.0.2", "*", "0")


@given(st.text(min_size=1, max_size=30))
def test_no_path_becomes_another_option(path):
    plan = DaemonPlan("/" + path, False, False, True, (), "/s", "/job", 60)
    try:
        text = daemon_conf(plan)
    except ValueError:
        return
    (module,) = list(modules_of(text).values())
    assert module["path"] == "/" + path
    assert module["read only"] == "yes"


@pytest.mark.parametrize("path", ["/a\nread only = no", "/a ", "/a\\", "/a%HOME%"])
def test_paths_that_the_format_cannot_hold(path):
    with pytest.raises(ValueError, match="rsyncd.conf"):
        daemon_conf(DaemonPlan(path, False, False, True, (), "/s", "/job", 60))


# a daemon of its own


@needs_root
def test_nothing_remains_and_nothing_is_shown(pair):
    context = serving(pair)
    server = rsyncd.serve(context)
    assert len(password_files(ID)) == 1
    assert not server.active()
    with connected(server.ready["port"]):
        (daemon,) = daemons(context.folder)
        for path in filter(Path.is_file, Path(context.folder).iterdir()):
            assert SECRET not in path.read_text()
        assert SECRET not in shown_by_processes()
        assert not server.active()  # nobody has logged in
        server.close()
    assert password_files(ID) == []
    assert os.listdir(context.folder) == []
    assert not Path(f"/proc/{daemon}").exists()


@needs_root
def test_files_on_their_way_are_taken_over_when_no_process_writes_them(pair):
    """A killed process leaves such files; one whose login is not noticed yet may be writing its own."""
    plan = settings(method="rsyncd", bwlimit=200_000)
    staging = pair.staged(plan)
    on_its_way, partial = staging / "tmp" / "large.AbCdEf", staging / "partial" / "large"
    (pair.source / "file").write_bytes(os.urandom(100_000))
    server = rsyncd.serve(serving(pair))
    try:
        looking = threading.Thread(target=wait_for, args=(server.active,))
        looking.start()
        driving = pair.context("source", "drive", plan)
        driving.peer, driving.secrets = {**server.ready, "address": "127.0.0.1"}, {"daemon": SECRET}
        assert rsyncd.drive(driving).errors == []
        looking.join()
        with connected(server.ready["port"]):
            on_its_way.write_text("half of it")
            wait_for(lambda: not server.active(), seconds=10)
            with connected(server.ready["port"]):
                assert on_its_way.read_text() == "half of it"

        def is_taken_over() -> bool:
            time.sleep(0.5)  # as a client waits before it connects again: the daemon needs 0.1 s to notice an end
            with connected(server.ready["port"]):
                return not on_its_way.exists()

        wait_for(is_taken_over, seconds=10)
        assert partial.read_text() == "half of it"
    finally:
        server.close()
        pair.close()


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """Speak to a daemon as a client does, up to its greeting."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b"@RSYNCD: 31.0 sha512\n")
        assert client.recv(1000).startswith(b"@RSYNCD: ")
        yield client


def daemons(folder: str) -> list[int]:
    """Return the processes that run with a daemon's configuration in this folder."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{name}/cmdline").read_bytes()
            if command.startswith(b"rsync") and f"--config={folder}/".encode() in command:
                found.append(int(name))
    return found


def shown_by_processes() -> str:
    text = ""
    for name in filter(str.isdigit, os.listdir("/proc")):
        for file in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                text += Path(f"/proc/{name}/{file}").read_bytes().decode("utf-8", "replace")
    return text


@needs_root
def test_the_daemon_dies_with_the_job(pair):
    context = serving(pair)
    read, write = os.pipe()
    job = os.fork()
    if not job:
        try:
            server = rsyncd.serve(context)
            os.write(write, f"{server.ready['port']} {server._secrets}".encode())
            time.sleep(60)
        finally:
            os._exit(0)
    os.close(write)
    port, secrets = os.read(read, 1000).decode().split()
    with connected(int(port)):
        assert len(daemons(context.folder)) == 1
        os.kill(job, signal.SIGKILL)
        os.waitpid(job, 0)
        end = time.monotonic() + 10
        while (daemons(context.folder) or os.path.exists(secrets)) and time.monotonic() < end:
            time.sleep(0.02)
    assert daemons(context.folder) == []
    assert not os.path.exists(secrets)


@needs_root
def test_a_busy_port_is_passed_over_or_named(pair):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        with pytest.raises(TransferFailed, match=f"{port}.*taken"):
            rsyncd.serve(serving(pair, ports=[port]))
        server = rsyncd.serve(serving(pair, ports=[port, 0]))
        assert server.ready["port"] != port
        server.close()


@needs_root
def test_an_address_of_another_host_is_refused(pair):
    with pytest.raises(TransferFailed, match="longhaul_address"):
        rsyncd.serve(serving(pair, address="192.0.2.1"))
    assert os.listdir(pair.folder / "job-dest") == []


@needs_root
@pytest.mark.parametrize(
    ("peer", "secret", "error", "words"),
    [
        ({}, "wrong", TransferFailed, "password"),
        ({"address": "127.0.0.9"}, SECRET, PeerUnreachable, "listens"),
    ],
)
def test_a_wrong_secret_or_address_ends_it_at_once(pair, peer, secret, error, words):
    (pair.source / "a").write_text("x")
    pair.staged(settings(method="rsyncd"))
    server = rsyncd.serve(serving(pair))
    try:
        context = pair.context("source", "drive", settings(method="rsyncd"))
        context.peer = {**server.ready, "address": "127.0.0.1", **peer}
        context.secrets = {"daemon": secret}
        with pytest.raises(error, match=words):
            rsyncd.drive(context)
    finally:
        server.close()
        pair.close()
    pair.unstage()
    assert os.listdir(pair.dest) == []


@needs_root
def test_a_peer_that_is_not_allowed(pair):
    server = rsyncd.serve(serving(pair, allow=["10.9.9.9"]))
    try:
        context = pair.context("source", "drive", settings(method="rsyncd"))
        context.peer, context.secrets = {**server.ready, "address": "127.0.0.1"}, {"daemon": SECRET}
        with pytest.raises(TransferFailed, match="longhaul"):
            rsyncd.drive(context)
    finally:
        server.close()


def test_a_daemon_never_holds_older_snapshots(pair):
    """Its module would reach both, and be writable: the source could change what it gave before."""
    (pair.folder / "old").mkdir()
    with pytest.raises(TransferFailed, match="change the older copies"):
        pair.over("rsyncd", "push", link_dest=[str(pair.folder / "old")])
    pair.close()


@needs_root
@pytest.mark.parametrize("connect", ["push", "pull"])
def test_unchanged_files_are_linked_to_an_older_snapshot(pair, connect):
    (pair.source / "same").write_text("x")
    old = pair.folder / "old"
    subprocess.run(["cp", "-a", str(pair.source), str(old)], check=True)
    (pair.source / "new").write_text("y")
    for method in ("rsync", "rsyncd")[: 1 if connect == "push" else 2]:
        outcome = pair.over(method, connect, link_dest=[str(old)])
        assert (outcome.failure, outcome.errors, outcome.bytes_sent) == ("", [], 1)
        assert os.stat(pair.dest / "same").st_ino == os.stat(old / "same").st_ino
        for name in ("same", "new"):
            (pair.dest / name).unlink()


@pytest.mark.parametrize(
    ("path", "target", "kept"),
    [
        (b"l", b"x", True),
        (b"l", b"x/y", True),
        (b"d/l", b"../x", True),
        (b"l", b"../x", False),
        (b"d/l", b"../../x", False),
        (b"l", b"/etc/passwd", False),
        (b"l", b"a//b", False),
        (b"l", b"a/../b", False),
        (b"l", b"./a", False),
    ],
)
def test_which_symlinks_a_daemon_without_chroot_keeps(path, target, kept):
    assert rsyncd.kept_without_chroot(path, target) is kept


@needs_root
@pytest.mark.parametrize("side", ["dest", "source"])
@pytest.mark.skipif(not os.path.exists("/usr/bin/python3"), reason="needs a Python that every user may run")
def test_a_daemon_of_an_ordinary_user(side, monkeypatch):
    """The tree arrives as it is, or is refused with what to do: symlinks are never rewritten silently."""
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    "a".encode("idna")  # loaded now: this Python's own folder may be closed to that user
    with tempfile.TemporaryDirectory() as folder:
        pair = Pair(Path(folder))
        (pair.source / "d").mkdir()
        (pair.source / "d" / "file").write_text("x")
        os.symlink("../d/file", pair.source / "d" / "link")
        if side == "source":
            os.symlink("/etc/passwd", pair.source / "absolute")
        subprocess.run(["chown", "-hR", "65534:65534", folder], check=True)
        with as_user(65534):
            connect = "push" if side == "dest" else "pull"
            kept = ["times", "permissions", "hardlinks"]
            outcome = pair.over_daemon(connect, preserve=kept)
            assert (outcome.failure, outcome.errors) == ("", [])
            assert differences(pair.source, pair.dest) == []
            assert not pair.over_daemon(connect, preserve=kept).changed
            if side == "dest":
                os.symlink("/etc/passwd", pair.source / "absolute")
                with pytest.raises(TransferFailed, match="absolute.*become"):
                    pair.over_daemon(connect, preserve=kept)


@contextlib.contextmanager
def as_user(uid: int) -> Iterator[None]:
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(uid, uid, 0)
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


# a daemon that is there

MODULES = {
    "good": "read only = no\nuid = root\ngid = 0\nuse chroot = yes",
    "readonly": "uid = root",
    "writeonly": "read only = no\nwrite only = yes\nuid = root",
    "denied": "read only = no\nhosts allow = 10.9.9.9",
    "nowhere": "read only = no\npath = /no/such/path",
    "baduser": "read only = no\nuid = no-such-user",
    "nodelete": "read only = no\nuid = root\nrefuse options = delete",
    "secret": "read only = no\nuid = root\nauth users = somebody",
    "unchrooted": "read only = no\nuid = root\nuse chroot = no",
}


@pytest.fixture(name="daemon", scope="module")
def a_daemon(tmp_path_factory) -> Iterator[tuple[Path, int]]:
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "data").mkdir()
    (folder / "secrets").write_text("somebody:geheim\n")
    (folder / "secrets").chmod(0o600)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = f"address = 127.0.0.1\nport = {port}\nlog file = {folder}/log\npid file = {folder}/pid\n"
    text += f"lock file = {folder}/lock\nsecrets file = {folder}/secrets\npath = {folder}/data\n"
    for name, lines in MODULES.items():
        text += f"[{name}]\n{lines}\n"
    (folder / "conf").write_text(text)
    process = subprocess.Popen(["rsync", "--daemon", "--no-detach", f"--config={folder}/conf"])
    for _attempt in range(200):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            break
        time.sleep(0.02)
    yield folder, port
    process.terminate()
    process.wait()


def through(pair: Pair, daemon, module: str, connect: str = "push", password: str = "", **changes):
    """Run a transfer with a configured daemon; its root is data/sub of the module."""
    folder, port = daemon
    far = folder / "data" / "sub"
    far.mkdir(exist_ok=True)
    options = modules_of((folder / "conf").read_text()).get(module)
    described = {"name": module, "user": "somebody" if password else None, "port": port, "subpath": "sub"}
    plan = settings(method="rsyncd", rsyncd_module=dict(described, options=options), **changes)
    drive, serve = ("source", "dest") if connect == "push" else ("dest", "source")
    if connect == "push":
        pair.dest = far
    else:
        pair.source = far
    pair.staged(plan)
    stander = rsyncd.serve(pair.context(serve, "serve", plan))
    context = pair.context(drive, "drive", plan)
    context.peer, context.secrets = {**stander.ready, "address": "127.0.0.1"}, {"rsyncd_password": password}
    try:
        return rsyncd.drive(context)
    finally:
        stander.close()
        pair.unstage()


def test_a_configured_daemon_is_looked_at_no_more_than_once_a_second(pair, daemon, monkeypatch):
    looks, times = [], iter([0.0, 0.0, 0.1, 1.1, 5.1, 9.0, 206.0, 206.0])
    monkeypatch.setattr(rsyncd_server, "has_socket", lambda port, state: looks.append(port) or len(looks) % 2 == 1)
    monkeypatch.setattr(rsyncd_server.time, "monotonic", lambda: next(times))
    plan = settings(method="rsyncd", rsyncd_module={"name": "good", "port": daemon[1], "subpath": ""})
    stander = rsyncd_server.ConfiguredDaemon(pair.context("source", "serve", plan), plan["rsyncd_module"])
    said = [stander.active() for _one in range(5)]
    # The second look took four seconds, so that the third comes 200 seconds after it.
    assert (said, len(looks)) == ([True, True, False, False, True], 3)


@needs_root
@pytest.mark.parametrize("connect", ["push", "pull"])
def test_a_good_module_is_used(pair, daemon, connect):
    if connect == "push":
        (pair.source / "file").write_text("x")
        os.symlink("/etc/passwd", pair.source / "link")
    outcome = through(pair, daemon, "good", connect, delete=True, max_delete=100)
    assert (outcome.failure, outcome.errors, outcome.warnings) == ("", [], [])
    assert differences(pair.source, pair.dest) == []
    assert not through(pair, daemon, "good", connect).changed


@needs_root
@pytest.mark.parametrize(
    ("module", "connect", "words", "changes"),
    [
        ("readonly", "push", "read only = no", {}),
        ("writeonly", "pull", "write only = no", {}),
        ("denied", "push", "hosts allow", {}),
        ("nowhere", "push", "chdir|does not exist|chroot", {}),
        ("baduser", "push", "no-such-user", {}),
        ("nodelete", "push", "refuse options", {"delete": True}),
        ("nothere", "push", "nothere", {}),
        ("secret", "push", "password", {}),
    ],
)
def test_a_module_that_declines_is_named_before_anything_is_written(pair, daemon, module, connect, words, changes):
    if connect == "push":
        (pair.source / "unwanted").write_text("x")
    with pytest.raises(TransferFailed, match=words):
        through(pair, daemon, module, connect, **changes)
    assert "unwanted" not in os.listdir(pair.dest)


@needs_root
def test_a_module_with_a_password(pair, daemon):
    (pair.source / "file").write_text("x")
    outcome = through(pair, daemon, "secret", password="geheim")
    assert (outcome.failure, outcome.errors) == ("", [])
    assert not [word for words in outcome.cmd.values() for word in words if "geheim" in word]


@needs_root
def test_a_module_without_chroot_gets_no_absolute_symlinks(pair, daemon):
    os.symlink("/etc/passwd", pair.source / "absolute")
    with pytest.raises(TransferFailed, match="rewrite"):
        through(pair, daemon, "unchrooted")


def test_a_module_of_another_user_is_warned_of():
    (warning,) = rsyncd.module_warnings({"name": "m", "options": {"path": "/x"}}, "source")
    assert "nobody" in warning
    assert rsyncd.module_warnings({"name": "m", "options": {"uid": "root"}}, "source") == []
    assert rsyncd.module_warnings({"name": "m"}, "source") == []
