# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our scp server: clients that say what is not theirs to say, and the real scp."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import rcp_server
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy.rcp_server import send_files, take_files
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy.shard_list import ServedFile
from ansible_collections.longhaul.fleet.tests.support import scp_client
from ansible_collections.longhaul.fleet.tests.support.served_ground import FILES, SIZE, Ground
from hypothesis import given, settings
from hypothesis import strategies as st

VIEW = b"view-3"
BEGUN = b"\0\0" + bytes(2 * len(FILES))  # acknowledgements that come before they are due
TEXT = b"text" * 100


@pytest.fixture(name="dest")
def _dest(tmp_path: Path) -> Ground:
    return Ground(tmp_path / "ground", "dest")


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> Ground:
    return Ground(tmp_path / "ground", "source")


def push(dest: Ground, said: bytes) -> bytes:
    """Say all of it, and return what the server answers."""
    with dest.served(take_files) as (writer, reader):
        with contextlib.suppress(BrokenPipeError):
            os.write(writer, said)
        os.close(writer)
        answers = b""
        while piece := os.read(reader, 1 << 16):
            answers += piece
    return answers


def arrived(dest: Ground) -> dict[str, bytes]:
    return {path.name.lstrip("0") or "0": path.read_bytes() for path in dest.partial.iterdir()}


def test_files_are_taken_and_acknowledged_before_they_come(dest):
    with dest.served(take_files) as (writer, reader):
        assert os.read(reader, 99) == b"\0"
        os.write(writer, b"D0755 0 view-3\n")
        answers = b""
        while len(answers) < len(BEGUN) - 1:
            answers += os.read(reader, 99)
        os.write(writer, scp_client.file(b"0", TEXT) + scp_client.file(b"2", b"") + b"E\n")
        assert answers + os.read(reader, 99) == bytes(len(BEGUN))
    assert dest.code == 0
    assert arrived(dest) == {"0": TEXT, "2": b""}
    assert {path.stat().st_mode & 0o7777 for path in dest.partial.iterdir()} == {0o600}
    dest.expect_nothing_harmed()


def test_what_an_earlier_run_left_is_replaced(dest):
    (dest.partial / ("0" * 32)).write_bytes(b"x" * SIZE)
    assert push(dest, scp_client.pushed(VIEW, [(b"0", TEXT)])) == BEGUN + b"\0"
    assert arrived(dest) == {"0": TEXT}


def test_no_byte_is_written_beyond_what_was_planned(dest):
    more = b"x" * (SIZE + 3000)
    answers = push(dest, scp_client.pushed(VIEW, [(b"0", more), (b"1", TEXT)]))
    assert b"'0': it is planned with 5000 bytes, and has 8000 now" in answers and dest.code == 1
    assert arrived(dest) == {"0": more[:SIZE], "1": TEXT}


def test_a_file_that_could_not_be_read_is_no_file(dest):
    said = b"D0755 0 view-3\nC0644 400 0\n" + bytes(400) + b"\1scp: 0: Input/output error\n"
    answers = push(dest, said + scp_client.file(b"1", TEXT) + b"E\n")
    assert b"the client: scp: 0: Input/output error" in answers and dest.code == 1
    assert arrived(dest) == {"0": b"", "1": TEXT}


def test_a_file_that_cannot_be_opened_does_not_stop_the_others(dest):
    (dest.partial / ("0" * 32)).symlink_to(dest.outside / "secret")
    answers = push(dest, scp_client.pushed(VIEW, [(b"0", TEXT), (b"1", TEXT)]))
    assert b"not a file that this transfer made" in answers and dest.code == 1
    assert (dest.partial / f"{1:032x}").read_bytes() == TEXT
    dest.expect_nothing_harmed()


def test_a_full_file_system_is_said_and_the_rest_thrown_away(dest, monkeypatch):
    write = os.write

    def full(fd: int, data: Any) -> int:
        if "partial" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(28, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr(rcp_server.os, "write", full)
    answers = push(dest, scp_client.pushed(VIEW, [(b"0", TEXT * 10), (b"1", b"")]))
    assert b"'0': No space left on device" in answers and dest.code == 1
    assert arrived(dest) == {"0": b"", "1": b""}


def test_nothing_but_the_plan_is_taken(dest, capfd):
    secret = str(dest.outside / "secret")
    sessions = list(scp_client.evil(3, secret))
    for said in sessions:
        answers = push(dest, said)
        assert b"secret of" not in answers
        assert len(answers) < 2000
        for name, found in arrived(dest).items():
            assert name == "0" and found in (b"", b"good", b"evil") and len(found) <= SIZE
        dest.expect_nothing_harmed()
    assert len(sessions) > 120
    assert "protocol error" in capfd.readouterr().err


def test_acknowledgements_do_not_fill_the_pipe(dest):
    """With many files they come in turns, so that neither end waits for the other."""
    count = 3 * rcp_server._AHEAD
    dest.lists.write(3, [(number, ServedFile(b"%032x" % (number % 2), SIZE)) for number in range(count)])
    with dest.served(take_files) as (writer, reader):
        os.set_blocking(reader, False)
        os.write(writer, b"D0755 0 view-3\n")
        answers = 0
        for number in range(count):
            os.write(writer, scp_client.file(b"%d" % (number % 2), b""))
            with contextlib.suppress(BlockingIOError):
                found = os.read(reader, 1 << 16)
                assert found == bytes(len(found))
                answers += len(found)
        os.write(writer, b"E\n")
        os.set_blocking(reader, True)
        while answers < 3 + 2 * count:
            found = os.read(reader, 1 << 16)
            assert found and found == bytes(len(found))
            answers += len(found)
    assert dest.code == 0 and answers == 3 + 2 * count


@settings(max_examples=300)
@given(st.lists(st.sampled_from([*scp_client.evil(3, "/etc/passwd")]), min_size=1, max_size=3), st.integers(0, 200))
def test_whatever_comes_the_stream_is_read_or_refused(said, cut):
    data = b"".join(said)[cut:]
    stream = rcp_server.Stream(_pieces(data, 7))
    read = b""
    with contextlib.suppress(rcp_server.ProtocolError):
        while (line := stream.line()) is not None:
            read += line + b"\n"
            read += bytes(stream.some(3))
    assert data.startswith(read)


def _pieces(data: bytes, size: int) -> Any:
    rest = [data]

    def fill(buffer: memoryview) -> int:
        piece, rest[0] = rest[0][:size], rest[0][size:]
        buffer[: len(piece)] = piece
        return len(piece)

    return fill


def pull(source: Ground, *answers: bytes) -> Iterator[bytes]:
    """Answer one after the other, and yield what the server says after each, and after the end."""
    with source.served(partial(send_files, 3)) as (writer, reader):
        for answer in answers:
            os.write(writer, answer)
            yield os.read(reader, 1 << 16)
        os.close(writer)
        rest = b""
        while piece := os.read(reader, 1 << 16):
            rest += piece
        yield rest


def test_files_are_sent_with_one_wait_each(source):
    for name in FILES:
        (source.root / name).write_bytes(name.encode().ljust(SIZE, b"."))
    first, second, third = (name.encode().ljust(SIZE, b".") for name in FILES)
    assert list(pull(source, b"\0", b"\0", b"\0", b"\0\0", b"\0\0", b"\0\0")) == [
        b"D0700 0 view-3\n",
        b"C0600 5000 0\n",
        first + b"\0C0600 5000 1\n",
        second + b"\0C0600 5000 2\n",
        third + b"\0E\n",
        b"",
        b"",
    ]
    assert source.code == 0


def test_a_client_that_complains_is_sent_no_more(source):
    """Else it might take what follows for lines: a file's contents would be commands."""
    (source.root / FILES[0]).write_bytes(b"C0644 4 1\nevil\0".ljust(SIZE, b"\n"))
    said = list(pull(source, b"\0", b"\0", b"\1scp: view-3/0: No space left on device\n"))
    assert said == [b"D0700 0 view-3\n", b"C0600 5000 0\n", b"", b""]
    assert source.code == 1


@pytest.mark.parametrize("answer", [b"X", b"\0X", b"\0\1" + b"x" * 5000, b"\0\2dead\n"])
def test_what_is_no_answer_ends_the_session(source, answer):
    assert b"first's" not in b"".join(pull(source, b"\0", answer))
    assert source.code == 1


def test_what_became_shorter_or_is_gone_is_complained_of(source):
    (source.root / FILES[1]).unlink()
    (source.root / FILES[1]).symlink_to(source.outside / "secret")
    (source.root / FILES[2]).write_bytes(TEXT)
    said = b"".join(pull(source, b"\0", b"\0", *([b"\0\0"] * 5)))
    assert b"\0\x011\n" not in said and b"secret of" not in said
    assert said.count(b"it has become shorter") == 2  # the first file has 7 of 5000 bytes, too
    assert b"\1longhaul: 1: Too many levels of symbolic links\n" in said or b"\1longhaul: 1: " in said
    assert said.count(b"C0600 0 0\n") == said.count(b"C0600 0 2\n") == 1
    assert source.code == 1


SERVE = """
import os, sys
from functools import partial
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import file_server, scp
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import shard_files, shard_list
_name, job, side, top, count = sys.argv[:5]
lists = shard_list.ShardLists(job)
lists.write(0, [(n, shard_list.ServedFile(b"%d" % n, (n % 7) * 100_000)) for n in range(int(count))])
fd = os.open(top, os.O_RDONLY)
dest = lambda: shard_files.DestinationFiles(lists, fd, {os.geteuid()})
make = (lambda: shard_files.SourceFiles(lists, fd)) if side == "source" else dest
sys.exit(file_server.FileServer(scp.talk_of(sys.argv[-1], side), make, ())(0, 1))
"""


@pytest.fixture(name="tree")
def _tree(tmp_path: Path) -> Path:
    for name in ("view-0", "top", "job"):
        (tmp_path / name).mkdir()
    for number in range(60):
        (tmp_path / "view-0" / str(number)).write_bytes(os.urandom((number % 7) * 100_000))
    (tmp_path / "serve.py").write_text(SERVE)
    return tmp_path


def scp(tree: Path, side: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real scp, which is connected to our server by a program in the place of ssh."""
    top = tree / ("view-0" if side == "source" else "top")
    ssh = tree / "ssh"
    words = [sys.executable, tree / "serve.py", tree / "job", side, top, 60]
    ssh.write_text(f'#!/bin/sh\nexec {" ".join(map(str, words))} "$@"\n')
    ssh.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    argv = ["scp", "-q", "-r", "-O", "-S", str(ssh), *arguments]
    return subprocess.run(argv, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=60)


needs_scp = pytest.mark.skipif(shutil.which("scp") is None, reason="cannot run here: there is no scp")


@needs_scp
def test_the_real_scp_brings_what_it_has(tree):
    done = scp(tree, "dest", "view-0", "host:.")
    assert (done.returncode, done.stderr) == (0, "")
    assert contents(tree / "top") == contents(tree / "view-0")


@needs_scp
def test_the_real_scp_gets_what_there_is(tree):
    (tree / "got").mkdir()
    done = scp(tree, "source", "host:view-0", "got")
    assert (done.returncode, done.stderr) == (0, "")
    assert contents(tree / "got" / "view-0") == contents(tree / "view-0")


@needs_scp
def test_the_real_scp_keeps_nothing_of_a_file_that_was_cut(tree):
    (tree / "got").mkdir()
    os.truncate(tree / "view-0" / "3", 1000)
    os.truncate(tree / "view-0" / "6", 1000)
    done = scp(tree, "source", "host:view-0", "got")
    assert done.returncode == 1 and "3: it has become shorter" in done.stderr
    wanted = {**contents(tree / "view-0"), "3": b"", "6": b""}
    assert contents(tree / "got" / "view-0") == wanted


@needs_scp
def test_the_real_scp_hears_at_the_end_what_was_not_taken(tree):
    (tree / "view-0" / "60").write_text("more")
    (tree / "view-0" / "3").unlink()
    done = scp(tree, "dest", "view-0", "host:.")
    assert done.returncode == 1 and "'60': no such file is wanted now" in done.stderr
    assert len(os.listdir(tree / "top")) == 59


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
