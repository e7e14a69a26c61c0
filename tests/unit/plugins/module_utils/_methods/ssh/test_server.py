# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A serving end that real ssh connects to, on addresses of the loopback net."""

from __future__ import annotations

import calendar
import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils import _methods
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import CommandRefusal, TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._core.ports import free_port
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh import client_command as ssh
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh import sshd
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh.client_check import check_connection
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh.server import (
    SPARE_SESSIONS,
    Service,
    SshServer,
)
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None or not sys.platform.startswith("linux"),
    reason="needs OpenSSH, and a loopback net with many addresses",
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

ID = os.urandom(8).hex()  # its own in each of the processes that run tests side by side
HERE, THERE = "127.0.0.21", "127.0.0.23"
GATE = str(Path(_methods.__file__).parent / "ssh" / "forced_command.py")


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    """Return a folder with the key pairs host, driver and stranger."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("host", "driver", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)], check=True)
    return folder


def handler(command: str, _is_alone: bool):
    """Allow a few words, as a method would."""
    if command == "where":
        return Service(["/bin/pwd"], cwd="/usr")
    if command == "copy":
        return Service(["/bin/cat"])
    if command == "hang":
        return Service(["/bin/sh", "-c", "echo $$; exec sleep 300"])
    if command == "function":
        return lambda stdin, stdout: os.write(stdout, os.read(stdin, 100).upper())
    if command == "raise":
        return lambda stdin, stdout: 1 // 0
    if command == "die":
        return Service(["/bin/sh", "-c", "kill -9 $$"])
    if command == "nothing":
        return Service(["/no/such/program"])
    if command == "env":
        return Service(["/usr/bin/printenv", "ONLY"], extra_environment={"ONLY": "this"})
    raise CommandRefusal(f"{command} is no part of this transfer")


def context_for(folder: Path, keys: Path, **serve) -> Context:
    folder.mkdir(mode=0o700, exist_ok=True, parents=True)
    values = {
        "ssh": "private",
        "address": HERE,
        "ports": [0],
        "allow": ["127.0.0.0/8"],
        "public_key": (keys / "driver.pub").read_text(),
        "gate": [sys.executable, "-I", "-S", GATE],
    }
    secrets = {"host_key": (keys / "host").read_text()}
    said: list[str] = []
    return Context(
        *("dest", "serve", b"/", settings("rsync", id=ID, streams_max=2), str(folder)),
        serve={**values, **serve},
        secrets=secrets,
        log=said.append,
    )


def client(server_ready: dict, keys: Path, folder: Path, *, key: str = "driver", options=()) -> list[str]:
    known = folder / "known"
    known.write_text(ssh.known_hosts_lines(ID, server_ready["host_keys"]))
    return ssh.ssh_command(server_ready, str(keys / key), str(known), config="none", extra=options)


def run(argv: list[str], command: str, data: bytes = b"", address: str = HERE) -> subprocess.CompletedProcess:
    return subprocess.run([*argv, address, command], input=data, capture_output=True, timeout=30, check=False)


@pytest.fixture()
def private(tmp_path, keys):
    """Yield the argv of a client, connected to a private server."""
    context = context_for(tmp_path / "job", keys)
    server = SshServer(context, handler)
    server.said = context.log.__self__
    try:
        yield server, client(server.ready, keys, tmp_path)
    finally:
        server.close()


def eventually(condition, patience: float = 8.0) -> bool:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def processes_naming(text: str) -> list[int]:
    """Return the processes with this text in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def listens(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


def test_the_hello_proves_the_connection(private):
    server, argv = private
    check_connection(argv, HERE, ID)
    assert server.ready["user"] == pwd.getpwuid(os.geteuid()).pw_name
    assert eventually(lambda: not server.active())


@pytest.mark.parametrize(
    ("command", "data", "code", "stdout", "stderr"),
    [
        ("where", b"", 0, b"/usr\n", b""),
        ("copy", bytes(range(256)) * 5000, 0, bytes(range(256)) * 5000, b""),
        ("function", b"abc", 3, b"ABC", b""),
        ("raise", b"", 1, b"", b"ZeroDivisionError"),
        ("die", b"", 137, b"", b""),
        ("nothing", b"", 126, b"", b"No such file or directory"),
        ("env", b"", 0, b"this\n", b""),
        ("id; touch x", b"", 126, b"", b"longhaul: id; touch x is no part of this transfer\n"),
        ("", b"", 126, b"", b"no part of this transfer"),
        ("'ü\n\"$HOME`id`", b"", 126, b"", "'ü\n\"$HOME`id` is no part".encode()),
    ],
    ids=["where", "copy", "function", "raise", "die", "nothing", "env", "stranger", "empty", "odd"],
)
def test_the_handler_decides_what_runs(private, command, data, code, stdout, stderr):
    done = run(private[1], command, data)
    assert (done.returncode, done.stdout) == (code, stdout)
    assert (stderr in done.stderr) if stderr else not done.stderr


def test_the_forced_command_is_all_that_the_key_opens(private, keys, tmp_path):
    server, argv = private
    port = server.ready["port"]
    forward = subprocess.run(
        [*argv, "-W", f"{HERE}:{port}", HERE], capture_output=True, timeout=30, stdin=subprocess.DEVNULL, check=False
    )
    assert forward.returncode == 255
    assert b"prohibited" in forward.stderr
    terminal = run([*argv, "-tt"], "where")
    assert b"PTY allocation request failed" in terminal.stderr
    known = tmp_path / "known"
    options = ssh.common_options(server.ready, str(keys / "driver"), str(known), config="none")
    sftp = subprocess.run(["sftp", *options, HERE], input=b"ls\n", capture_output=True, timeout=30, check=False)
    assert sftp.returncode != 0
    assert "refused: 'internal-sftp': internal-sftp is no part of this transfer" in server.said


def test_another_key_is_refused(private, keys, tmp_path):
    server, _argv = private
    with pytest.raises(TransferFailed, match="refused the one-time key"):
        check_connection(client(server.ready, keys, tmp_path, key="stranger"), HERE, ID)


def test_another_host_key_is_refused(private, keys, tmp_path):
    server, _argv = private
    ready = {**server.ready, "host_keys": [(keys / "stranger.pub").read_text()]}
    with pytest.raises(TransferFailed, match="not the one"):
        check_connection(client(ready, keys, tmp_path), HERE, ID)


def test_another_address_is_refused(tmp_path, keys):
    server = SshServer(context_for(tmp_path / "job", keys, allow=["192.0.2.7"]), handler)
    try:
        with pytest.raises(TransferFailed, match="a from= address"):
            check_connection(client(server.ready, keys, tmp_path), HERE, ID)
    finally:
        server.close()


def test_strangers_that_say_nothing_do_not_keep_the_peer_out(private, tmp_path):
    """They have an address of their own: sshd takes no more than its share from one (OpenSSH 8.5 and newer)."""
    server, argv = private
    if sshd.sshd_version(SSHD) < (8, 5):
        pytest.skip("cannot run here: needs OpenSSH 8.5")
    with contextlib.ExitStack() as strangers:
        for _number in range(250):
            address = (HERE, server.ready["port"])
            strangers.enter_context(socket.create_connection(address, timeout=10, source_address=("127.0.0.99", 0)))
        check_connection(argv, HERE, ID)
        assert run(argv, "where").stdout == b"/usr\n"


def test_ipv6(tmp_path, keys):
    server = SshServer(context_for(tmp_path / "job", keys, address="::1", allow=["::1"]), handler)
    try:
        argv = client(server.ready, keys, tmp_path)
        check_connection(argv, "[::1]", ID)
        assert run(argv, "where", address="::1").stdout == b"/usr\n"
    finally:
        server.close()


def test_a_folder_with_a_long_and_hard_name(tmp_path, keys):
    folder = tmp_path / "it's 100% $HOME" / ("d" * 120)
    server = SshServer(context_for(folder, keys), handler)
    try:
        assert run(client(server.ready, keys, tmp_path), "where").stdout == b"/usr\n"
    finally:
        server.close()
    assert list(folder.iterdir()) == []


def test_closing_leaves_nothing(tmp_path, keys):
    folder = tmp_path / "job"
    server = SshServer(context_for(folder, keys), handler)
    argv = client(server.ready, keys, tmp_path)
    with subprocess.Popen([*argv, HERE, "hang"], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as open_session:
        pid = int(open_session.stdout.readline())
        assert server.active()
        idle = subprocess.Popen([*argv, "-N", HERE])
        time.sleep(0.5)  # for the second connection to be through its login
        server.close()
        assert open_session.wait(5) in (128 + signal.SIGTERM, 255)  # sshd may go before it passes the code on
        assert idle.wait(5) == 255
    assert not is_alive(pid)
    assert not listens(HERE, server.ready["port"])
    assert eventually(lambda: processes_naming(str(folder)) == [])
    assert list(folder.iterdir()) == []
    assert not server.active()


def test_no_secret_is_in_a_process_list(private, keys, tmp_path):
    _server, argv = private
    secrets = [(keys / name).read_text().splitlines()[2] for name in ("host", "driver")]
    with subprocess.Popen([*argv, HERE, "hang"], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as session:
        session.stdout.readline()
        assert [processes_naming(secret) for secret in secrets] == [[], []]
        session.terminate()
    files = [path.read_bytes() for path in (tmp_path / "job").iterdir() if path.is_file()]
    assert files
    assert not any(secret.encode() in content for content in files for secret in secrets)


@pytest.mark.parametrize("victim", ["client", "gate"])
def test_a_program_ends_with_its_connection(private, tmp_path, victim):
    server, argv = private
    with subprocess.Popen([*argv, HERE, "hang"], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as session:
        pid = int(session.stdout.readline())
        if victim == "client":
            session.kill()
        else:
            for gate in processes_naming(f"{GATE}\0{tmp_path / 'job'}"):
                os.kill(gate, signal.SIGKILL)
        assert eventually(lambda: not is_alive(pid))
        session.kill()
    assert eventually(lambda: not server.active())


def test_many_connections_at_once(private):
    _server, argv = private
    results: list[bytes] = []
    data = os.urandom(300_000)
    threads = [threading.Thread(target=lambda: results.append(run(argv, "copy", data).stdout)) for _number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [data] * 8


def test_one_program_of_many_begins_alone(tmp_path, keys):
    """Only it may touch the files of an earlier one: the others would take those of a program that is at work."""
    seen: list[bool] = []

    def slow(_command: str, is_alone: bool) -> Service:
        time.sleep(0.3)
        seen.append(is_alone)
        return Service(["/bin/sleep", "3"])

    server = SshServer(context_for(tmp_path / "job", keys), slow)
    try:
        argv = client(server.ready, keys, tmp_path)
        with contextlib.ExitStack() as stack:
            for _number in range(3):
                stack.enter_context(subprocess.Popen([*argv, HERE, "any"], stdin=subprocess.DEVNULL))
        assert seen == [True, False, False]
        assert run(argv, "any").returncode == 0
        assert seen[3:] == [True]
    finally:
        server.close()


def test_a_peer_has_no_more_connections_than_a_transfer_needs(private, keys, tmp_path):
    server, argv = private
    with contextlib.ExitStack() as stack:
        # One connection of ssh carries ten at most, and all of them count
        held = [
            stack.enter_context(subprocess.Popen([*argv, HERE, "copy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            for _number in range(2 + SPARE_SESSIONS)
        ]
        for one in held:
            one.stdin.write(b"x")
            one.stdin.flush()
            assert one.stdout.read(1) == b"x"
        refused = run(argv, "copy", b"x")
        assert (refused.returncode, refused.stdout) == (126, b"")
        assert refused.stderr.startswith(b"longhaul: 18 connections of this transfer are open")
        held[0].communicate(timeout=20)
        assert eventually(lambda: run(argv, "copy", b"x").stdout == b"x")
        for one in held[1:]:
            one.stdin.close()
    assert any("a connection is refused" in line for line in server.said)


def test_a_busy_port_gives_way_to_the_next(tmp_path, keys):
    with socket.create_server((HERE, 0)) as busy:
        taken = busy.getsockname()[1]
        free = free_port(HERE)
        server = SshServer(context_for(tmp_path / "job", keys, ports=[taken, free]), handler)
        assert server.ready["port"] == free
        server.close()
        with pytest.raises(TransferFailed, match=f"port tried: {taken}.*in use"):
            SshServer(context_for(tmp_path / "job", keys, ports=[taken]), handler)
    assert list((tmp_path / "job").iterdir()) == []


def test_an_address_of_another_host_is_explained(tmp_path, keys):
    with pytest.raises(TransferFailed, match="none of its addresses"):
        SshServer(context_for(tmp_path / "job", keys, address="192.0.2.9"), handler)


def test_the_gate_of_a_dead_job_says_so(tmp_path):
    argv = [sys.executable, "-I", "-S", GATE, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 255
    assert "not running (No such file or directory)" in done.stderr


JOB = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
from longhaul._core.context import Context
from longhaul._methods.ssh.server import Service, SshServer
settings, folder, serve, secrets = json.loads(sys.stdin.readline())
context = Context("dest", "serve", b"/", settings, folder, serve=serve, secrets=secrets)
words = {"hang": ["/bin/sh", "-c", "echo $$; exec sleep 300"], "who": ["/usr/bin/id", "-un"]}
server = SshServer(context, lambda command, _is_alone: Service(words[command]))
print(json.dumps(server.ready), flush=True)
sys.stdin.readline()
server.close()
"""


@contextlib.contextmanager
def job(folder: Path, context: Context, python: str = sys.executable, user: str | None = None):
    """Run a server in a process of its own, from a copy of the engine that another user can read."""
    engine = folder / "engine"
    if not engine.exists():
        package = Path(_methods.__file__).parent.parent
        for name in ("_methods", "_core", "_model", "_tree"):
            shutil.copytree(package / name, engine / "longhaul" / name, ignore=shutil.ignore_patterns("__pycache__"))
        (engine / "longhaul" / "__init__.py").touch()
    serve = {
        **context.serve,
        "gate": [python, "-I", "-S", str(engine / "longhaul" / "_methods" / "ssh" / "forced_command.py")],
    }
    as_user = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--reset-env"] if user else []
    with subprocess.Popen(
        [*as_user, python, "-c", JOB, str(engine)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
    ) as process:
        process.stdin.write(json.dumps([context.settings, context.folder, serve, context.secrets]) + "\n")
        process.stdin.flush()
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            if process.poll() is None:
                process.stdin.close()
                process.wait(15)
            process.stdin = None


def test_sshd_and_its_programs_die_with_a_killed_job(tmp_path, keys):
    context = context_for(tmp_path / "job", keys)
    with job(tmp_path, context) as (process, ready):
        argv = client(ready, keys, tmp_path)
        with subprocess.Popen(
            [*argv, HERE, "hang"], stdout=subprocess.PIPE, stdin=subprocess.PIPE, stderr=subprocess.PIPE
        ) as session:
            pid = int(session.stdout.readline())
            assert listens(HERE, ready["port"])
            process.kill()
            assert eventually(lambda: not listens(HERE, ready["port"]))
            assert session.wait(10) == 255
            assert b"the transfer's job ended" in session.stderr.read()
        assert eventually(lambda: processes_naming(str(tmp_path / "job")) == [])
        assert eventually(lambda: not is_alive(pid))


@pytest.fixture()
def user():
    """Yield a user with a home folder, a talking login shell and no password, for as long as a test runs."""
    name = f"lhtest{os.getpid()}"
    home = Path("/tmp") / name
    subprocess.run(["useradd", "-m", "-d", str(home), "-s", "/bin/bash", "-k", "/nonexistent", name], check=True)
    try:
        yield pwd.getpwnam(name)
    finally:
        subprocess.run(["userdel", "-r", name], check=True, capture_output=True)
        shutil.rmtree(home, ignore_errors=True)


PYTHON = "/usr/bin/python3"  # one that every user may run
needs_python = pytest.mark.skipif(not os.path.exists(PYTHON), reason=f"there is no {PYTHON}")


@needs_root
@needs_python
def test_an_ordinary_user_serves_privately(user, keys, tmp_path):
    home = Path(user.pw_dir)
    context = context_for(home / "job", keys)
    os.chown(home / "job", user.pw_uid, user.pw_gid)
    with job(home, context, PYTHON, user.pw_name) as (process, ready):
        assert ready["user"] == user.pw_name
        argv = client(ready, keys, tmp_path)
        check_connection(argv, HERE, ID)
        assert run(argv, "who").stdout.decode().strip() == user.pw_name
        (home / ".bashrc").write_text("echo Good morning\n")
        with pytest.raises(TransferFailed, match="prints text .*'Good morning'"):
            check_connection(argv, HERE, ID)
        (home / ".bashrc").unlink()
        process.stdin.write("\n")
        process.stdin.flush()
        process.wait(15)
    assert list((home / "job").iterdir()) == []
    assert not listens(HERE, ready["port"])


@pytest.fixture()
def system(tmp_path, keys):
    """Yield the port of an sshd that stands for the host's own; it reads %h/.ssh or, for root, a file of the test's."""
    sshd.make_privsep_folder(sshd.find_sshd(), lambda _text: None)
    port = free_port(THERE)
    config = tmp_path / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress {THERE}\nHostKey {keys / 'host'}\nStrictModes no\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {tmp_path}/home/.ssh/authorized_keys %h/.ssh/authorized_keys\n"
        "PermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n"
    )
    with subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)], stderr=subprocess.DEVNULL) as process:
        try:
            assert eventually(lambda: listens(THERE, port))
            yield port
        finally:
            process.terminate()


def test_the_hosts_own_sshd_serves_while_the_line_is_there(system, tmp_path, keys):
    path = tmp_path / "home" / ".ssh" / "authorized_keys"
    path.parent.parent.mkdir()
    context = context_for(
        tmp_path / "job",
        keys,
        ssh="system",
        address=THERE,
        port=system,
        authorized_keys=str(path),
        host_keys=[(keys / "host.pub").read_text()],
    )
    server = SshServer(context, handler)
    argv = client(server.ready, keys, tmp_path)
    check_connection(argv, THERE, ID)
    assert run(argv, "where", address=THERE).stdout == b"/usr\n"
    with subprocess.Popen([*argv, THERE, "hang"], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as session:
        pid = int(session.stdout.readline())
        line = path.read_bytes()
        server.close()
        assert session.wait(5) == 128 + signal.SIGTERM
    assert not is_alive(pid)
    assert list(path.parent.parent.iterdir()) == []
    assert list((tmp_path / "job").iterdir()) == []
    with pytest.raises(TransferFailed, match="refused the one-time key"):
        check_connection(argv, THERE, ID)
    # what a killed job leaves behind opens nothing, and after its hour sshd does not even look at it
    path.parent.mkdir()
    path.write_bytes(line)
    with pytest.raises(TransferFailed, match="the transfer that this key was made for is not running"):
        check_connection(argv, THERE, ID)
    # (a year from 1970 on: what is before, OpenSSH 10 takes for the far future)
    path.write_bytes(re.sub(rb'expiry-time="\d{4}', b'expiry-time="2001', line))
    with pytest.raises(TransferFailed, match="refused the one-time key"):
        check_connection(argv, THERE, ID)


def test_a_key_holds_for_a_day(system, tmp_path, keys):
    path = tmp_path / "authorized_keys"
    values = {"ssh": "system", "port": system, "authorized_keys": str(path), "host_keys": ["ssh-ed25519 AAAA"]}
    before = int(time.time())
    server = SshServer(context_for(tmp_path / "job", keys, **values), handler)
    moments = re.findall(rb'expiry-time="(\d{14})(Z?)"', path.read_bytes())
    server.close()
    ((moment, utc),) = moments
    until = time.strptime(moment.decode(), "%Y%m%d%H%M%S")
    seconds = (calendar.timegm if utc else time.mktime)(until) - before
    assert 0 <= seconds - 24 * 3600 < 60


def test_the_key_is_renewed_while_the_server_lives(system, tmp_path, keys, monkeypatch):
    from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh import server as ssh_server

    monkeypatch.setattr(ssh_server, "KEY_RENEWAL", 0.05)
    path = tmp_path / "authorized_keys"
    path.write_bytes(b"ssh-rsa AAAA me\n")
    values = {"ssh": "system", "port": system, "authorized_keys": str(path), "host_keys": ["ssh-ed25519 AAAA"]}
    server = SshServer(context_for(tmp_path / "job", keys, **values), handler)
    before = path.read_bytes()
    assert eventually(lambda: path.read_bytes() != before)
    assert path.read_bytes().count(b"\n") == 2
    server.close()
    time.sleep(0.2)
    assert path.read_bytes() == b"ssh-rsa AAAA me\n"


@needs_root
@needs_python
def test_root_serves_through_another_users_login(system, user, keys, tmp_path):
    home = Path(user.pw_dir)
    # An account without a password is locked for an sshd without PAM
    subprocess.run(["usermod", "-p", "*", user.pw_name], check=True)
    context = context_for(tmp_path / "job", keys, ssh="system", address=THERE, port=system, user=user.pw_name)
    context.serve["host_keys"] = [(keys / "host.pub").read_text()]
    with job(home, context, PYTHON) as (process, ready):
        assert ready["user"] == user.pw_name
        argv = client(ready, keys, tmp_path)
        check_connection(argv, THERE, ID)
        assert run(argv, "who", address=THERE).stdout == b"root\n"
        assert (home / ".ssh" / "authorized_keys").stat().st_uid == user.pw_uid
        assert Path(f"/run/longhaul-{ID}/gate").is_socket()
        process.stdin.write("\n")
        process.stdin.flush()
        process.wait(15)
    assert not (home / ".ssh").exists()
    assert not Path(f"/run/longhaul-{ID}").exists()


def test_host_keys_come_from_the_files_that_sshd_names(keys):
    found = sshd.system_host_keys({"hostkey": [str(keys / "host"), "/no/such"]})
    assert found == [(keys / "host.pub").read_text().strip()]
    with pytest.raises(TransferFailed, match="No host key .*/no/such.pub"):
        sshd.system_host_keys({"hostkey": ["/no/such"]})


def test_an_account_without_a_shell_is_refused():
    with pytest.raises(TransferFailed, match="login shell /usr/sbin/nologin"):
        sshd.check_shell(pwd.struct_passwd(("nobody", "x", 1, 1, "", "/", "/usr/sbin/nologin")))
