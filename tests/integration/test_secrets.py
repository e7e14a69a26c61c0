# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is made for one transfer is seen by nobody, and is gone after it: also after a failure."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.support import leftovers, secrets_search
from ansible_collections.longhaul.fleet.tests.support.beside import beside
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run, Running
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

# While it runs: the daemon's password, which it opens at each connection, is in memory for its user alone. The
# module's own file is Ansible's, and there for the time of one execution.
ALLOWED_MEANWHILE = ("dev/shm/longhaul-", "root/.ansible/tmp/")
TOKEN = "0123456789abcdef" * 4


@pytest.fixture(name="unpiped")
def _unpiped(unpiped: Playbooks) -> Playbooks:
    """Starts of their own: the search reads the arguments and the environment of processes."""
    unpiped.prepared = None
    return unpiped


def start(playbooks: Playbooks, **options: object) -> Running:
    given = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", "encryption": "none", **options}
    return playbooks.start([{"name": "Move", "longhaul.fleet.transfer": given}], "-vvv", hosts="beta")


def test_the_search_finds_a_secret(hosts: Testbed, unpiped: Playbooks) -> None:
    pause = {"ansible.builtin.command": {"argv": ["/usr/bin/python3", "-c", f"import time; time.sleep(60) # {TOKEN}"]}}
    running = unpiped.start([{**pause, "delegate_to": "localhost"}], hosts="beta")
    wait_for(lambda: bool(secrets_search.in_processes(Path("/"), of=running.record)), seconds=20)
    running.kill()
    hosts.exec("beta", ["sh", "-c", f"echo {TOKEN} >/tmp/left"])
    with beside(hosts, "beta", ["/usr/bin/python3", "-c", f"import time; time.sleep(60) # {TOKEN}"]):
        wait_for(lambda: bool(secrets_search.in_processes(hosts.root("beta"))), seconds=20)
    assert secrets_search.in_processes(hosts.root("beta")) == []
    assert secrets_search.in_files(hosts.root("beta")) == ["file: tmp/left"]


@pytest.mark.parametrize(
    ("method", "connect"),
    [
        ("stream", "push"),
        ("rsync", "push"),
        *rarely(*((method, "push") for method in ("rsyncd", "tar_nc", "scp", "sftp"))),
        *rarely(("stream", "pull"), ("rsync", "pull")),
    ],
)
def test_nothing_secret_is_seen_and_nothing_stays(
    hosts: Testbed, unpiped: Playbooks, tmp_path: Path, method: str, connect: str
) -> None:
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    make_big_files(hosts.root("alpha") / "data/src", 8 << 20, count=2)
    with ExitStack() as logs:
        system_logs = [logs.enter_context(secrets_search.system_log(hosts, host)) for host in hosts.hosts]
        running = start(unpiped, method=method, connect=connect, bwlimit="2M")
        looked = 0
        while running.process.poll() is None:
            assert secrets_search.in_processes(Path("/"), of=running.record) == []
            for host in hosts.hosts:
                assert secrets_search.in_processes(hosts.root(host)) == []
            if _transferring(hosts):
                looked += 1
                for host in hosts.hosts:
                    assert secrets_search.in_files(hosts.root(host), ALLOWED_MEANWHILE) == []
            time.sleep(0.5)
        run = running.wait().expect_success()
        assert looked, "the transfer was never seen while it ran"
        for log in system_logs:
            assert "endpoint" in log.read_text(errors="replace"), "the module logs nothing: nothing was searched"
            assert not secrets_search.SECRET.search(log.read_bytes())
    _expect_nothing(hosts, before, run, tmp_path)
    _expect_few_executions(hosts, run)


def _expect_few_executions(bed: Testbed, run: Run) -> None:
    """Each execution costs a fleet time: there are at most four on a host beside the polls."""
    for host in bed.hosts:
        steps = re.findall(rf"longhaul on {host}: (.+)", run.output)
        executions = [one for one in steps if one != "poll"]
        assert 2 <= len(executions) <= 4, steps
        pattern = rf"<{re.escape(bed.address(host))}> SSH: EXEC .*python3 \S*AnsiballZ_endpoint\.py"
        assert len(re.findall(pattern, run.output)) == len(steps)


def _transferring(bed: Testbed) -> bool:
    return any("engine.pyz" in " ".join(process.argv) for process in bed.processes("alpha"))


def _expect_nothing(bed: Testbed, before: dict[str, set[str]], run: Run, local: Path) -> None:
    assert not secrets_search.SECRET.search(run.output.encode())
    assert not secrets_search.SECRET.search(str(run.results).encode())
    for host in bed.hosts:
        assert leftovers.snapshot(bed, host) == before[host]
        assert secrets_search.in_files(bed.root(host)) == []
    left = [path for path in local.rglob("*") if path.is_file() and secrets_search.SECRET.search(path.read_bytes())]
    assert left == []


@pytest.mark.parametrize("method", ["stream", "scp", *rarely("rsync", "rsyncd", "tar_nc", "sftp")])
def test_nothing_stays_after_a_failure(hosts: Testbed, unpiped: Playbooks, tmp_path: Path, method: str) -> None:
    make_big_files(hosts.root("alpha") / "data/src", 24 << 20, count=1)
    (hosts.root("beta") / "data/dest").mkdir()
    (hosts.root("beta") / "data/dest/before").write_text("so that the room is not looked at beforehand")
    before = {host: leftovers.snapshot(hosts, host) for host in hosts.hosts}
    hosts.limit_disk("beta", "8m")
    run = start(unpiped, method=method, partial=False).wait()
    assert run.rc and len(run.failures) == 1, run.output
    assert "space" in run.failures[0] or "full" in run.failures[0], run.failures
    _expect_nothing(hosts, before, run, tmp_path)
