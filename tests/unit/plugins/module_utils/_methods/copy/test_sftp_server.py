# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our SFTP server, and clients that ask it for what is not theirs, packet by packet."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import sftp_server
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy.sftp_protocol import MAX_DATA
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy.shard_list import ServedFile
from ansible_collections.longhaul.fleet.tests.support import served_ground
from ansible_collections.longhaul.fleet.tests.support import sftp_client as client
from ansible_collections.longhaul.fleet.tests.support.canary import Canary
from ansible_collections.longhaul.fleet.tests.support.served_ground import FILES, NAME, SIZE

FIRST, SECOND, THIRD = (b"view-3/%d" % number for number in range(3))


class Ground(served_ground.Ground):
    """A root that is served by SFTP."""

    @contextlib.contextmanager
    def asked(self) -> Iterator[client.Client]:
        """Yield a client."""
        with self.served(sftp_server.answer_requests) as (writer, reader):
            yield client.Client(writer, reader)


@pytest.fixture(name="dest")
def _dest(tmp_path: Path) -> Ground:
    return Ground(tmp_path / "ground", "dest")


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> Ground:
    return Ground(tmp_path / "ground", "source")


@pytest.fixture(name="ground", params=["source", "dest"])
def _ground(request: Any, tmp_path: Path) -> Ground:
    return Ground(tmp_path / "ground", request.param)


ACCESS = {"source": client.FOR_READING, "dest": client.FOR_WRITING | client.CREATING | client.TRUNCATING}


def test_a_source_is_read(source):
    with source.asked() as peer:
        assert peer.begin().kind == 2
        handle = peer.open(SECOND, client.FOR_READING)
        assert peer.read(handle, 0, 9).text == b"folder/se"
        assert peer.read(handle, 7, 2**32 - 1).text == b"second's"
        assert peer.read(handle, 15, 9).code == 1  # the end
        assert peer.ask(client.FSTAT, client.string(handle)).rest == struct.pack(">IQI", 5, 15, 0o100600)
        assert peer.close(handle).code == client.OK
        assert peer.ask(client.STAT, client.string(b"/view-3")).rest == struct.pack(">IQI", 5, 0, 0o40700)
        assert peer.ask(client.LSTAT, client.string(FIRST)).rest == struct.pack(">IQI", 5, SIZE, 0o100600)
        assert peer.ask(client.REALPATH, client.string(b"./view-3/")).text == b"/view-3"
        assert peer.ask(client.REALPATH, client.string(b".")).text == b"/"
        folder = peer.ask(client.OPENDIR, client.string(b"view-3/")).text
        names = peer.ask(client.READDIR, client.string(folder))
        assert struct.unpack_from(">I", names.rest)[0] == 3 and b"first" not in names.rest
        assert peer.ask(client.READDIR, client.string(folder)).code == 1
    assert source.code == 0
    source.expect_nothing_harmed()


def test_a_destination_is_written(dest):
    with dest.asked() as peer:
        peer.begin()
        assert peer.ask(client.STAT, client.string(FIRST)).code == 2  # no such file
        handle = peer.open(FIRST, client.FOR_WRITING | client.CREATING | client.TRUNCATING)
        assert peer.write(handle, 3, b"defg").code == client.OK
        assert peer.write(handle, 0, b"abc").code == client.OK
        assert peer.close(handle).code == client.OK
        assert peer.ask(client.STAT, client.string(FIRST)).rest == struct.pack(">IQI", 5, 7, 0o100600)
        handle = peer.open(b"/view-3/0", client.FOR_WRITING | client.CREATING | client.APPENDING)
        assert peer.write(handle, 7, b"hij").code == client.OK  # where it says, as any client means it
        assert peer.ask(client.FSETSTAT, client.string(handle) + struct.pack(">IQI", 5, 9, 0o6777)).code == client.OK
        assert peer.ask(client.SETSTAT, client.string(b"view-3") + struct.pack(">II", 4, 0o6777)).code == client.OK
    (arrived,) = dest.partial.iterdir()
    assert (arrived.name, arrived.read_text(), arrived.stat().st_mode) == ("0" * 32, "abcdefghi", 0o100600)
    assert dest.code == 0
    dest.expect_nothing_harmed()


def test_nothing_but_the_plan_is_granted(ground, tmp_path, capfd):
    with ground.asked() as peer:
        peer.begin()
        tried = 0
        for kind, fields in client.evil(ACCESS[ground.side], os.fsencode(ground.outside / "secret")):
            found = peer.ask(kind, fields)
            assert found.is_refused, (kind, fields, found)
            tried += 1
        if ground.side == "dest":
            for path in (*client.FOLDERS, FIRST):
                assert peer.ask(client.OPENDIR, client.string(path)).is_refused
        peer.open(FIRST, ACCESS[ground.side])  # the session goes on
    assert tried > 500 and ground.code == 0
    assert len(capfd.readouterr().err.splitlines()) == 10  # it says why, but not without end
    ground.expect_nothing_harmed()
    if ground.side == "dest":
        assert [path.name for path in ground.partial.iterdir()] == ["0" * 32]


@pytest.mark.parametrize(
    ("offset", "length"),
    [(SIZE, 1), (SIZE - 1, 2), (0, SIZE + 1), (2**40, 1), (2**63 - 1, 1), (2**63, 1), (2**64 - 1, 200)],
)
def test_no_byte_is_written_beyond_what_was_planned(dest, offset, length):
    with dest.asked() as peer:
        peer.begin()
        handle = peer.open(FIRST, client.FOR_WRITING)
        found = peer.write(handle, offset, b"x" * length)
        assert found.is_refused and b"planned with 5000 bytes" in found.text
        for size in (SIZE + 1, 2**62, 2**63, 2**64 - 1):
            assert peer.ask(client.FSETSTAT, client.string(handle) + struct.pack(">IQ", 1, size)).is_refused
        assert peer.write(handle, SIZE - 1, b"x").code == client.OK
    (arrived,) = dest.partial.iterdir()
    assert arrived.stat().st_size == SIZE
    dest.expect_nothing_harmed()


@pytest.mark.parametrize("offset", [2**63 - 1, 2**63, 2**64 - 1])
def test_an_offset_that_no_file_has_is_refused(source, offset):
    with source.asked() as peer:
        peer.begin()
        found = peer.read(peer.open(FIRST, client.FOR_READING), offset, 7)
        assert found.is_refused and b"no file reaches" in found.text


def test_a_file_is_read_at_a_source_and_written_at_a_destination(ground):
    with ground.asked() as peer:
        peer.begin()
        handle = peer.open(FIRST, ACCESS[ground.side])
        if ground.side == "dest":
            assert peer.read(handle, 0, 9).is_refused
        else:
            assert peer.write(handle, 0, b"x").is_refused
            assert peer.ask(client.FSETSTAT, client.string(handle) + struct.pack(">IQ", 1, 0)).is_refused
            assert peer.ask(client.FSETSTAT, client.string(handle) + struct.pack(">II", 4, 0)).is_refused
    ground.expect_nothing_harmed()


def _put_symlink(path: Path, ground: Ground) -> None:
    path.symlink_to(ground.outside / "secret")


def _put_hard_link(path: Path, ground: Ground) -> None:
    os.link(ground.outside / "secret", path)
    ground.canary = Canary(ground.root.parent, ground.root, ground.older)


def _put_fifo(path: Path, _ground: Ground) -> None:
    os.mkfifo(path)


def _put_folder(path: Path, _ground: Ground) -> None:
    path.mkdir()


@pytest.mark.parametrize("put", [_put_symlink, _put_hard_link, _put_fifo, _put_folder])
def test_what_somebody_puts_in_the_place_of_a_staged_file_is_left_alone(dest, put):
    put(dest.partial / ("0" * 32), dest)
    with dest.asked() as peer:
        peer.begin()
        for access in (ACCESS["dest"], client.FOR_WRITING, client.FOR_WRITING | client.APPENDING):
            with pytest.raises(PermissionError, match="not a file that this transfer made"):
                peer.open(FIRST, access)
        assert peer.ask(client.STAT, client.string(FIRST)).is_refused
    dest.expect_nothing_harmed()


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root")
def test_a_file_of_another_user_is_left_alone(dest):
    (dest.partial / ("0" * 32)).write_text("theirs")
    os.chown(dest.partial / ("0" * 32), 1234, 1234)
    with dest.asked() as peer:
        peer.begin()
        with pytest.raises(PermissionError, match="not a file that this transfer made"):
            peer.open(FIRST, ACCESS["dest"])
    assert (dest.partial / ("0" * 32)).read_text() == "theirs"


def test_a_staging_folder_that_is_replaced_leads_nowhere(dest):
    os.rename(dest.partial, dest.root / NAME.decode() / "moved")
    dest.partial.symlink_to(dest.outside / "tmp")
    with dest.asked() as peer:
        peer.begin()
        peer.write(peer.open(FIRST, ACCESS["dest"]), 0, b"text")
    dest.expect_nothing_harmed()
    assert (dest.root / NAME.decode() / "moved" / ("0" * 32)).read_text() == "text"


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_symlink_at_a_source_is_not_followed(source, what):
    if what == "file":
        (source.root / FILES[1]).unlink()
        (source.root / FILES[1]).symlink_to(source.outside / "secret")
    else:
        shutil.rmtree(source.root / "folder")
        (source.outside / "second").write_text("secret")
        source.canary = Canary(source.root.parent, source.root, source.older)
        (source.root / "folder").symlink_to(source.outside)
    with source.asked() as peer:
        peer.begin()
        with pytest.raises(PermissionError):
            peer.open(SECOND, client.FOR_READING)
        assert peer.open(FIRST, client.FOR_READING)


def test_a_shard_that_was_collected_is_closed(ground):
    with ground.asked() as peer:
        peer.begin()
        peer.close(peer.open(FIRST, ACCESS[ground.side]))
        ground.lists.remove(3)
        with pytest.raises(PermissionError, match="no such file is wanted now"):
            peer.open(FIRST, ACCESS[ground.side])
        assert peer.ask(client.STAT, client.string(b"view-3")).code == 2


def test_no_more_than_some_files_are_open(ground):
    with ground.asked() as peer:
        peer.begin()
        (limit,) = struct.unpack_from(">Q", peer.ask(client.EXTENDED, client.string(b"limits@openssh.com")).rest, 24)
        handles = [peer.open(SECOND, ACCESS[ground.side]) for _number in range(limit)]
        before = len(os.listdir("/proc/self/fd"))
        for _number in range(100):
            with pytest.raises(PermissionError, match="no more may be"):
                peer.open(SECOND, ACCESS[ground.side])
            if ground.side == "source":
                assert peer.ask(client.OPENDIR, client.string(b"view-3")).is_refused
        assert len(os.listdir("/proc/self/fd")) == before
        assert peer.close(handles[0]).code == client.OK
        assert peer.close(handles[0]).is_refused
        assert peer.open(SECOND, ACCESS[ground.side])
    assert limit == 16


@pytest.mark.parametrize("handle", [b"", b"\0\0\0\0", b"\0\0\0\2", b"1", b"\0\0\0\1\0", b"x" * 256])
def test_handles_that_were_never_given_stand_for_nothing(ground, handle):
    with ground.asked() as peer:
        peer.begin()
        peer.open(FIRST, ACCESS[ground.side])
        for found in (
            peer.read(handle, 0, 9),
            peer.write(handle, 0, b"x"),
            peer.close(handle),
            peer.ask(client.FSTAT, client.string(handle)),
            peer.ask(client.FSETSTAT, client.string(handle) + client.NO_ATTRIBUTES),
            peer.ask(client.READDIR, client.string(handle)),
        ):
            assert found.is_refused, found


def test_a_listing_is_no_file(source):
    with source.asked() as peer:
        peer.begin()
        folder = peer.ask(client.OPENDIR, client.string(b"view-3")).text
        file = peer.open(FIRST, client.FOR_READING)
        assert peer.read(folder, 0, 9).is_refused
        assert peer.ask(client.FSTAT, client.string(folder)).is_refused
        assert peer.ask(client.READDIR, client.string(file)).is_refused
        assert peer.close(folder).code == client.OK


ENDS = {
    "a length of 4 GiB": struct.pack(">I", 2**32 - 1),
    "a length of nothing": bytes(4),
    "an answer": client.request(client.DATA, 1, client.string(b"x")),
    "a name that is longer than its packet": client.request(client.OPEN, 1, struct.pack(">I", 2**31), b"x"),
    "data that are longer than their packet": client.request(
        client.WRITE, 1, client.string(b"\0\0\0\1"), bytes(8), struct.pack(">I", 2**32 - 1), b"x"
    ),
    "attributes without end": client.request(client.SETSTAT, 1, client.string(FIRST), b"\xff" * 40),
    "a second beginning": client.packet(client.INIT, struct.pack(">I", 3)),
    "bytes behind a request": client.request(client.CLOSE, 1, client.string(b"x"), b"y"),
    "a handle without end": client.request(client.CLOSE, 1, client.string(b"x" * 300)),
}


@pytest.mark.parametrize("what", ENDS)
def test_what_no_client_sends_ends_the_session_with_one_reason(ground, what, capfd):
    with ground.asked() as peer:
        peer.begin()
        peer.open(FIRST, ACCESS[ground.side])
        peer.send(ENDS[what])
        with pytest.raises(EOFError):
            peer.answer()
    assert ground.code == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("longhaul: protocol error: ") and line.endswith(". The session ends")
    ground.expect_nothing_harmed()


@pytest.mark.parametrize("first", [client.request(client.STAT, 1, client.string(b".")), client.packet(1, b"\0\0\0\2")])
def test_it_begins_with_a_version_that_is_known(ground, first):
    with ground.asked() as peer:
        peer.send(first)
        with pytest.raises(EOFError):
            peer.answer()
    assert ground.code == 1


def test_a_client_that_is_gone_in_the_middle_of_a_packet(dest):
    with dest.asked() as peer:
        peer.begin()
        peer.send(client.request(client.STAT, 1, client.string(b"."))[:-1])
    assert dest.code == 1


def test_much_at_once_is_answered_in_turn(source):
    """A client that asks for much before it reads an answer, in packets that arrive in pieces."""
    asked = [(number, 1 + number % 9) for number in range(20_000)]
    with source.asked() as peer:
        peer.begin()
        handle = peer.open(THIRD, client.FOR_READING)
        data = b"".join(
            client.request(client.READ, number, client.string(handle), struct.pack(">QI", 0, length))
            for number, length in asked
        )
        writer = threading.Thread(target=peer.send, args=(data,))
        writer.start()
        for number, length in asked:
            found = peer.answer()
            assert (found.number, found.text) == (number, b"third's"[:length])
        writer.join()


def test_the_largest_packets_pass(dest):
    dest.lists.write(4, [(0, ServedFile(b"f" * 32, 3 * MAX_DATA))])
    text = os.urandom(3 * MAX_DATA)
    with dest.asked() as peer:
        peer.begin()
        handle = peer.open(b"view-4/0", client.FOR_WRITING)
        for start in range(0, len(text), MAX_DATA):
            assert peer.write(handle, start, text[start : start + MAX_DATA]).code == client.OK
    assert (dest.partial / ("f" * 32)).read_bytes() == text


MEMORY = """
import os, resource, sys
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import file_server, sftp_server
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import shard_files, shard_list
lists = shard_list.ShardLists(sys.argv[1])
lists.write(3, [(n, shard_list.ServedFile(b"f", 9)) for n in range(2000)])
files = shard_files.SourceFiles(lists, os.fsencode(sys.argv[2]))
server = file_server.FileServer(sftp_server.answer_requests, lambda: files, ())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
code = server(0, 1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, file=sys.stderr)
"""


def test_memory_is_bounded_whatever_is_asked_for(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "job").mkdir()
    (tmp_path / "root" / "f").write_bytes(bytes(1 << 20))
    asked = client.packet(client.INIT, struct.pack(">I", 3))
    for number in range(16):
        asked += client.request(client.OPEN, number, client.opening(b"view-3/%d" % number, client.FOR_READING))
    reading = struct.pack(">QI", 0, 2**32 - 1)
    for number in range(400):
        asked += client.request(client.READ, number, client.string(struct.pack(">I", 1 + number % 16)), reading)
        asked += client.request(client.STAT, number, client.string(b"x" * 2000))
    argv = [sys.executable, "-c", MEMORY, str(tmp_path / "job"), str(tmp_path / "root")]
    done = subprocess.run(argv, input=asked, capture_output=True, check=True, timeout=60)
    assert len(done.stdout) > 400 * MAX_DATA
    assert int(done.stderr.splitlines()[-1]) < 12_000  # KiB; the answers are 100 MiB
