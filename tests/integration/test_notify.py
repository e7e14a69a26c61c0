# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs of the roles that tell a server and a command how they went, and show the URLs to nobody."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support.backups import Backups
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

SECRET = "0123456789abcdef-secret"
KEEP = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')"


class Listener(ThreadingHTTPServer):
    """Keeps the events that it was told of, with the texts. For the event ``silent`` it says nothing."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.told: list[tuple[str, str]] = []
        self.silent = "none"
        self.ended = threading.Event()

    def events(self) -> list[str]:
        """Return the events since the last time."""
        events = [event for event, _text in self.told]
        self.told.clear()
        return events


class Answer(BaseHTTPRequestHandler):
    """One request."""

    server: Listener

    def do_POST(self) -> None:
        """Keep it, and answer."""
        event = self.path.partition(SECRET)[2].strip("/") or "success"
        self.server.told.append((event, self.rfile.read(int(self.headers["Content-Length"])).decode()))
        if event == self.server.silent:
            self.server.ended.wait(60)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_words: Any) -> None:  # type: ignore[override]
        """Say nothing."""


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A server on this machine, which is the control node."""
    server = Listener()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.ended.set()
    server.shutdown()
    thread.join()
    server.server_close()


class Told:
    """A list of hooks for a role: the server, and a command that keeps reports."""

    def __init__(self, role: str, listener: Listener, folder: Path) -> None:
        self.log, self.kept = folder / "ansible.log", folder / "kept"
        url = f"http://127.0.0.1:{listener.server_port}/{SECRET}"
        keep = {"command": [sys.executable, "-c", KEEP, str(self.kept)], "when": ["success", "failure"]}
        self.hooks = [{"url": url, "timeout": 2}, keep]
        self.variables = {f"{role}_notify": self.hooks}

    def reports(self) -> list[dict[str, Any]]:
        """Return the reports that the command got."""
        return [json.loads(line) for line in self.kept.read_text().splitlines()] if self.kept.exists() else []


def expect_nothing_shown(run: Run, *folders: Path) -> None:
    """Fail if a secret is in the output, in a result or in a file."""
    assert SECRET not in run.output
    assert not any(SECRET in json.dumps(one.result, default=str) for one in run.results)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


def fill(bed: Testbed) -> None:
    """Make a small tree on alpha."""
    tree = bed.root("alpha") / "data/src"
    tree.mkdir()
    (tree / "file").write_text("x" * 1000)


@pytest.mark.long
@pytest.mark.smoke
def test_a_migration_is_told_of(hosts: Testbed, playbooks: Playbooks, listener: Listener, tmp_path: Path) -> None:
    fill(hosts)
    told = Told("migrate", listener, tmp_path)
    ends = {"src_host": "alpha", "src": "/data/src/", "dest_host": "beta", "dest": "/data/dest"}
    jobs = [{"name": "data", **ends}, {"name": "gone", **ends, "src": "/data/gone/", "dest": "/data/other"}]
    given = {"migrate_phase": "seed", **told.variables}

    def run(*flags: str, **more: Any) -> Run:
        found = playbooks.run("longhaul.fleet.migrate", "-vvv", *flags, **{**given, "migrate_jobs": jobs[:1], **more})
        expect_nothing_shown(found, tmp_path / "longhaul-migrate")
        return found

    checked = run("--check").expect_success()
    assert listener.events() == [] and told.reports() == []
    assert "migrate_notify[0] (127.0.0.1) would be told of the start of the run" in checked.output
    assert "migrate_notify[1] (a command) would be told of the success of the run" in checked.output

    listener.silent = "start"
    warned = run().expect_success()
    assert "migrate_notify[0] (127.0.0.1) was not told of the start of the run" in warned.output
    assert listener.events() == ["start"] * 3 + ["success"]
    listener.silent = "none"
    (report,) = told.reports()
    assert (report["event"], report["jobs"], report["summary"]["failed"]) == ("success", ["data"], 0)
    assert report["report"]["jobs"][0]["name"] == "data"

    failed = run(migrate_jobs=jobs)
    assert failed.rc != 0 and [event for event, _text in listener.told] == ["start", "fail"]
    assert "1 of 2 jobs failed" in listener.told[1][1] and "gone stopped in phase preflight" in listener.told[1][1]
    assert told.reports()[1]["failures"][0]["name"] == "gone"
    listener.events()

    wrong = run(migrate_notify=[{"url": f"ftp://{SECRET}"}])
    assert "migrate_notify[0]: url is no http or https URL with a host" in wrong.failures[-1]
    assert listener.events() == []


def test_a_backup_and_its_restore_are_told_of(
    hosts: Testbed, playbooks: Playbooks, listener: Listener, tmp_path: Path
) -> None:
    fill(hosts)
    backups = Backups(hosts, playbooks)
    told = Told("backup", listener, tmp_path)
    folders = [tmp_path / "longhaul-backup", tmp_path / "longhaul-restore"]
    expect_nothing_shown(backups.run("-vvv", **told.variables), *folders)
    assert listener.events() == ["start", "success"]
    assert [(one["role"], one["event"], one["jobs"]) for one in told.reports()] == [
        ("backup", "success", ["alpha/data"])
    ]

    def restore(**more: Any) -> Run:
        given = {"backup_jobs": backups.jobs, "restore_from": "alpha", "restore_notify": told.hooks, **more}
        found = playbooks.run("longhaul.fleet.restore", "-vvv", **given)
        expect_nothing_shown(found, *folders)
        return found

    restore().expect_success()
    assert listener.events() == ["start", "success"]
    assert restore(restore_path="none").rc != 0
    assert listener.events() == ["start", "fail"]
    assert [(one["role"], one["event"], bool(one["failures"])) for one in told.reports()[1:]] == [
        ("restore", "success", False), ("restore", "failure", True),
    ]  # fmt: skip

    (hosts.root("alpha") / "data/src").rename(hosts.root("alpha") / "data/away")
    backups.run_into_failure(**told.variables)
    assert listener.events() == ["start", "fail"] and told.reports()[-1]["failures"][0]["name"] == "alpha/data"
