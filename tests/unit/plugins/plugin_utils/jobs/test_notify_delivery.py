# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages about runs to real servers, good and bad, and to real commands."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.failures import ReportedFailure
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.notify import (
    RunEvent,
    make_message,
    read_notify_hooks,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.notify_delivery import MessageDelivery, RunMessages

START, SUCCESS, FAILURE = RunEvent
SECRET = "f00ba5"
MESSAGE = make_message("migrate", START, "now", "me", ["data"])


class Server(ThreadingHTTPServer):
    """Keeps what it was asked; answers as ``answers`` say by path, 200 for others, None for never."""

    daemon_threads = True

    def __init__(self, **answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = {f"/{SECRET}/{name}": list(those) for name, those in answers.items()}
        self.asked = []
        self.ended = threading.Event()
        self.handle_error = lambda *_of: None
        self.url = f"http://127.0.0.1:{self.server_port}/{SECRET}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.server.asked.append((self.command, self.path, self.rfile.read(length).decode()))
        answers = self.server.answers.get(self.path) or [200]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer is None:
            self.server.ended.wait(20)
            answer = 200
        self.send_response(answer)
        if answer == 302:
            self.send_header("Location", f"/{SECRET}/moved")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 - as the class of the standard library has it

    def log_message(self, *_words):
        """Say nothing."""


@contextmanager
def serving(**answers):
    server = Server(**answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def warnings(*written, message=MESSAGE, pauses=(0.0, 0.01, 0.01)):
    found = MessageDelivery(read_notify_hooks(written, "x_notify"), message, pauses).wait()
    assert not any(SECRET in warning for warning in found)
    return found


def test_a_url_is_called_once_at_each_event():
    with serving() as server:
        url = f"{server.url}/ping"
        assert warnings({"url": url}) == []
        failed = make_message(
            "migrate", FAILURE, "now", "me", ["data"], [ReportedFailure("data", "failed", "no space")]
        )
        assert warnings({"url": url}, message=failed) == []
        assert warnings({"url": url, "method": "GET", "when": ["start"]}, message=failed) == []
        assert warnings({"url": url, "method": "GET"}) == []
    assert server.asked == [
        ("POST", f"/{SECRET}/ping/start", "migrate: begun with 1 job (by me)"),
        ("POST", f"/{SECRET}/ping/fail", "migrate: 1 of 1 job failed (by me)\ndata failed: no space"),
        ("GET", f"/{SECRET}/ping/start", ""),
    ]


@pytest.mark.parametrize(
    "answers, tries, warning",
    [
        ([500, 200], 2, ""),
        ([429, 503, 200], 3, ""),
        ([500], 3, "it answered 500, 3 tries"),
        ([404], 1, "it answered 404"),
        ([302], 2, ""),
    ],
)
def test_only_what_may_pass_is_tried_again(answers, tries, warning):
    with serving(a=answers) as server:
        found = warnings({"start_url": f"{server.url}/a"})
    assert len(server.asked) == tries
    assert [warning in one and "x_notify[0] (127.0.0.1)" in one for one in found] == [True] * bool(warning)


def test_a_server_that_is_silent_or_gone_costs_a_bounded_time():
    with serving(a=[None]) as server:
        began = time.monotonic()
        (silent,) = warnings({"start_url": f"{server.url}/a", "timeout": 0.2})
        assert len(server.asked) == 3 and "no answer within 0.2 s, 3 tries" in silent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        (gone,) = warnings({"url": f"http://127.0.0.1:{free.getsockname()[1]}/{SECRET}"})
    assert "cannot be reached (Connection refused), 3 tries" in gone
    assert time.monotonic() - began < 20


def test_a_server_that_drips_is_left_alone(monkeypatch):
    monkeypatch.setitem(MessageDelivery.wait.__globals__, "_GRACE", 0.1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        stop = threading.Event()

        def drip():
            connection = listener.accept()[0]
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not stop.wait(0.05):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        (found,) = warnings({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/{SECRET}", "timeout": 0.2})
        stop.set()
        thread.join()
    assert "no answer within" in found


def test_what_is_no_http_is_a_warning_without_its_text():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def answer():
            for _try in range(3):
                with listener.accept()[0] as connection:
                    connection.recv(1000)
                    connection.sendall(f"SSH-2.0 {SECRET}\r\n".encode())

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        (plain,) = warnings({"start_url": f"http://127.0.0.1:{port}/{SECRET}"}, pauses=(0.0,))
        (tls,) = warnings({"start_url": f"https://127.0.0.1:{port}/{SECRET}"}, pauses=(0.0,))
    assert "x_notify[0] (127.0.0.1) was not told of the start of the run: " in plain and "TLS failed" in tls


def test_a_command_gets_the_report_on_its_standard_input(tmp_path):
    program = f"import sys; print({SECRET!r}); open({str(tmp_path / 'got')!r}, 'w').write(sys.stdin.read())"
    assert warnings({"command": [sys.executable, "-c", program]}) == []
    assert json.loads((tmp_path / "got").read_text())["event"] == "start"


def test_a_command_that_does_not_read_is_well():
    large = make_message("migrate", SUCCESS, "now", "me", ["data"], report="x" * 1_000_000)
    assert warnings({"command": ["/bin/true"]}, message=large) == []


@pytest.mark.parametrize(
    "command, warning",
    [
        (["/bin/sh", "-c", f"echo {SECRET} >&2; exit 3"], "it ended with return code 3"),
        ([f"/none/{SECRET}"], "it cannot be run (No such file or directory)"),
        (["/bin/true", f"{SECRET}\0"], "it cannot be run (ValueError)"),
    ],
)
def test_a_command_that_fails_is_a_warning(command, warning):
    (found,) = warnings({"command": command, "name": "mail"})
    assert f"mail (a command) was not told of the start of the run: {warning}" in found


def test_a_command_that_does_not_end_is_ended_with_its_children(tmp_path):
    pids = tmp_path / "pids"
    script = f"sleep 60 & echo $! $$ >{pids}; wait"
    (found,) = warnings({"command": ["/bin/sh", "-c", script], "timeout": 0.3})
    assert "did not end within 0.3 s, and was ended" in found
    for pid in pids.read_text().split():
        with contextlib.suppress(FileNotFoundError):
            for _attempt in range(100):  # a signal takes its time on a busy machine
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
                if state == "Z":
                    break
                time.sleep(0.05)
            assert state == "Z"


def test_a_run_goes_on_while_its_start_is_told_and_check_mode_sends_nothing():
    with serving(**{"ping/start": [None]}) as server:
        hooks = [{"url": f"{server.url}/ping", "timeout": 0.3}]
        messages = RunMessages("migrate", hooks, "me", print, write=True)
        began = time.monotonic()
        messages.send(START, ["data"])
        assert time.monotonic() - began < 0.3
        server.ended.set()
        assert messages.send_end(["data"], [], summary={}) == messages.wait()
        asked = [path for _method, path, _body in server.asked]
        assert f"/{SECRET}/ping" in asked
        said = []
        checked = RunMessages("migrate", hooks, "me", said.append, write=False)
        checked.send(START, ["data"])
        assert checked.send_end(["data"], [ReportedFailure("data", "failed", "why")]) == []
        RunMessages("migrate", hooks, "me", said.append, write=False).send(START, [])
    assert said == [
        f"Check mode: migrate_notify[0] (127.0.0.1) would be told of the {event} of the run; nothing is sent"
        for event in ("start", "failure")
    ]
