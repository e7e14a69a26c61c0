# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real processes that try what they must not."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.confinement import landlock
from ansible_collections.longhaul.fleet.plugins.module_utils._core.confinement.confine import kernel
from ansible_collections.longhaul.fleet.plugins.module_utils._core.confinement.plan import MEASURES
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, PACKAGE

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="cannot run here: needs Linux")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root")
NOBODY = 65534
NUMBERS = {"x86_64": {"prctl": 157, "capset": 126}, "aarch64": {"prctl": 167, "capset": 91}}
BASE = f"{PACKAGE}._core"
WITHOUT_DEVICES = [word for word in ALL if word != "devices"]

# A child that confines itself as a job does, then tries what it is told; each is an expression or a statement.
CHILD = f"""
import ctypes, json, os, socket, stat, struct, subprocess, sys, threading, time
from {BASE}.context import Context
from {BASE}.confinement.confine import Confinement, confine
from {BASE}.confinement.plan import ConfinementPlan, plan_process, plan_unpacking
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings

told = json.loads(sys.argv[1])
context = Context(told["side"], "drive", told["root"].encode(), settings("stream", **told["settings"]), told["state"])
plan = plan_process(context)
exec(told["first"])
found = {{"in force": confine(plan)}}
for name, code in told["tries"].items():
    try:
        exec(code)
        found[name] = "done"
    except Exception as error:
        found[name] = type(error).__name__
print(json.dumps(found))
"""


def landlock_or_skip() -> None:
    calls = kernel()
    if calls is None or not calls.landlock_version():
        pytest.skip("cannot run here: this kernel has no Landlock of version 2 or newer")


class Place:
    """A root, a state folder, and what is outside."""

    def __init__(self, top: Path) -> None:
        self.root, self.state, self.outside = top / "root", top / "id" / "side", top / "outside"
        for folder in (self.root / "a", self.root / "b", self.state, self.outside):
            folder.mkdir(parents=True)
        for path in (self.root / "a/file", self.outside / "file"):
            path.write_text("text")

    def run(self, side: str, tries: dict[str, str], first: str = "", **changes: object) -> dict[str, str]:
        """Run the child; names of places stand in the code in braces."""
        places = {"root": self.root, "state": self.state, "outside": self.outside}
        told = {
            "side": side,
            "root": str(self.root),
            "state": str(self.state),
            "settings": changes,
            "first": first.format(**places),
            "tries": {name: code.format(**places) for name, code in tries.items()},
        }
        done = subprocess.run(
            [sys.executable, "-c", CHILD, json.dumps(told)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(name="place")
def _place():
    with tempfile.TemporaryDirectory() as folder:  # which another user can reach
        os.chmod(folder, 0o755)
        yield Place(Path(folder))


WRITES = {
    "write": "open('{outside}/file', 'w')",
    "append": "open('{outside}/file', 'a')",
    "truncate": "os.truncate('{outside}/file', 0)",
    "create": "open('{outside}/new', 'x')",
    "make a folder": "os.mkdir('{outside}/folder')",
    "make a symlink": "os.symlink('x', '{outside}/link')",
    "link out": "os.link('{root}/a/file', '{outside}/linked')",
    "move out": "os.rename('{root}/a/file', '{outside}/moved')",
    "remove": "os.unlink('{outside}/file')",
    "through a symlink": "os.symlink('{outside}', '{root}/away'); open('{root}/away/new', 'x')",
    "a program": "subprocess.run(['sh', '-c', 'echo x > {outside}/new'], check=True, stderr=subprocess.DEVNULL)",
}
OWN_WRITES = {
    "create": "open('{root}/b/new', 'x')",
    "move": "os.rename('{root}/b/new', '{root}/a/new')",
    "link": "os.link('{root}/a/new', '{root}/b/linked')",
    "symlink": "os.symlink('x', '{root}/link')",
    "fifo": "os.mkfifo('{root}/fifo')",
    "socket": "socket.socket(socket.AF_UNIX).bind('{root}/socket')",
    "remove": "os.unlink('{root}/b/linked'); os.rmdir('{root}/b')",
    "status": "open('{state}/status.json.1', 'w'); os.replace('{state}/status.json.1', '{state}/status.json')",
    "nothing": "open('/dev/null', 'w').write('x')",
    "a program": "subprocess.run(['sh', '-c', 'echo x > {root}/a/file 2>/dev/null'], check=True)",
    "memory": "os.write(os.memfd_create('x'), b'x')",
    "memory of its own by /proc": "fd = os.memfd_create('x'); open(f'/proc/self/fd/{{fd}}', 'w').write('x')",
}


def test_a_destination_writes_nothing_outside(place):
    landlock_or_skip()
    found = place.run("dest", WRITES)
    assert "landlock_write" in found.pop("in force")
    assert "done" not in found.values(), found
    assert sorted(os.listdir(place.outside)) == ["file"] and (place.outside / "file").read_text() == "text"


@pytest.mark.parametrize(("side", "changes"), [("source", {}), ("dest", {"link_dest": ["/older"]})])
def test_processes_and_abstract_sockets_outside_are_out_of_reach(place, side, changes):
    if not landlock.scopes_of(getattr(kernel(), "landlock_version", lambda: 0)()):
        pytest.skip("cannot run here: this kernel has no Landlock of version 6 or newer")
    first = """
before = subprocess.Popen(["sleep", "20"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
listener, address = socket.socket(socket.AF_UNIX), chr(0) + 'longhaul-test-%d' % os.getpid()
listener.bind(address)
listener.listen()
"""
    tries = {
        "signal": "os.kill(before.pid, 0)",
        "socket": "socket.socket(socket.AF_UNIX).connect(address)",
        "own process": "own = subprocess.Popen(['sleep', '9']); own.terminate(); own.wait()",
        "own socket": "own = socket.socket(socket.AF_UNIX); own.bind(address + '2'); own.listen(); "
        "socket.socket(socket.AF_UNIX).connect(address + '2')",
    }
    found = place.run(side, tries, first, **changes)
    assert found.pop("in force")[-1] == "landlock_scope"
    assert found == {
        "signal": "PermissionError",
        "socket": "PermissionError",
        "own process": "done",
        "own socket": "done",
    }


def test_a_destination_does_all_it_has_to_do(place):
    found = place.run("dest", OWN_WRITES)
    assert "no_new_privs" in found.pop("in force")
    assert set(found.values()) == {"done"}, found


def test_a_root_that_was_made_is_taken_back(place):
    landlock_or_skip()
    tries = {
        "outside": "os.unlink('{outside}/file')",
        "the root": "os.unlink('{root}/a/file'); [os.rmdir('{root}' + name) for name in ('/a', '/b', '')]",
    }
    found = place.run("dest", tries, "context.made = [os.fsencode('{root}')]; plan = plan_process(context)")
    assert (found["outside"], found["the root"]) == ("PermissionError", "done")
    assert not place.root.exists()


def test_the_root_is_held_although_its_name_leads_elsewhere_by_then(place):
    landlock_or_skip()
    held = "context.root_fd = os.open('{root}', os.O_RDONLY); plan = plan_process(context)"
    exchange = "os.rename('{root}', '{root}.old'); os.rename('{outside}', '{root}')"
    tries = {"the root": "os.open('new', os.O_CREAT, dir_fd=context.root_fd)", "its name": "open('{root}/new', 'x')"}
    first = f"{held}; rules = Confinement(plan); {exchange}; confine = lambda _plan: rules.apply()"
    found = place.run("dest", tries, first)
    assert (found["the root"], found["its name"]) == ("done", "PermissionError")


def test_a_source_reads_nothing_outside_and_writes_nothing(place):
    landlock_or_skip()
    tries = {
        "read": "open('{outside}/file')",
        "list": "os.listdir('{outside}')",
        "write": "open('{root}/a/file', 'a')",
        "a program": "subprocess.run(['cat', '{outside}/file'], check=True, stderr=subprocess.DEVNULL)",
    }
    found = place.run("source", tries)
    assert [one for one in found.pop("in force") if one != "landlock_scope"][-2:] == ["landlock_write", "landlock_read"]
    assert "done" not in found.values(), found


def test_a_source_does_all_it_has_to_do(place):
    tries = {
        "read": "assert open('{root}/a/file').read() == 'text' and os.listdir('{root}')",
        "import": "import decimal, zipfile, xml.dom.minidom",
        "names": "import pwd; pwd.getpwuid(0)",
        "addresses": "socket.getaddrinfo('localhost', 22)",
        "a program": "subprocess.run(['ls', '{root}'], check=True, stdout=subprocess.DEVNULL)",
        "status": "open('{state}/status.json', 'w')",
        "certificates": "import ssl; ssl.create_default_context()",
    }
    found = place.run("source", tries)
    found.pop("in force")
    assert set(found.values()) == {"done"}, found


@needs_root
@pytest.mark.parametrize("measure", ["capabilities", "landlock_write"])
def test_a_device_is_made_only_where_devices_are_preserved(place, measure):
    alone = "plan.files = None" if measure == "capabilities" else "plan.capabilities = None"
    if measure != "capabilities":
        landlock_or_skip()
    tries = {"device": "os.mknod('{root}/device', 0o600 | stat.S_IFCHR, os.makedev(1, 3))"}
    found = place.run("dest", tries, alone, preserve=WITHOUT_DEVICES)
    assert measure in found["in force"] and found["device"] == "PermissionError"
    assert place.run("dest", tries, alone, preserve=ALL)["device"] == "done"


@needs_root
def test_root_has_lost_what_it_does_not_need_in_programs_too(place):
    sets = "[int(line.split()[1], 16) for line in open('/proc/self/status') if line.startswith('Cap')]"
    script = f"import sys; sys.exit(any(one >> 21 & 1 for one in {sets}))"  # SYS_ADMIN in any set
    tries = {
        "trusted attribute": "os.setxattr('{root}/a/file', 'trusted.x', b'x')",
        "mount": "assert ctypes.CDLL(None, use_errno=True).mount(b'x', b'{root}', b'tmpfs', 0, None) == 0",
        "host name": "socket.sethostname(socket.gethostname())",
        "chroot": "os.chroot('{root}')",
        "another's priority": "os.setpriority(os.PRIO_PROCESS, 0, -5)",
        "program": f"subprocess.run([sys.executable, '-c', {script!r}], check=True)",
    }
    found = place.run("dest", tries, "plan.files = None", preserve=["times", "owner"])
    assert "capabilities" in found["in force"]
    assert found.pop("program") == "done", found
    assert "done" not in found.values(), found


@needs_root
def test_a_root_job_keeps_what_preserve_needs(place):
    tries = {
        "trusted": "os.setxattr('{root}/a/file', 'trusted.x', b'x'); assert os.getxattr('{root}/a/file', 'trusted.x')",
        "capability": "os.setxattr('{root}/a/file', 'security.capability', bytes.fromhex("
        "'0100000200040000000000000000000000000000'))",
        "owner": f"os.chown('{{root}}/a/file', {NOBODY}, {NOBODY})",
        "mode": "os.chmod('{root}/a/file', 0o6755)",
        "times": "os.utime('{root}/a/file', (1, 1))",
    }
    found = place.run("dest", tries, preserve=ALL)
    found.pop("in force")
    assert set(found.values()) == {"done"}, found


@needs_root
def test_a_setuid_program_gains_nothing(place):
    program = shutil.copy(shutil.which("id"), place.root / "id")
    os.chmod(program, 0o4755)
    become = f"os.setgid({NOBODY}); os.setuid({NOBODY})"
    tries = {"gains": "assert subprocess.run(['{root}/id', '-u'], stdout=subprocess.PIPE).stdout == b'0\\n'"}
    if place.run("dest", tries, f"{become}; confine = lambda _plan: []")["gains"] != "done":
        pytest.skip("cannot run here: the temporary folder's file system ignores setuid")
    found = place.run("dest", tries, become)
    assert "no_new_privs" in found["in force"] and found["gains"] == "AssertionError"


def test_a_program_that_unpacks_is_held_to_its_folder(place):
    landlock_or_skip()
    plan = "plan = plan_unpacking(os.open('{root}/a', os.O_RDONLY))"
    tries = {
        "inside": "os.mkdir('{root}/a/sub'); open('{root}/a/sub/new', 'x')",
        "beside": "open('{root}/b/new', 'x')",
        "symlink": "os.symlink('x', '{root}/a/link')",
        "fifo": "os.mkfifo('{root}/a/fifo')",
    }
    found = place.run("dest", tries, plan)
    assert found.pop("inside") == "done" and "landlock_write" in found.pop("in force")
    assert "done" not in found.values(), found


def test_a_process_with_threads_is_left_as_it_is(place):
    found = place.run("dest", {}, "threading.Thread(target=time.sleep, args=(5,), daemon=True).start()")
    assert found["in force"] == []


def test_what_children_will_get_is_found_out_in_one(place):
    tries = {"same": "assert found['in force'] == before"}
    found = place.run("dest", tries, "before = Confinement(plan).find_out()")
    assert found["same"] == "done" and found["in force"]


@pytest.mark.parametrize("withheld", ["landlock", "capset", "all"])
def test_what_a_container_withholds_is_not_in_force_and_fails_nothing(place, withheld):
    numbers = NUMBERS.get(platform.machine())
    if numbers is None:
        pytest.skip(f"cannot run here: the numbers of system calls on {platform.machine()} are not known")
    refused = {"landlock": [444], "capset": [numbers["capset"]], "all": [444, *numbers.values()]}[withheld]
    # A filter of system calls as a container's, which refuses some with EPERM: load the number, compare, return.
    first = f"""
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
code = struct.pack('HBBI', 0x20, 0, 0, 0)
for number in {refused}:
    code += struct.pack('HBBI', 0x15, 0, 1, number) + struct.pack('HBBI', 0x06, 0, 0, 0x00050001)
code += struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000)
memory = ctypes.create_string_buffer(code)
program = struct.pack('HxxxxxxQ', len(code) // 8, ctypes.addressof(memory))
assert libc.prctl(22, 2, program, 0, 0) == 0
"""
    expected = {
        "landlock": ["no_new_privs", "capabilities"],
        "capset": ["no_new_privs", "landlock_write", "landlock_scope"],
        "all": [],
    }[withheld]
    calls = kernel()
    has = {"no_new_privs", *(["capabilities"] if os.geteuid() == 0 else [])}
    version = calls.landlock_version() if calls is not None else 0
    has |= {"landlock_write"} if version else set()
    has |= {"landlock_scope"} if landlock.scopes_of(version) else set()
    found = place.run("dest", {"write": "open('{root}/new', 'x')"}, first)
    assert found == {"in force": [name for name in MEASURES if name in has and name in expected], "write": "done"}
