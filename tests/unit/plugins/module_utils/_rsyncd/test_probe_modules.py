# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The diagnosis names what is wrong with a real daemon, on the loopback net."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.diagnose import ModuleEnvironment, cause
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.probe_modules import (
    Diagnosis,
    DiagnosisRequest,
    choose_login,
)

pytestmark = pytest.mark.long
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NOBODY = pwd.getpwnam("nobody")


class Bench:
    """A daemon with modules in a folder that every user may enter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir()
        self.secrets = folder / "secrets"
        self.secrets.write_text("alice:right\nbob:other\n")
        self.secrets.chmod(0o600)
        self.config = folder / "rsyncd.conf"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen | None = None

    def start(self, *lines: str, start: str = "") -> None:
        """Start the daemon with the module ``data``, whose options the lines are."""
        user = ("uid = 0", "gid = 0") if not any(line.startswith("uid") for line in lines) else ()
        path = () if any(line.startswith("path") for line in lines) else (f"path = {self.data}",)
        text = [f"port = {self.port}", f"log file = {self.folder}/log", "address = 127.0.0.1", "reverse lookup = no"]
        text += [start, "[data]", *path, *(user if os.geteuid() == 0 else ()), *lines]
        self.config.write_text("\n".join(text) + "\n")
        argv = ["rsync", "--daemon", "--no-detach", f"--config={self.config}"]
        self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("the daemon does not listen")

    def find(self, **changes) -> Diagnosis:
        """Diagnose it; ``changes`` to the request."""
        request = DiagnosisRequest(
            config=str(self.config),
            modules=[],
            clients=[],
            options=["--archive", "--delete"],
            logins={},
            unit="rsync.service",
            pid=self._process.pid if self._process else 0,
            rsync=shutil.which("rsync") or "rsync",
            nsenter=shutil.which("nsenter") or "",
            journalctl="",
            version="rsync  version 3.5.0  protocol version 32",
            changelog="",
        )
        diagnosis = Diagnosis(request._replace(**changes))
        diagnosis.make()
        assert not list(self.data.glob(".longhaul*")), "something was left behind"
        return diagnosis

    def codes(self, **changes) -> dict[str, str]:
        """Return a mapping from code to text."""
        return {finding.code: finding.text for finding in self.find(**changes).findings}

    def close(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@pytest.fixture(name="bench")
def a_bench():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        bench = Bench(Path(folder))
        try:
            yield bench
        finally:
            bench.close()


@needs_root
def test_a_good_module_has_no_findings(bench):
    bench.start("read only = no", "use chroot = yes", "list = yes", "hosts allow = 127.0.0.1")
    diagnosis = bench.find()
    assert diagnosis.findings == []
    assert diagnosis.modules == [
        {"name": "data", "path": str(bench.data), "read": True, "write": True, "private": False, "options": True}
    ]


@needs_root
@pytest.mark.parametrize(
    "lines, who", [(["hosts allow = 127.0.0.0/8"], "in 127.0.0.0/8"), ([], "who reaches the port")]
)
def test_a_module_that_a_network_may_write_as_root(bench, lines, who):
    bench.start("read only = no", *lines)
    assert bench.codes() == {
        "writes_as_root": f"module data: everybody {who} may write as root. Set auth_users, name single hosts in "
        "hosts_allow, or give it another uid"
    }


@needs_root
def test_read_only_by_its_options_is_what_was_asked_for(bench):
    bench.start("use chroot = yes")
    diagnosis = bench.find()
    assert diagnosis.findings == []
    assert (diagnosis.modules[0]["read"], diagnosis.modules[0]["write"]) == (True, None)


@needs_root
def test_layer_one_a_rule_for_the_user_makes_it_read_only(bench):
    bench.start("read only = no", "auth users = alice:ro", f"secrets file = {bench.secrets}")
    ran = bench.find().modules[0]
    assert (ran["read"], ran["write"]) == (True, None)
    said = subprocess.run(
        ["rsync", "-a", str(bench.config), f"rsync://alice@127.0.0.1:{bench.port}/data/"],
        env={**os.environ, "RSYNC_PASSWORD": "right"},
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    assert cause(said, ModuleEnvironment("data", "c", "/p", "root"))[0] == "read_only_conf"


@needs_root
def test_layer_two_the_permissions_of_the_files(bench):
    bench.start("read only = no", "uid = nobody", f"gid = {NOBODY.pw_gid}")
    text = bench.codes()["permissions"]
    assert "nobody has no permission to write" in text and "root:root 0755" in text and "second of three" in text


@needs_root
def test_layer_three_the_mount(bench):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(bench.data)], check=True)
    try:
        bench.start("read only = no")
        text = bench.codes()["read_only_mount"]
    finally:
        subprocess.run(["umount", "--lazy", str(bench.data)], check=True)
    assert f"at {bench.data} is mounted read-only" in text


@needs_root
def test_layer_three_the_sandbox(bench):
    """As systemd does it: a view of the host of the daemon's own, in which a path is mounted read-only."""
    script = f'mount --bind {bench.data} {bench.data} && mount -o remount,ro,bind {bench.data} && exec rsync "$@"'
    original = subprocess.Popen

    def unshared(argv, **options):
        return original(["unshare", "--mount", "sh", "-c", script, *argv], **options)

    subprocess.Popen = unshared  # only for the daemon
    try:
        bench.start("read only = no")
    finally:
        subprocess.Popen = original
    text = bench.codes()["read_only_sandbox"]
    assert f"ReadWritePaths={bench.data}" in text and "third of three" in text


@needs_root
def test_a_path_that_the_sandbox_hides(bench):
    script = f'mount -t tmpfs -o ro tmpfs {bench.data} && exec rsync "$@"'
    inner = bench.data / "inner"
    inner.mkdir()
    original = subprocess.Popen
    subprocess.Popen = lambda argv, **options: original(["unshare", "--mount", "sh", "-c", script, *argv], **options)
    try:
        bench.start(f"path = {inner}", "use chroot = yes")
    finally:
        subprocess.Popen = original
    assert "hides" in bench.codes()["hidden_by_sandbox"]


@needs_root
@pytest.mark.parametrize("chroot", ["yes", "no"])
def test_a_directory_that_the_user_cannot_pass(bench, chroot):
    bench.data.chmod(0o700)
    bench.start("uid = nobody", f"gid = {NOBODY.pw_gid}", f"use chroot = {chroot}")
    text = bench.codes()["cannot_enter"]
    assert f"nobody cannot pass {bench.data} (root:root 0700)" in text


@needs_root
@pytest.mark.parametrize("chroot", ["yes", "no"])
def test_a_path_that_is_missing(bench, chroot):
    bench.start(f"path = {bench.folder}/nowhere", f"use chroot = {chroot}")
    assert f"{bench.folder}/nowhere does not exist" in bench.codes()["path_missing"]


@needs_root
@pytest.mark.parametrize(
    "lines, code",
    [
        (["use chroot = no"], "munged_symlinks"),
        (["munge symlinks = yes"], "munged_symlinks"),
        (["use chroot = no", "munge symlinks = no"], "rewritten_symlinks"),
    ],
)
def test_symlinks_that_are_changed(bench, lines, code):
    bench.start("read only = no", *lines)
    assert code in bench.codes()


@needs_root
def test_owners_that_are_lost(bench):
    os.chown(bench.data, NOBODY.pw_uid, NOBODY.pw_gid)
    bench.start("read only = no", "uid = nobody", f"gid = {NOBODY.pw_gid}")
    assert "belongs to nobody" in bench.codes()["ownership_lost"]
    bench.close()
    bench._process = None
    bench.start("read only = no", "uid = nobody", f"gid = {NOBODY.pw_gid}", "fake super = yes")
    assert "ownership_lost" not in bench.codes()


@needs_root
def test_an_option_that_is_refused(bench):
    bench.start("read only = no", "refuse options = delete", "hosts allow = 127.0.0.1")
    assert "refuses --delete" in bench.codes()["option_refused"]
    assert bench.codes(options=["--archive"]) == {}


@needs_root
def test_a_table_of_connections_that_is_full(bench):
    bench.start("max connections = 1", f"lock file = {bench.folder}/lock", "read only = no")
    with socket.create_connection(("127.0.0.1", bench.port)) as holder:
        holder.sendall(b"@RSYNCD: 31.0 md5\ndata\n")
        holder.settimeout(5)
        said = b""
        while b"@RSYNCD: OK" not in said:
            said += holder.recv(4096)
        assert "all of its 1 connections" in bench.codes()["connections_full"]


@needs_root
@pytest.mark.parametrize(
    "lines, logins, code",
    [
        (["auth users = alice"], {"alice": "wrong"}, "wrong_password"),
        (["auth users = carol"], {"carol": "x"}, "no_secret"),
        (["auth users = carol"], {}, "no_secret"),
        (["auth users = alice"], {}, None),
        (["auth users = ali*:rw"], {}, None),
        (["auth users = @nobody"], {}, "no_login"),
    ],
)
def test_logins(bench, lines, logins, code):
    bench.start(*lines, f"secrets file = {bench.secrets}")
    assert list(bench.codes(logins=logins)) == ([code] if code else [])


@needs_root
def test_secrets_that_others_can_read(bench):
    bench.secrets.chmod(0o644)
    bench.start("auth users = alice", f"secrets file = {bench.secrets}")
    text = bench.codes()["secrets_file"]
    assert "other-accessible" in text and "right" not in text


@needs_root
def test_a_host_that_is_kept_out_is_tried_by_a_private_daemon(bench):
    bench.start("hosts allow = 10.20.0.11", "read only = no")
    diagnosis = bench.find(clients=["10.20.0.11", "10.20.0.12"])
    found = {(finding.code, finding.severity) for finding in diagnosis.findings}
    assert found == {("hosts_allow", "error"), ("hosts_allow", "note")}
    assert "10.20.0.12 cannot connect: `hosts allow = 10.20.0.11`" in diagnosis.findings[0].text
    assert diagnosis.modules[0] == {
        "name": "data", "path": str(bench.data), "read": True, "write": True, "private": True, "options": True
    }  # fmt: skip


@needs_root
def test_a_daemon_behind_a_proxy_is_tried_by_a_private_one(bench):
    """It would take what rsync says for a proxy's word, and hang up."""
    bench.start("read only = no", "hosts allow = 127.0.0.1", start="proxy protocol = yes")
    diagnosis = bench.find()
    assert [(finding.code, finding.severity) for finding in diagnosis.findings] == [("behind_proxy", "note")]
    assert (diagnosis.modules[0]["write"], diagnosis.modules[0]["private"]) == (True, True)


def test_a_daemon_behind_a_proxy_that_does_not_run(bench):
    text = f"port = {bench.port}\naddress = 127.0.0.1\nproxy protocol = yes\n[data]\npath = {bench.data}\n"
    bench.config.write_text(text)
    assert "nothing that speaks rsync answers" in bench.codes()["not_running"]


@needs_root
def test_a_hidden_module_is_tried_too(bench):
    bench.start("hosts allow = 10.20.0.11", "list = no", "read only = no")
    assert bench.find().modules[0]["write"] is True


@needs_root
@pytest.mark.parametrize(
    "lines, code",
    [
        (["uid = nosuchuser"], "bad_user"),
        (["lock file = /nowhere/lock", "max connections = 2"], "lock_file"),
        (["pre-xfer exec = /bin/false"], "hook_failed"),
    ],
)
def test_what_else_turns_clients_away(bench, lines, code):
    bench.start(*lines)
    assert code in bench.codes()


@needs_root
def test_a_folder_that_looks_like_an_attack(bench):
    (bench.data / "rsyncd-munged").mkdir()
    bench.start("munge symlinks = yes")
    assert "munged_folder" in bench.codes()


@needs_root
def test_a_filter_that_refuses_the_trial(bench):
    bench.start("read only = no", "exclude = .*")
    assert "filtered" in bench.codes()


@needs_root
def test_a_disk_that_is_full(bench):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=2", "tmpfs", str(bench.data)], check=True)
    try:
        bench.start("read only = no")
        assert "disk_full" in bench.codes()
    finally:
        subprocess.run(["umount", "--lazy", str(bench.data)], check=True)


def test_nothing_listens(bench):
    bench.config.write_text(f"port = {bench.port}\naddress = 127.0.0.1\n[data]\npath = {bench.data}\n")
    text = bench.codes()["not_running"]
    assert text.startswith("the daemon: nothing that speaks rsync answers")


def test_another_service(bench):
    with socket.socket() as other:
        other.bind(("127.0.0.1", bench.port))
        other.listen(8)
        bench.config.write_text(f"port = {bench.port}\naddress = 127.0.0.1\n[data]\npath = {bench.data}\n")
        if not os.fork():
            try:
                while True:
                    connection, _peer = other.accept()
                    connection.sendall(b"SSH-2.0-x\r\n")
                    connection.close()
            finally:
                os._exit(0)
        child = None
        for entry in Path("/proc/self/task").iterdir():
            children = (entry / "children").read_text().split()
            child = int(children[-1]) if children else child
        try:
            assert "no_greeting" in bench.codes()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_an_old_version_is_judged_by_its_package(bench):
    bench.config.write_text(f"port = {bench.port}\naddress = 127.0.0.1\n[data]\npath = {bench.data}\n")
    old = "rsync  version 3.2.7  protocol version 31"
    assert "known hole" in bench.codes(version=old)["old_version"]
    mended = "CVE-2024-12084 CVE-2026-29518 CVE-2026-53784"
    assert "old_version" not in bench.codes(version=old, changelog=mended)


def test_modules_that_are_not_there_and_such_that_are_there_twice(bench):
    bench.config.write_text(
        f"port = {bench.port}\naddress = 127.0.0.1\n[data]\npath = {bench.data}\n&merge {bench.folder}/x.inc\n"
    )
    (bench.folder / "x.inc").write_text("[Data]\ncomment = mixed\n")
    assert {"unknown_module", "two_modules"} <= set(bench.codes(modules=["data", "nope"]))


def test_who_is_chosen_to_log_in(tmp_path):
    secrets = tmp_path / "s"
    secrets.write_text("# x:y\na:1\nb:2\na:3\n")
    values = {"auth_users": ("b:ro", "a:rw"), "secrets_file": str(secrets)}
    assert choose_login(values, {}) == ("a", "1")  # rsync takes the first line of a user
    assert choose_login(values, {"a": "mine"}) == ("a", "mine")
    assert choose_login({}, {}) == ("", "")
    assert choose_login({"auth_users": ("@g",)}, {}) is None
