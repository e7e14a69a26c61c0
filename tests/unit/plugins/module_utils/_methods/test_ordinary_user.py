# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An ordinary user on the destination's host reads nothing that arrives before it has its owner."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.method_pairs import make_pair

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux")
    or os.geteuid() != 0
    or shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin") is None,
    reason="cannot run here: needs root, Linux and OpenSSH's server",
)
INTRUDER, OWNER = 54322, 4242  # users of no host

# Looks for what it can read below a folder, over and over, until its input ends; then says what, and how often.
LOOKS = """
import json, os, select, sys
user, root = int(sys.argv[1]), sys.argv[2]
os.setgroups([])
os.setgid(user)
os.setuid(user)
read, rounds, seen = set(), 0, set()
while not select.select([0], [], [], 0)[0]:
    rounds += 1
    for folder, folders, files in os.walk(root):
        seen.add(folder)
        for name in folders:
            path = os.path.join(folder, name)
            if name.startswith(".longhaul") and os.access(path, os.R_OK):
                read.add(path)
        for name in files:
            path = os.path.join(folder, name)
            seen.add(path)
            try:
                with open(path, "rb") as file:
                    file.read(1)
                read.add(path)
            except OSError:
                pass
print(json.dumps([rounds, sorted(read), sorted(seen)]))
"""


@pytest.fixture(name="place")
def _place() -> Iterator[Path]:
    """A folder that other users reach: pytest's own are closed."""
    place = Path(tempfile.mkdtemp(prefix="longhaul-test-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


@pytest.mark.often(3)
@pytest.mark.parametrize("serving", ["dest", "source"])
@pytest.mark.parametrize("method", ["stream", "rsync", "tar_nc", "rsyncd", "sftp", "scp"])
def test_an_ordinary_user_sees_nothing_of_it(place, method, serving):
    """What is new in a folder with a set-group-id bit belongs to the group of the folder, here the intruder's."""
    source, dest, work = place / "source", place / "dest", place / "work"
    for folder in (source, dest, source / "folder", source / "later"):
        folder.mkdir()
        os.chown(folder, OWNER, INTRUDER)
        folder.chmod(0o2755)
    (dest / "control").write_text("what the intruder may read")
    for number in range(600):
        size = 3 << 20 if number < 4 else 3000
        path = source / ("folder" if number % 2 else "later") / f"file {number}"
        path.write_bytes(os.urandom(size))
        os.chown(path, OWNER, OWNER)
        path.chmod(0o640)
    pair = make_pair((source, dest, work), method, serving, bwlimit=8 << 20)
    argv = [sys.executable, "-c", LOOKS, str(INTRUDER), str(dest)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as intruder:
        outcome = pair.run()
        rounds, read, seen = json.loads(intruder.communicate()[0])
    assert (outcome["failure"], outcome["errors"]) == ("", []), pair.stderr(serving)
    assert rounds > 20 and len(seen) > 10, "the intruder did not look while it ran"
    assert read == [str(dest / "control")]
    assert all((path.stat().st_uid, path.stat().st_gid) == (OWNER, OWNER) for path in dest.rglob("file *"))
