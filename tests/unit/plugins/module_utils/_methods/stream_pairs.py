# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of whole transfers by stream share."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.faults import wait_for
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import PACKAGE, Pair, settings

MIB = 1 << 20
NOBODY = 65534
WITHOUT_ROOT = ["permissions", "times", "acls", "xattrs", "hardlinks", "sparse"]  # as the plan has it then
Trees = tuple  # source, destination, and a folder for the jobs
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root")


def make_pair(trees: Trees, serving: str = "dest", encrypt: bool = False, **changes: Any) -> Pair:
    """Return the two ends of one transfer, not started yet."""
    source, dest, work = trees
    pair = Pair(work, source, dest, settings("stream", encrypt=encrypt, **changes), serving)
    if encrypt:
        pair.use_tls()
    return pair


def transfer(trees: Trees, serving: str = "dest", **changes: Any) -> dict[str, Any]:
    """Run one transfer."""
    return make_pair(trees, serving, **changes).run()


def start(pair: Pair) -> Pair:
    """Start both ends."""
    pair.start(pair.serving)
    pair.start(pair.driving)
    return pair


def expect_same(trees: Trees, outcome: dict[str, Any]) -> None:
    """A transfer must have gone well, and the trees must be the same."""
    assert outcome.get("errors") == [] and not outcome["failure"], outcome
    assert differences(trees[0], trees[1]) == []


def noise(number: int, size: int) -> bytes:
    """Return bytes that do not compress, the same for the same number."""
    return random.Random(number).getrandbits(8 * size).to_bytes(size, "big")


def partial_folder(pair: Pair) -> Path:
    """Return the folder with what has arrived of large files."""
    return Path(pair.roots["dest"], f".longhaul-{pair.plan['id']}", "partial")


def journaled(partial: Path) -> int:
    """Count the bytes that the journals say are safe."""
    lines = [line.split() for path in partial.glob("*.ranges") for line in path.read_text().splitlines()]
    return sum(int(parts[2]) - int(parts[1]) for parts in lines if len(parts) == 4)


def wait_until_safe(pair: Pair, size: int) -> None:
    """Wait until the journals say that so many bytes are safe."""
    wait_for(lambda: journaled(partial_folder(pair)) >= size, lambda: expect_running(pair), seconds=60)


def expect_running(pair: Pair) -> None:
    """Neither end may have ended."""
    for side, process in pair.processes.items():
        assert process.poll() is None, pair.stderr(side)


def run_through(pair: Pair, side: str, *lines: str, first: str = "") -> None:
    """Let the shell do something in an end's process before it begins; ``first``: a Python program that runs it."""
    script = pair.work / f"python-{side}"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("\n".join(["#!/bin/sh -e", *lines, f'exec {pair.pythons[side]} {first} "$@"', ""]))
    script.chmod(0o755)
    pair.pythons[side] = str(script)


# Another user may not be able to read the programs: so all that is needed is read before.
BECOME_NOBODY = f"""\
import ctypes, encodings.idna, importlib, os, pkgutil, shutil, sys
package = importlib.import_module({PACKAGE!r})
for name in ("_core", "_model", "_tree", "_engine"):
    for found in pkgutil.walk_packages([os.path.join(package.__path__[0], name)], f"{PACKAGE}.{{name}}."):
        importlib.import_module(found.name)
for name in ("_methods.registry", "_methods.stream", "_job.confine_job", "_job.transfer_job"):
    importlib.import_module(f"{PACKAGE}.{{name}}")
ends = importlib.import_module({Pair.__module__!r})
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: its own /proc is its own again, as after an exec
sys.exit(ends.main(*sys.argv[2:]))
"""


def run_as_nobody(pair: Pair, side: str, groups: tuple[int, ...] = ()) -> None:
    """Let one end be a user without rights, who owns its tree and is a member of these groups, too."""
    root, job = Path(pair.roots[side]), pair.work / f"job-{side}"
    job.mkdir(parents=True, exist_ok=True)
    for path in (job, root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    for path in (*root.parents, *job.parents):
        if path != Path(path.anchor) and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    program = pair.work / "as_nobody.py"
    program.write_text(BECOME_NOBODY.replace("setgroups([])", f"setgroups({list(groups)})"))
    run_through(pair, side, first=str(program))
