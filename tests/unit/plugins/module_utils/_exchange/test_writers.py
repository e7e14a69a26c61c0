# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The processes that make small files: real ones, with a real destination."""

from __future__ import annotations

import errno
import os
import queue
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._exchange import writers
from ansible_collections.longhaul.fleet.plugins.module_utils._exchange.writers import Writers, Written
from ansible_collections.longhaul.fleet.plugins.module_utils._job import lifeline
from ansible_collections.longhaul.fleet.plugins.module_utils._job.context import Context, TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.entry import Entry
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._exchange.ends import settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="cannot run here: elsewhere one process writes")

DAY = 1_700_000_000_000_000_000  # an mtime


def make_context(folder: Path, **changes: Any) -> Context:
    """Give a destination, ready to be written to."""
    root = folder / "root"
    context = Context("dest", "serve", os.fsencode(root), settings("stream", **changes), str(folder))
    os.makedirs(os.path.join(context.staging, b"tmp"))
    return context


class Crew:
    """Writers that work, and what came back from them."""

    def __init__(self, context: Context, count: int = 1) -> None:
        self.events: queue.Queue[Any] = queue.Queue()
        self.writers = Writers(context, self.events.put, count)

    def next(self) -> Any:
        """Give the next event."""
        return self.events.get(timeout=20)


@pytest.fixture(name="crew")
def _crew(tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(make_context(tmp_path, delete=True))
    crew.writers.expect(writers.WORTH)
    yield crew
    crew.writers.close()


def entry(path: str, content: bytes, mode: int = 0o640, **changes: Any) -> Entry:
    """Give a regular file of this user."""
    plain = Entry(os.fsencode(path), "f", mode, os.geteuid(), os.getegid(), len(content), DAY, 2, 3, 4, 1, 0, 0)
    return plain._replace(**changes)


def piece(*files: tuple[Entry, bytes]) -> list[Any]:
    """Give what is handed over of files whose places are empty."""
    return [(10 + number, item, None, memoryview(content)) for number, (item, content) in enumerate(files)]


def test_none_is_started_before_it_is_worth_it(tmp_path):
    crew = Crew(make_context(tmp_path), count=2)
    crew.writers.expect(writers.WORTH - 1)
    assert not crew.writers.count and not crew.writers.give("key", piece((entry("a", b"1"), b"1")), [])
    crew.writers.expect(1)
    crew.writers.expect(5000)
    assert crew.writers.count == 2
    crew.writers.close()
    assert crew.events.empty()


def test_files_are_made_as_they_shall_be(tmp_path, crew):
    root = tmp_path / "root"
    (root / "new").mkdir()
    (root / "there").mkdir()
    files = [
        (entry("new/a", b"one", 0o600), b"one"),
        (entry("new/b", b"", 0o4755), b""),
        (entry("there/c", b"x" * 200_000), b"x" * 200_000),
    ]
    assert crew.writers.give("the shard", piece(*files), [b"new"])
    told = crew.next()
    assert isinstance(told, Written) and told.key == "the shard" and told.indexes == [10, 11, 12]
    assert (told.failures, told.errors, told.deleted) == ({}, [], 0) and told.processor > 0
    for item, content in files:
        path = root / os.fsdecode(item.path)
        status = path.stat()
        assert path.read_bytes() == content
        assert (status.st_mode & 0o7777, status.st_mtime_ns) == (item.mode, DAY), path
    assert (
        os.listdir(os.path.join(os.fsencode(root), b".longhaul-" + os.fsencode(settings("stream")["id"]), b"tmp")) == []
    )


def test_what_fails_is_named_and_the_others_are_made(tmp_path, crew):
    root = tmp_path / "root"
    (root / "gone" / "below").mkdir(parents=True)  # was a directory when it was looked at, and may go
    folder = entry("gone", b"", 0o755, type="d")
    told = piece((entry("no/way", b"1"), b"1"), (entry("fine", b"2"), b"2"), (entry("gone", b"3"), b"3"))
    told[2] = (12, told[2][1], folder, told[2][3])
    assert crew.writers.give(1, told, [])
    said = crew.next()
    assert list(said.failures) == [10] and said.failures[10][0] == errno.ENOENT
    assert said.deleted == 2
    assert (root / "fine").read_bytes() == b"2" and (root / "gone").read_bytes() == b"3"


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: owners need root")
def test_owners_go_by_their_names_where_that_is_wished(tmp_path):
    crew = Crew(make_context(tmp_path, numeric_ids=False))
    crew.writers.learn_names({4711: "daemon"}, {})
    crew.writers.expect(writers.WORTH)
    crew.writers.learn_names({4712: "nobody"}, {4712: "no such group"})
    files = piece(
        (entry("a", b"1", uid=4711, gid=0), b"1"),
        (entry("b", b"1", uid=4712, gid=4712), b"1"),
    )
    try:
        assert crew.writers.give(1, files, []) and crew.next().failures == {}
        assert (tmp_path / "root/a").owner() == "daemon" and (tmp_path / "root/b").owner() == "nobody"
        assert (tmp_path / "root/b").stat().st_gid == 4712
    finally:
        crew.writers.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: mounting needs root")
def test_a_full_disk_has_its_own_number(tmp_path):
    (tmp_path / "root").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(tmp_path / "root")], check=True)
    crew = None
    try:
        crew = Crew(make_context(tmp_path))
        crew.writers.expect(writers.WORTH)
        content = os.urandom(200_000)
        assert crew.writers.give(1, piece(*((entry(name, content), content) for name in "abc")), [])
        said = crew.next()
        assert {number for number, _text in said.failures.values()} == {errno.ENOSPC}
        assert 10 not in said.failures and (tmp_path / "root/a").read_bytes() == content
    finally:
        if crew is not None:
            crew.writers.close()
        subprocess.run(["umount", str(tmp_path / "root")], check=True)


def test_no_more_is_taken_than_there_is_room_for(tmp_path, crew):
    content = os.urandom(writers.PIECE_BYTES // 4)
    given = 0
    while crew.writers.give(given, piece(*((entry(f"f{given}-{part}", content), content) for part in range(4))), []):
        given += 1
        assert given < 10_000
    keys = [crew.next().key for _piece in range(given)]
    assert keys == list(range(given))
    assert {path.stat().st_size for path in (tmp_path / "root").glob("f*")} == {len(content)}
    assert crew.writers.give("again", piece((entry("last", b"1"), b"1")), [])


def test_one_that_is_killed_ends_the_transfer(crew):
    (process,) = lifeline.descendants(os.getpid())
    os.kill(process, signal.SIGKILL)
    said = crew.next()
    assert isinstance(said, TransferFailed) and "run the task again" in str(said)
    with pytest.raises(TransferFailed):
        for number in range(10):
            crew.writers.give(number, piece((entry("a", b"1"), b"1")), [])
            time.sleep(0.01)


def test_none_is_left_behind(tmp_path):
    crew = Crew(make_context(tmp_path), count=3)
    crew.writers.expect(writers.WORTH)
    assert len(lifeline.descendants(os.getpid())) == 3
    assert crew.writers.give(1, piece((entry("a", b"1"), b"1")), [])
    crew.writers.close()
    assert lifeline.descendants(os.getpid()) == []
    assert crew.next().key == 1 and crew.events.empty()
    assert (tmp_path / "root/a").read_bytes() == b"1"


_LEADER = """
import os, sys, time
from pathlib import Path
from {name} import Crew, make_context, writers
crew = Crew(make_context(Path(sys.argv[1])), count=2)
crew.writers.expect(writers.WORTH)
print(*__import__("{lifeline}", fromlist=["x"]).descendants(os.getpid()), flush=True)
time.sleep(60)
"""


def test_they_die_with_the_process_that_leads(tmp_path):
    code = _LEADER.format(name="test_writers", lifeline=lifeline.__name__)
    places = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    leader = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": places},
    )
    assert leader.stdout is not None
    with leader.stdout:
        numbers = [int(word) for word in leader.stdout.readline().split()]
    leader.kill()
    leader.wait()
    assert len(numbers) == 2
    deadline = time.monotonic() + 10
    while any(_lives(number) for number in numbers):
        assert time.monotonic() < deadline, "they are still there"
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(("streams", "expected"), [(1, 0), (2, 1), (16, 15), (64, 15)])
def test_there_are_as_many_as_streams(tmp_path, streams, expected):
    assert writers.processes_wanted(make_context(tmp_path, streams=streams)) == expected
