# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The processes that make small files: real ones, with a real destination."""

from __future__ import annotations

import contextlib
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
from ansible_collections.longhaul.fleet.plugins.module_utils._core import die_with_parent
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Context
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver import writer_pool
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.receiver.writer_pool import WriteResult, WriterPool
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._tree.staging import open_staging
from ansible_collections.longhaul.fleet.tests.support.small_disk import small_disk
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="cannot run here: elsewhere one process writes")

DAY = 1_700_000_000_000_000_000  # an mtime


def make_context(folder: Path, **changes: Any) -> Context:
    """Return a writable destination."""
    root = folder / "root"
    context = Context("dest", "serve", os.fsencode(root), settings("stream", **changes), str(folder))
    os.makedirs(os.path.join(context.staging, b"tmp"))
    return context


class Crew:
    """Writers that work, and what came back from them."""

    def __init__(self, context: Context, count: int = 1) -> None:
        self.events: queue.Queue[Any] = queue.Queue()
        self.writers = WriterPool(context, self.events.put, count)

    def next(self) -> Any:
        """Return the next event."""
        return self.events.get(timeout=20)


@pytest.fixture(name="crew")
def _crew(tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(make_context(tmp_path, delete=True))
    crew.writers.expect(writer_pool.WORTH)
    yield crew
    crew.writers.close()


def entry(path: str, content: bytes, mode: int = 0o640, **changes: Any) -> Entry:
    """Return a regular file of this user."""
    plain = Entry(os.fsencode(path), "f", mode, os.geteuid(), os.getegid(), len(content), DAY, 2, 3, 4, 1, 0, 0)
    return plain._replace(**changes)


def piece(*files: tuple[Entry, bytes]) -> list[Any]:
    """Return the batch for files that do not exist yet."""
    return [(10 + number, item, None, memoryview(content)) for number, (item, content) in enumerate(files)]


def test_none_is_started_before_it_is_worth_it(tmp_path):
    crew = Crew(make_context(tmp_path), count=2)
    crew.writers.expect(writer_pool.WORTH - 1)
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
    assert isinstance(told, WriteResult) and told.key == "the shard" and told.indexes == [10, 11, 12]
    assert (told.failures, told.errors) == ({}, []) and told.processor > 0
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
    (root / "gone").mkdir()  # was a directory when it was looked at, and may go
    (root / "full" / "below").mkdir(parents=True)  # this one may not
    told = piece(*((entry(name, b"1"), b"1") for name in ("no/way", "fine", "gone", "full")))
    told[2:] = [(index, item, item._replace(type="d"), content) for index, item, _found, content in told[2:]]
    assert crew.writers.give(1, told, [])
    said = crew.next()
    assert {index: failure[0] for index, failure in said.failures.items()} == {10: errno.ENOENT, 13: errno.ENOTEMPTY}
    assert (root / "fine").read_bytes() == (root / "gone").read_bytes() == b"1" and (root / "full" / "below").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: owners need root")
def test_owners_are_mapped_by_the_plan_and_by_what_was_learned(tmp_path):
    crew = Crew(make_context(tmp_path, numeric_ids=False, owner_map={"users": [[4713, 4714]], "groups": []}))
    crew.writers.learn_ids({4711: 5}, {})
    crew.writers.expect(writer_pool.WORTH)
    crew.writers.learn_ids({4712: 6}, {})
    files = piece(
        (entry("a", b"1", uid=4711, gid=0), b"1"),
        (entry("b", b"1", uid=4712, gid=4712), b"1"),
        (entry("c", b"1", uid=4713, gid=4713), b"1"),
    )
    try:
        assert crew.writers.give(1, files, []) and crew.next().failures == {}
        found = {name: (tmp_path / "root" / name).stat() for name in "abc"}
        assert {name: status.st_uid for name, status in found.items()} == {"a": 5, "b": 6, "c": 4714}
        assert found["b"].st_gid == 4712
    finally:
        crew.writers.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: mounting needs root")
def test_a_full_disk_has_its_own_number(tmp_path):
    (tmp_path / "root").mkdir()
    content = os.urandom(200_000)
    with small_disk(tmp_path / "root", "size=300k"):
        context = make_context(tmp_path)
        crew = Crew(context)
        with contextlib.closing(open_staging(context)), contextlib.closing(crew.writers):
            crew.writers.expect(writer_pool.WORTH)
            assert crew.writers.give(1, piece(*((entry(name, content), content) for name in "abc")), [])
            said = crew.next()
        assert {number for number, _text in said.failures.values()} == {errno.ENOSPC}
        assert 10 not in said.failures and (tmp_path / "root/a").read_bytes() == content


def test_no_more_is_taken_than_there_is_room_for(tmp_path, crew):
    content = os.urandom(writer_pool.PIECE_BYTES // 4)
    given = 0
    while crew.writers.give(given, piece(*((entry(f"f{given}-{part}", content), content) for part in range(4))), []):
        given += 1
        assert given < 10_000
    keys = [crew.next().key for _piece in range(given)]
    assert keys == list(range(given))
    assert {path.stat().st_size for path in (tmp_path / "root").glob("f*")} == {len(content)}
    assert crew.writers.give("again", piece((entry("last", b"1"), b"1")), [])


def test_one_that_is_killed_ends_the_transfer(crew):
    (process,) = die_with_parent.descendants(os.getpid())
    os.kill(process, signal.SIGKILL)
    said = crew.next()
    assert isinstance(said, TransferFailed) and "run the task again" in str(said)
    with pytest.raises(TransferFailed):
        for number in range(10):
            crew.writers.give(number, piece((entry("a", b"1"), b"1")), [])
            time.sleep(0.01)


def test_none_is_left_behind(tmp_path):
    crew = Crew(make_context(tmp_path), count=3)
    crew.writers.expect(writer_pool.WORTH)
    assert len(die_with_parent.descendants(os.getpid())) == 3
    assert crew.writers.give(1, piece((entry("a", b"1"), b"1")), [])
    crew.writers.close()
    assert die_with_parent.descendants(os.getpid()) == []
    assert crew.next().key == 1 and crew.events.empty()
    assert (tmp_path / "root/a").read_bytes() == b"1"


_LEADER = """
import os, sys, time
from pathlib import Path
from {name} import Crew, make_context, writer_pool
crew = Crew(make_context(Path(sys.argv[1])), count=2)
crew.writers.expect(writer_pool.WORTH)
print(*__import__("{die_with_parent}", fromlist=["x"]).descendants(os.getpid()), flush=True)
time.sleep(60)
"""


def test_they_die_with_the_process_that_leads(tmp_path):
    code = _LEADER.format(name=Path(__file__).stem, die_with_parent=die_with_parent.__name__)
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
    assert writer_pool.processes_wanted(make_context(tmp_path, streams=streams)) == expected
