# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs with a host whose root alters the answers of modules: what it reached elsewhere, and which honest jobs suffered.

alpha is hostile: its ``ansible_python_interpreter`` is ``hostile_python.py``. beta and gamma are honest. A *trial* is a
run of a playbook or of a role, with one job of alpha, and where it can have two, with one that alpha has no part in.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any, Callable, NamedTuple

import yaml

from ..testbed import Testbed
from . import compare, hostile_python, leftovers, refusal
from .playbooks import Playbooks, Running

ROLES = Path(__file__).resolve().parents[2] / "roles"
HOSTILE, HONEST = "alpha", ("beta", "gamma")
HOSTS = (HOSTILE, *HONEST)
PROGRAM = "/usr/local/bin/hostile-python"
VARIABLES = {"ansible_python_interpreter": PROGRAM, "longhaul_answer_timeout": 40}
CANARY = f"/tmp/hostile-canary-{os.getpid()}"  # on every host, and on the control node
SECONDS = 240.0  # after which a run is too long
PROGRAMS = ("ssh_executable", "sftp_executable", "scp_executable", "become_exe", "executable", "shell_executable")
# What Ansible never prints by itself without colours: ESC and other controls, C1, a lone CR, marks of direction.
RAW = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]"
)
# One run with all that leaves an answer an answer.
MIXED = (
    *("facts_hooks", "facts_shell", "facts_connection", "facts_plugins"),
    *("stats", "warnings", "escapes", "internal", "junk"),
)
EVERY_MODE = hostile_python.MODES
_HOOK_TASKS = """\
- name: Look at a folder
  ansible.builtin.stat:
    path: /data/src
- name: Run a program
  ansible.builtin.command: /bin/true
"""


def ended_at_facts(output: str) -> bool:
    """Tell whether a play ended for the hostile host as its facts were gathered, before any task of a role.

    The answer of ``MIXED`` makes ansible-core 2.19 fail there: "unhashable type: 'dict'".
    """
    return bool(re.search(rf"^{HOSTILE} +: ok=0 .*\bfailed=1\b", output, re.MULTILINE))


class Found(NamedTuple):
    """What a run came to. Empty lists: nothing was reached."""

    canaries: list[str]  # places where a command or a path of the hostile host took effect
    raw: list[str]  # lines of the output or of a report with bytes that change a terminal
    suffered: list[str]  # what is missing of the honest job
    altered: int  # answers
    seconds: float
    output: str

    @property
    def problems(self) -> list[str]:
        """Return a line for each defect."""
        found = [f"canary: {one}" for one in self.canaries]
        found += [f"raw: {one}" for one in self.raw[:8]]
        found += [f"suffered: {one}" for one in self.suffered]
        return found if self.altered else [*found, "no answer was altered, so this run shows nothing"]


def _hook(canary: str, name: str) -> dict[str, Any]:
    return {"name": name, "host": "localhost", "command": ["/usr/bin/touch", f"{canary}/hook-{name}"]}


def _injected(canary: str, name: str, option: dict[str, Any]) -> Any:
    """Return a value of the right type for a role's variable that would be seen if it took effect."""
    kind = option.get("type", "str")
    if kind in ("list", "dict", "int", "float", "bool"):
        others = {"dict": {name: f"{canary}/{name}"}, "int": 1, "float": 1.0, "bool": not option.get("default")}
        return [_hook(canary, name)] if kind == "list" else others[kind]
    if option.get("choices"):
        return option["choices"][-1]
    if re.search("dir|path|file|folder|dest|into", name):
        return f"{canary}/{name}"
    return "{{ lookup('ansible.builtin.pipe', 'touch " + f"{canary}/{name}" + "') }}"


def make_facts(canary: str) -> dict[str, dict[str, Any]]:
    """Return the facts that the hostile host adds, by kind."""
    variables: dict[str, Any] = {}
    for path in sorted(ROLES.glob("*/meta/argument_specs.yml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            variables |= {name: _injected(canary, name, one) for name, one in entry.get("options", {}).items()}
    for path in sorted(ROLES.glob("*/*/*.yml")):
        for name in re.findall(
            r"\b__(?:migrate|backup|restore|nic|rsyncd|ssh_client|tune)_\w+", path.read_text("utf-8")
        ):
            variables.setdefault(name, _injected(canary, name, {}))
    for name in ("longhaul_state_dir", "longhaul_address", "fleet_limits"):
        variables[name] = f"{canary}/{name}"
    hooks = {name: value for name, value in variables.items() if isinstance(value, list)}
    runs = f"/tmp/$(touch {canary}/shell-NAME)/x"
    shell = {
        name: runs.replace("NAME", name)
        for prefix in ("ansible_", "")
        for name in (f"{prefix}{one}" for one in ("remote_tmp", "async_dir", "common_remote_group", "shell_executable"))
    }
    lists = ("ansible_system_tmpdirs", "ansible_admin_users")
    shell_lists = {name: [runs.replace("NAME", name)] for name in lists}
    connection = {
        **{
            name: f"{canary}/program {name}" for name in ("discovered_interpreter_python", "ansible_python_interpreter")
        },
        **dict.fromkeys(("ansible_ssh_common_args", "ansible_ssh_extra_args"), f"-o ProxyCommand={canary}/program"),
        "ansible_connection": "local",
        "ansible_host": "127.0.0.1",
        "ansible_port": 9,
        "ansible_user": "nobody",
        "ansible_become": True,
        "ansible_become_user": "nobody",
        "ansible_pipelining": False,
        "ansible_play_hosts": ["alpha"],
        "inventory_hostname": "alpha",
        "groups": {},
        "hostvars": {},
        "ansible_check_mode": True,
        "playbook_dir": canary,
        "inventory_dir": canary,
        "role_path": canary,
    }
    plugins = {
        **{f"ansible_{name}": f"{canary}/program-{name}" for name in PROGRAMS},
        **{
            f"ansible_{name}": f"-o ProxyCommand={canary}/program-{name}"
            for name in ("sftp_extra_args", "scp_extra_args")
        },
        "ansible_control_path": f"{canary}/control-path",
    }
    kinds = {"hooks": hooks, "shell": {**shell, **shell_lists}, "connection": connection, "plugins": plugins}
    return {**kinds, "variables": variables}


class Stage:
    """The hosts, ready for one trial after the other."""

    def __init__(self, bed: Testbed, playbooks: Playbooks) -> None:
        self.bed, self.playbooks = bed, playbooks
        self.canary = CANARY
        self.modes: list[str] = []  # in which the hostile host altered its answers during the last trial
        bed_program = bed.root(HOSTILE) / PROGRAM.lstrip("/")
        shutil.copyfile(hostile_python.__file__, bed_program)
        bed_program.chmod(0o755)
        playbooks.inventory = bed.inventory(playbooks.folder / "hosts.yml")  # without pipelining, as Ansible has it
        refusal.add_hosts(playbooks.inventory, {HOSTILE: (HOSTILE, VARIABLES)})
        (playbooks.inventory.parent / "hook.yml").write_text(_HOOK_TASKS, encoding="utf-8")

    def data(self, host: str) -> Path:
        """Return the folder /data of a host as this machine sees it."""
        return self.bed.root(host) / "data"

    def prepare(self) -> None:
        """Make hosts and control node as they were: trees at /data/src, empty canary folders, no earlier report."""
        for host in HOSTS:
            leftovers.clean(self.bed, host)
            source = self.data(host) / "src"
            (source / "folder").mkdir(parents=True)
            for number in range(5):
                (source / "folder" / str(number)).write_text(f"{host} {number}")
            (source / "large").write_bytes(bytes(range(256)) * 4096)
        for name in ("longhaul-migrate", "longhaul-backup", "longhaul-restore", "longhaul-verify"):
            shutil.rmtree(self.playbooks.inventory.parent / name, ignore_errors=True)
        for place in self._canaries().values():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            place.chmod(0o1777)
            for name in ("program", *(f"program-{one}" for one in (*PROGRAMS, "sftp_extra_args", "scp_extra_args"))):
                (place / name).write_text(f"#!/bin/sh\ntouch {self.canary}/ran-{name}\nexit 1\n")
                (place / name).chmod(0o755)
        self.arm()

    def _canaries(self) -> dict[str, Path]:
        control = {"the control node": Path(self.canary)}
        return {**control, **{host: self.bed.root(host) / self.canary.lstrip("/") for host in HOSTS}}

    def arm(self, *modes: str, after: int = 0) -> None:
        """Have the hostile host alter its answers in these ways, after so many honest ones; none: be honest."""
        run = self.bed.root(HOSTILE) / "run"
        for name in (hostile_python.COUNT, hostile_python.LOG):
            (run / Path(name).name).unlink(missing_ok=True)
        config = {"modes": modes, "after": after, "canary": self.canary, "facts": make_facts(self.canary)}
        (run / Path(hostile_python.CONFIG).name).write_text(json.dumps(config), encoding="utf-8")

    def altered(self) -> int:
        """Return how many answers were altered."""
        log = self.bed.root(HOSTILE) / "run" / Path(hostile_python.LOG).name
        return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0

    def touched(self) -> list[str]:
        """Return what the hostile host reached on the control node and on honest hosts."""
        places = {name: place for name, place in self._canaries().items() if name != HOSTILE}
        found = [f"{path.name} on {name}" for name, place in places.items() for path in sorted(place.iterdir())]
        return [one for one in found if not one.startswith("program")]

    def raw(self, output: bytes) -> list[str]:
        """Return the lines of the output and of the reports with bytes that change a terminal."""
        texts = {"output": output}
        for folder in self.playbooks.inventory.parent.glob("longhaul-*"):
            texts |= {
                path.name: path.read_bytes() for path in folder.rglob("*") if path.suffix in (".html", ".md", ".txt")
            }
        return [
            f"{name}: {line[max(0, at.start() - 90) : at.end() + 30]!r}"
            for name, text in texts.items()
            for line in text.split(b"\n")
            for at in [RAW.search(line)]
            if at
        ]

    def start(self, playbook: str | list[dict[str, Any]], *flags: str, **variables: Any) -> Running:
        """Start a playbook or plays."""
        return self.playbooks.start(playbook, *flags, **variables)

    def missing(self, tree: Path, *marks: Path, source: str = "gamma") -> list[str]:
        """Return what an honest job did not do: copy the source's tree to ``tree``, and make each of ``marks``."""
        found = [f"{mark} was not made by a hook" for mark in marks if not mark.exists()]
        if not tree.is_dir():
            return [*found, f"{tree} was not made"]
        return found + [f"{tree}: {one}" for one in compare.differences(self.data(source) / "src", tree)[:3]]

    def attempt(self, trial: Trial, *modes: str, after: int = 0, seconds: float = SECONDS) -> Found:
        """Run a trial and judge it. What has not ended in time is killed."""
        self.prepare()
        trial.make_ready(self)
        # ansible-core lets facts set these. Where it asks the host itself, they take effect before any check of ours.
        self.modes = [mode for mode in modes if not (trial.is_plain and mode == "facts_plugins")]
        self.arm(*self.modes, after=after)
        begun = time.monotonic()
        running = trial.start(self)
        late: list[str] = []
        try:
            output = running.wait(seconds).output
        except AssertionError:
            late, output = [f"the run did not end within {seconds:.0f} s"], running.output
        took, altered = time.monotonic() - begun, self.altered()
        self.arm()
        suffered = [*late, *trial.find_missing(self, output)]
        raw = [] if trial.is_plain else self.raw(running.log.read_bytes())
        if "hostile_stats" in output and not trial.is_plain:
            suffered.append("custom statistics of the hostile host are those of the run")
        return Found(self.touched(), raw, suffered, altered, took, output)


class Trial(NamedTuple):
    """One playbook, role or set of tasks. ``find_missing`` looks for the work of the honest job, also in the output.

    ``is_plain``: Ansible itself runs modules on the hostile host as tasks of a play, and takes their warnings and
    statistics, so only what they reach elsewhere counts.
    """

    name: str
    start: Callable[[Stage], Running]
    find_missing: Callable[[Stage, str], list[str]]
    make_ready: Callable[[Stage], None] = lambda _stage: None
    is_plain: bool = False
