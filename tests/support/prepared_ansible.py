# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ansible-playbook from a process that has imported Ansible already.

To start ansible-playbook and import Ansible takes a third of the processor time of the integration tests. ``Prepared``
keeps one process that has done so, and each run is a fork of it: with arguments, environment, output and process group
of its own, and with settings read again. It differs from a start of its own in ``/proc/PID/cmdline`` and
``/proc/PID/environ``, which are those of the first process.

Run as a program (``prepared_ansible.py DESCRIPTOR``), this file is that first process.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# What differs between runs of one first process; the settings that Ansible derives from its home are read again.
OF_A_RUN = ("ANSIBLE_CONFIG", "ANSIBLE_HOME", "LONGHAUL_TEST_RECORD")
LONGEST_REQUEST = 1 << 20
# What every run imports; a version of ansible-core that lacks one imports the others.
MODULES = (
    *(f"ansible.executor.{name}" for name in ("playbook_executor", "task_queue_manager", "task_executor")),
    *("ansible.executor.module_common", "ansible.executor.process.worker", "ansible.executor.interpreter_discovery"),
    *("ansible.inventory.manager", "ansible.vars.manager", "ansible.playbook.role", "ansible.playbook.included_file"),
    *("ansible.template", "ansible._internal._templating._jinja_plugins", "ansible.parsing.dataloader"),
    *(f"ansible.plugins.strategy{name}" for name in ("", ".linear")),
    *(f"ansible.plugins.inventory.{name}" for name in ("host_list", "script", "auto", "yaml", "ini", "toml")),
    *(f"ansible.plugins.connection.{name}" for name in ("ssh", "local")),
    *(f"ansible.plugins.action.{name}" for name in ("normal", "command", "debug", "set_fact", "include_vars")),
    *("ansible.plugins.become.sudo", "ansible.plugins.shell.sh", "ansible.plugins.callback.default"),
    *("ansible.plugins.vars.host_group_vars", "ansible.plugins.filter.core", "ansible.plugins.filter.mathstuff"),
    *("ansible.plugins.filter.urls", "ansible.plugins.filter.urlsplit", "ansible.plugins.filter.encryption"),
    *("ansible.plugins.test.core", "ansible.plugins.test.files", "ansible.plugins.test.mathstuff"),
    *("ansible.plugins.test.uri", "ansible.plugins.lookup.password", "ansible.plugins.loader"),
    *("concurrent.futures.thread", "fractions", "statistics", "urllib.request", "http.client", "uuid", "pty"),
)


class Forked:
    """A run, with what tests use of ``subprocess.Popen``."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it runs."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self._read()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raise subprocess.TimeoutExpired if it still runs after ``timeout`` seconds."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("ansible-playbook", timeout or 0)
            self._read()
        assert self.returncode is not None
        return self.returncode

    def _read(self) -> None:
        said = os.read(self._status, 100)
        os.close(self._status)
        if not said:
            self.returncode = -9
            raise RuntimeError("the process that had imported Ansible has died")
        self.returncode = int(said)


class Prepared:
    """A process that has imported Ansible; ``close`` ends it."""

    def __init__(self, python: Path) -> None:
        self._python = python
        self._environment: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def start(self, argv: list[str], environment: Mapping[str, str], output: int) -> Forked | None:
        """Start ansible-playbook. Return None if this run needs a start of its own."""
        shared = {name: value for name, value in environment.items() if name not in OF_A_RUN}
        if Path(argv[0]).parent != self._python.parent or Path(environment["ANSIBLE_CONFIG"]).stat().st_size:
            return None
        if self._process is None:
            self._begin(dict(environment), shared)
        if shared != self._environment or not self._socket:
            return None
        ours, theirs = os.pipe()
        request = {"argv": argv, "environment": dict(environment), "folder": os.getcwd()}
        socket.send_fds(self._socket, [json.dumps(request).encode()], [output, theirs])
        os.close(theirs)
        return Forked(int(self._socket.recv(100)), ours)

    def _begin(self, environment: dict[str, str], shared: dict[str, str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._environment = shared
        self._process = subprocess.Popen(
            [str(self._python), __file__, str(theirs.fileno())],
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()

    def close(self) -> None:
        """End the process. Runs that still go on are their tests' business."""
        if self._process and self._socket:
            self._socket.close()
            self._process.wait(30)


def serve(requests: socket.socket) -> list[str] | None:
    """Fork for each request; return its arguments in a child, and None in the parent at the end of the requests."""
    statuses: dict[int, tuple[int, int]] = {}  # by pidfd: the process, and where its exit code goes
    while True:
        ready = select.select([requests, *statuses], [], [])[0]
        for ended in [one for one in ready if one is not requests]:
            pid, status = statuses.pop(ended)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.write(status, str(code).encode())
            os.close(ended)
            os.close(status)
        if requests not in ready:
            continue
        said, fds, _flags, _address = socket.recv_fds(requests, LONGEST_REQUEST, 2)
        if not said:
            return None
        output, status = fds
        pid = os.fork()
        if not pid:
            os.setsid()
            requests.send(str(os.getpid()).encode())  # from now on its process group can be killed
            for other in [requests.detach(), status, *statuses, *(one for _pid, one in statuses.values())]:
                os.close(other)
            return become(json.loads(said), output)
        os.close(output)
        statuses[os.pidfd_open(pid)] = (pid, status)


def become(request: dict[str, object], output: int) -> list[str]:
    """Make this process what a start of ansible-playbook would be; return its arguments."""
    argv, environment, folder = request["argv"], request["environment"], request["folder"]
    assert isinstance(argv, list) and isinstance(environment, dict) and isinstance(folder, str)
    os.chdir(folder)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    os.environ.clear()
    os.environ.update(environment)
    constants = importlib.import_module("ansible.constants")
    constants.config._config_file = environment["ANSIBLE_CONFIG"]
    constants.config._parse_config_file()
    for name in sorted(HOME_SETTINGS, key="ANSIBLE_HOME".__ne__):
        setattr(constants, name, constants.config.get_config_value(name, variables=vars(constants)))
    return [str(one) for one in argv]


HOME_SETTINGS: set[str] = set()


def remember_routing() -> None:
    """Parse the table of moved plugins now, which takes a run as long as all imports; its text is the key."""
    finder = importlib.import_module("ansible.utils.collection_loader._collection_finder")
    parse = finder._meta_yml_to_dict
    table = Path(importlib.import_module("ansible").__file__ or "").parent / "config/ansible_builtin_runtime.yml"
    text = table.read_bytes()
    # A run may alter what it gets, and asks once; each run is a process with a copy of its own.
    known = {text: parse(text, ("ansible.builtin", str(table)))}

    def parse_once(data: bytes, content_id: object) -> object:
        return known.pop(data, None) or parse(data, content_id)

    finder._meta_yml_to_dict = parse_once


def prepare() -> None:
    """Import Ansible, and find the settings that follow from its home."""
    cli = importlib.import_module("ansible.cli.playbook")
    for name in MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            if name.split(".", maxsplit=1)[0] != "ansible":
                raise
    definitions = cli.C.config.get_configuration_definitions()
    HOME_SETTINGS.clear()
    HOME_SETTINGS.update(name for name, one in definitions.items() if "ANSIBLE_HOME" in f"{name} {one.get('default')}")
    remember_routing()
    gc.collect()
    gc.freeze()


def main() -> int:
    """Prepare, and serve; a child ends as ansible-playbook does."""
    requests = socket.socket(fileno=int(sys.argv[1]))
    sys.path[0] = str(Path(sys.executable).parent)  # as for ansible-playbook
    prepare()
    argv = serve(requests)
    if argv is None:
        return 0
    sys.argv = argv
    importlib.import_module("ansible.cli.playbook").main(argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
