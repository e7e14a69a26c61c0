# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs are found and started in one way, and in one place."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins import module_utils
from ansible_collections.longhaul.fleet.plugins.module_utils._core import subprocesses

PLUGINS = Path(next(iter(module_utils.__path__))).parent
STARTING = {
    "subprocess": {"run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {"fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp"},
    "pty": {"fork", "spawn"},
}
WORDS = re.compile(rf"\b(subprocess|{'|'.join(sorted(STARTING['os']))}|spawn\w*|exec[lv]\w*)\b")  # one is in each start
# Which module may start children by what. Programs that are written as text and run apart are not read here, since they
# cannot import: the guard of an rsync daemon, and what stands between a module and the process that reverts a change of
# the network.
ALLOWED = {
    "module_utils/_core/confinement/confine.py": {"os.fork"},  # tries what its own children will do
    "module_utils/_core/subprocesses.py": {"subprocess.Popen"},
    "module_utils/_job/control_loop.py": {"os.fork"},  # continues what is stopped if this very process is killed
    "module_utils/_methods/ssh/service.py": {"os.fork"},  # serves a connection with a function of this very process
    "module_utils/_rsyncd/identity.py": {"os.fork"},  # looks at a folder as another user
    "plugin_utils/common/deadline.py": {"subprocess.Popen"},  # starts none, but finds those that a thread waits for
    "plugin_utils/jobs/notify_delivery.py": {"subprocess.Popen"},  # a command of the user, on the control node
    "plugin_utils/hosts/interruption.py": {
        "os.fork"
    },  # writes what a worker that ends has to say when ansible has ended
}


def starts(source: str) -> set[str]:
    """Name what starts a child process in a module's source, types in annotations left out."""
    tree = ast.parse(source)
    names = {"subprocess": "subprocess", "os": "os", "pty": "pty"}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({alias.asname: alias.name for alias in node.names if alias.asname and alias.name in STARTING})
        elif isinstance(node, ast.ImportFrom) and node.module in STARTING and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names if _is_start(node.module, alias.name)}
    types = {id(part) for node in ast.walk(tree) for noted in _annotations(node) for part in ast.walk(noted)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and id(node) not in types:
            module = names.get(node.value.id, "")
            if module and _is_start(module, node.attr):
                found.add(f"{module}.{node.attr}")
    return found


def _is_start(module: str, name: str) -> bool:
    return name in STARTING[module] or (module == "os" and name.startswith(("spawn", "exec")))


def _annotations(node: ast.AST) -> list[ast.AST]:
    noted = [getattr(node, name, None) for name in ("annotation", "returns")]
    return [part for part in noted if isinstance(part, ast.AST)]


@pytest.mark.newest
def test_nothing_else_starts_a_child():
    sources = {str(path.relative_to(PLUGINS)): path.read_text() for path in sorted(PLUGINS.rglob("*.py"))}
    found = {name: starts(source) for name, source in sources.items() if WORDS.search(source)}
    assert {name: ways for name, ways in found.items() if ways} == ALLOWED


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import subprocess\nsubprocess.run([])", {"subprocess.run"}),
        ("import subprocess as s\ns.check_output([])", {"subprocess.check_output"}),
        ("from subprocess import Popen", {"subprocess.Popen"}),
        ("from os import fork", {"os.fork"}),
        ("import os\ndef f():\n    start = os.posix_spawn", {"os.posix_spawn"}),
        ("import os\nos.spawnv(0, '', [])", {"os.spawnv"}),
        ("import os\nos.execv('', [])", {"os.execv"}),
        ("import subprocess\ndef f(p: subprocess.Popen[bytes]) -> subprocess.Popen: ...", set()),
        ("import subprocess\nx: subprocess.Popen[bytes] | None = None\nsubprocess.PIPE", set()),
    ],
)
def test_the_reading_of_sources(source, expected):
    assert starts(source) == expected


def test_a_child_sees_the_search_path_english_and_what_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/opt/bin::relative:/usr/bin")
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("LOGNAME", raising=False)
    extra = subprocesses.own_variables("HOME", "LOGNAME")
    done = subprocesses.run(["/usr/bin/env"], extra_environment=extra)
    assert sorted(done.stdout.decode().splitlines()) == [
        "HOME=/home/somebody",
        "LC_ALL=C",
        "PATH=/opt/bin:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin",
    ]


def test_programs_are_found_where_only_root_looks(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert subprocesses.find_program("env") == "/usr/bin/env"
    assert subprocesses.find_program("no-such-program") is None


def test_a_run_gives_code_and_both_outputs():
    done = subprocesses.run(["sh", "-c", "cat; echo wrong >&2; pwd; exit 3"], given=b"given\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"given\n/\n", b"wrong\n")


def test_a_run_reads_nothing_unless_given():
    assert subprocesses.run(["cat"]).stdout == b""


def test_a_run_that_takes_too_long_is_killed():
    begun = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired) as late:
        subprocesses.run(["sh", "-c", "echo begun; exec sleep 60"], timeout=0.5)
    assert time.monotonic() - begun < 30
    assert late.value.stdout == b"begun\n"


def test_what_no_signal_ends_is_left_alone(monkeypatch):
    assert subprocesses.ask(["sh", "-c", "echo out; echo err >&2; exit 3"], 30).stdout == b"out\n"
    with pytest.raises(FileNotFoundError):
        subprocesses.ask(["no-such-program"], 1)
    started = []
    start = subprocesses.start

    def note(*given, **more):
        started.append(start(*given, **more))
        return started[0]

    monkeypatch.setattr(subprocesses, "start", note)
    monkeypatch.setattr(subprocesses, "_LAST", 0.1)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "kill", lambda process: None)  # as one that waits for a disk
        with pytest.raises(subprocess.TimeoutExpired):
            subprocesses.ask(["sleep", "60"], 0.2)
        assert started[0].poll() is None
    started[0].kill()
    started[0].wait()


def test_what_is_missing_raises_or_says_nothing():
    with pytest.raises(FileNotFoundError):
        subprocesses.run(["no-such-program"])
    assert subprocesses.run_command(["no-such-program"]) == ""
    assert subprocesses.run_command(["sh", "-c", "echo out; echo err >&2; exit 1"]) == "out\nerr\n"


@pytest.mark.parametrize("die_with_parent", [False, True])
def test_a_program_works_in_an_open_folder_whatever_its_name_leads_to(tmp_path, die_with_parent):
    (tmp_path / "folder").mkdir()
    fd = os.open(tmp_path / "folder", os.O_RDONLY)
    (tmp_path / "folder").rename(tmp_path / "elsewhere")
    with subprocesses.start(["pwd", "-P"], stdout=subprocess.PIPE, cwd=fd, die_with_parent=die_with_parent) as process:
        assert process.stdout.read().decode().strip() == str(tmp_path / "elsewhere")
    os.close(fd)


def test_a_program_leads_a_session_where_that_is_asked_for():
    for new_session in (False, True):
        argv = [sys.executable, "-c", "import os, sys; sys.exit(os.getsid(0) == os.getpid())"]
        assert subprocesses.run(argv, new_session=new_session).returncode == new_session


def test_descriptors_are_handed_on_by_name_only():
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    code = f"import os; os.write({writing}, b'here')"
    assert subprocesses.run([sys.executable, "-c", code]).returncode == 1
    assert subprocesses.run([sys.executable, "-c", code], pass_fds=(writing,)).returncode == 0
    assert os.read(reading, 10) == b"here"
    os.close(reading)
    os.close(writing)


_LEADER = """
import os, subprocess, sys
from {name} import start
child = start(["sleep", "60"], stdout=subprocess.DEVNULL, die_with_parent=sys.argv[1] == "True")
print(child.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a child of its parent's end")
@pytest.mark.parametrize("die_with_parent", [False, True])
def test_a_program_ends_with_its_parent_where_that_is_asked_for(die_with_parent):
    code = _LEADER.format(name=subprocesses.__name__)
    leader = subprocess.run([sys.executable, "-c", code, str(die_with_parent)], stdout=subprocess.PIPE, check=False)
    pid = int(leader.stdout)
    deadline = time.monotonic() + (20 if die_with_parent else 0.3)
    while _lives(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    lives = _lives(pid)
    if lives:
        os.kill(pid, 9)
    assert lives is not die_with_parent


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_process_is_waited_for_and_then_killed():
    process = subprocesses.start(["sleep", "60"])
    subprocesses.end(process, 0.05)
    assert process.returncode == -9
    process = subprocesses.start(["true"])
    subprocesses.end(process, 20)
    assert process.returncode == 0
