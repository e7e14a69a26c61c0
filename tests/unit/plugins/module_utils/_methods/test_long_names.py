# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that one end has and the other cannot take: each is one error, and everything else arrives."""

from __future__ import annotations

import os
import shutil

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import PACKAGE, Pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.method_pairs import make_pair
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import run_through

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None, reason="needs sshd")
METHODS = ["stream", "tar_nc", pytest.param("scp", marks=needs_sshd), pytest.param("sftp", marks=needs_sshd)]
PATCHED = f"""
import errno, importlib, os, sys
{{patch}}
sys.exit(importlib.import_module("{Pair.__module__}").main(*sys.argv[2:]))
"""
LISTS_A_LONG_NAME = f"""
descent = importlib.import_module("{PACKAGE}._tree.descent").Descent
names = descent.names
descent.names = lambda self: sorted([*names(self), b"n" * 300])
walk = importlib.import_module("{PACKAGE}._tree.walk")
stat_entry = walk.stat_entry
def stat_long(fd, name, path, *more):
    if len(name) < 256:
        return stat_entry(fd, name, path, *more)
    return stat_entry(fd, b".", path, *more)._replace(type="f", size=5, nlink=1)
walk.stat_entry = stat_long
"""
TAKES_143_BYTES = """
import pathlib  # of Python 3.8 makes methods of the functions that it finds
def held(call):
    def checked(*args, **more):
        for name in args[:2]:
            if isinstance(name, (bytes, str)) and max(map(len, os.fsencode(name).split(b"/"))) > 143:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        return call(*args, **more)
    return checked
for name in ("open", "stat", "mkdir", "rename", "link", "symlink", "mkfifo", "mknod", "unlink", "rmdir", "chmod"):
    setattr(os, name, held(getattr(os, name)))
"""  # as eCryptfs


def run(trees, method, side, patch):
    """Transfer, with an end whose system is another one."""
    pair = make_pair(trees, method)
    trees[2].mkdir(exist_ok=True)
    program = trees[2] / "patched.py"
    program.write_text(PATCHED.format(patch=patch))
    run_through(pair, side, first=str(program))
    return pair.run()


@pytest.mark.often(2)
@pytest.mark.parametrize("method", METHODS)
def test_a_name_that_is_too_long_for_an_entry_is_one_error(trees, method):
    source, dest, _work = trees
    for name in ("a", "z", "folder/b"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_bytes(b"x" * 400_000)
    (dest / "extra").touch()
    for _attempt in range(2):
        outcome = run(trees, method, "source", LISTS_A_LONG_NAME)
        assert [error["path"] for error in outcome["errors"]] == ["n" * 300, f"folder/{'n' * 300}"]
        assert all("its name has 300 bytes" in error["reason"] for error in outcome["errors"])
        assert differences(source, dest, ignore=("mtime",), skip=(b"extra",)) == []


@pytest.mark.often(2)
@pytest.mark.parametrize("method", METHODS)
def test_a_name_that_the_destination_cannot_take_is_one_error(trees, method):
    source, dest, _work = trees
    long = "n" * 200
    for name, size in (("a", 1000), ("z", 400_000), (f"{long} small", 1000), (f"{long} large", 400_000)):
        (source / name).write_bytes(b"x" * size)
    os.mkfifo(source / f"{long} fifo")
    os.symlink("a", source / f"{long} link")
    os.link(source / "a", source / f"{long} name of a")
    (source / f"{long} folder").mkdir()
    failing = sorted(path.name for path in source.iterdir() if path.name.startswith("n"))
    for _attempt in range(2):
        outcome = run(trees, method, "dest", TAKES_143_BYTES)
        assert sorted(error["path"] for error in outcome["errors"]) == failing
        assert {error["reason"] for error in outcome["errors"]} == {"File name too long"}
        skip = [os.fsencode(name) for name in failing]
        assert differences(source, dest, ignore=("mtime", "links"), skip=skip) == []
