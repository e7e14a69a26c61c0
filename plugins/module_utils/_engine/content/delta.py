# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the ranges of a large file that an old version at the destination has at the same place.

The destination hashes the old version in aligned blocks and tells the hashes as they are made; the source hashes the
same blocks of its own meanwhile, and says "same" instead of sending them. So in-place changes and appends cost what
changed. Content that moved within the file is sent: finding it is rsync's strength.

Of each hash only the beginning is told. With "same" the source proves that it knows the rest, so it has the block:
nobody gets what an old version holds into a new file by claiming to have it. The hashes are keyed with random bytes of
this one request, so that nobody can prepare two blocks that look alike, or a table of the hashes of likely blocks.
"""

from __future__ import annotations

import binascii
import functools
import hashlib
import os
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Collection, Generator, Iterable, Iterator, NamedTuple

from ..._core.files import ALGORITHMS
from ..._core.time_accounting import cores
from ..wire.frames import FrameError
from ..wire.ranges import Range
from ..wire.records import PROOF_BYTES

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

SUM_BYTES = 8  # of a block's hash that are told
_DIGEST_BYTES, _KEY_BYTES = 32, 16
_XXH128 = "xxh128"
_XXH128_SEED_BYTES = 8
_XXH128_LIBRARY = "libxxhash.so.0"  # by the loader's own search; ctypes.util.find_library would run programs
_XXH128_OF_800_BYTES = "4748e3c5bdc08eb80e26400381665a66"  # the library has to give this one
_SAMPLED = 64  # blocks of a file that are looked at, spread over it
_FEWEST = 16  # blocks of a file; with fewer there is nothing to gain
_MOVED = 1 / 8  # at most this part of the sampled blocks is in its place where content has moved
_SMALLEST, _LARGEST = 32 << 10, 8 << 20  # bytes of a block
_MOST = 1 << 18  # blocks of one file; what is behind them is sent
_STRETCH = 4 << 20  # bytes whose hashes are made, and told, as one
_BUFFER = 256 << 10  # bytes that are read at once; no more, since they are hashed while the processor's cache has them
_THREADS = 8  # at most
_POLL = 0.5  # seconds


class Blocks(NamedTuple):
    """How the blocks of an old version are hashed."""

    size: int  # bytes of each
    total: int  # of them, from the beginning of the file
    algorithm: str
    key: bytes
    old_size: int  # bytes of the old version, which may have more than is of use

    @property
    def stretch(self) -> int:
        """Blocks whose hashes are told as one."""
        return _STRETCH // self.size or 1

    def inside(self, start: int, end: int) -> range:
        """Return the numbers of the whole blocks between two places of the file."""
        return range(-(-start // self.size), min(end // self.size, self.total))

    def stretches(self, numbers: range) -> Iterator[range]:
        """Yield the same numbers, cut where stretches end."""
        first = numbers.start
        while first < numbers.stop:
            stop = min(numbers.stop, first - first % self.stretch + self.stretch)
            yield range(first, stop)
            first = stop

    def stretches_in(self, ranges: Iterable[Range]) -> Iterator[range]:
        """Yield the stretches with blocks in some ranges of the file, which are sorted, each once."""
        done = 0
        for start, end in ranges:
            numbers = self.inside(start, end)
            first = max(done, numbers.start - numbers.start % self.stretch)
            whole = (numbers.stop + self.stretch - 1) // self.stretch * self.stretch
            done = max(done, min(whole, self.total))
            yield from self.stretches(range(first, done))

    def digest(self, data: memoryview) -> bytes:
        """Hash one block, in memory that could be written to."""
        if self.algorithm == _XXH128:
            return xxh128(data, self.key[:_XXH128_SEED_BYTES])
        if self.algorithm == "sha256":
            digest = hashlib.sha256(self.key)
            digest.update(data)
            return digest.digest()
        return hashlib.blake2b(data, digest_size=_DIGEST_BYTES, key=self.key).digest()

    def prove(self, rests: Iterable[bytes]) -> bytes:
        """Return what nobody can say who does not know the rest of the hashes of some blocks in a row."""
        return hashlib.blake2b(b"".join(rests), digest_size=PROOF_BYTES, key=self.key).digest()

    def pack(self) -> dict[str, object]:
        """Return plain data for a message."""
        return {
            "block": self.size,
            "count": self.total,
            "algorithm": self.algorithm,
            "key": self.key.hex(),
            "size": self.old_size,
        }


class Hashes(NamedTuple):
    """The hashes of blocks in a row, in two parts."""

    sums: bytes  # their beginnings, one behind the other
    rests: list[bytes]
    processor: float  # seconds that they cost

    def one(self, number: int) -> tuple[bytes, bytes]:
        """Return both parts of one of them; empty if there are fewer."""
        part = slice(number * SUM_BYTES, (number + 1) * SUM_BYTES)
        return (self.sums[part], self.rests[number]) if number < len(self.rests) else (b"", b"")


def block_size(size: int) -> int:
    """Choose the block for a file of ``size`` bytes: the smallest power of two with which its hashes are few enough."""
    block = _SMALLEST
    while block < _LARGEST and size > block * _MOST:
        block *= 2
    return block


def own_algorithms() -> list[str]:
    """Return how this host can hash blocks, beside what every host can."""
    return [_XXH128] if has_xxh128() else []


def blocks_of(old_size: int, size: int, others: Collection[str]) -> Blocks:
    """Choose how the blocks of an old version are hashed for a file of ``size`` bytes in this one transfer.

    ``others``: the ``own_algorithms`` of the source.
    """
    size = min(old_size, size)
    block = block_size(size)
    algorithm = _XXH128 if _XXH128 in others and has_xxh128() else quickest()
    return Blocks(block, min(size // block, _MOST), algorithm, os.urandom(_KEY_BYTES), old_size)


@functools.lru_cache(maxsize=1)
def quickest() -> str:
    """Return how this machine hashes quickest.

    SHA-256 is twice as fast as BLAKE2b where the processor has instructions for it, and half as fast where it has none.
    """
    data = memoryview(bytearray(128 << 10))

    def seconds(algorithm: str) -> float:
        begun = time.thread_time()
        Blocks(len(data), 1, algorithm, b"", len(data)).digest(data)
        return time.thread_time() - begun

    return min(ALGORITHMS, key=lambda algorithm: min(seconds(algorithm) for _time in range(3)))


class Hasher:
    """Threads that hash the blocks of files, as many as there are processors; they start with the first file."""

    def __init__(self) -> None:
        self._count = min(_THREADS, cores())
        self._pool: ThreadPoolExecutor | None = None
        self._lock, self._local = threading.Lock(), threading.local()

    def hashes(self, fd: int, blocks: Blocks, runs: Iterable[range]) -> Generator[tuple[range, Hashes], None, None]:
        """Yield the hashes of runs of blocks of an open file, in their order, while the next ones are being hashed.

        The last ones of a run are missing where the file is shorter. Raises OSError. The file must stay open until the
        iterator is closed.
        """
        waiting: deque[tuple[range, Future[Hashes]]] = deque()
        try:
            for run in runs:
                waiting.append((run, self._executor().submit(self._hash, fd, blocks, run)))
                if len(waiting) > self._count:
                    yield waiting[0][0], waiting[0][1].result()
                    waiting.popleft()
            while waiting:
                yield waiting[0][0], waiting[0][1].result()
                waiting.popleft()
        finally:
            for _run, future in waiting:
                if not future.cancel():
                    future.exception()  # it reads the file

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor  # which takes time, and most transfers do without

                self._pool = ThreadPoolExecutor(self._count)
            return self._pool

    def _hash(self, fd: int, blocks: Blocks, run: range) -> Hashes:
        began = time.thread_time()
        sums, rests = [], []
        for data in self._read(fd, run.start * blocks.size, run.stop * blocks.size, blocks.size):
            for at in range(0, len(data), blocks.size):
                digest = blocks.digest(data[at : at + blocks.size])
                sums.append(digest[:SUM_BYTES])
                rests.append(digest[SUM_BYTES:])
        return Hashes(b"".join(sums), rests, time.thread_time() - began)

    def _read(self, fd: int, start: int, end: int, block: int) -> Iterator[memoryview]:
        """Yield whole blocks, as many at once as fit into this thread's memory; less than all where the file ends."""
        buffer = getattr(self._local, "buffer", None)
        if buffer is None or len(buffer) < block:
            buffer = self._local.buffer = memoryview(bytearray(max(block, _BUFFER)))
        while start < end:
            wanted = buffer[: min(end - start, len(buffer) - len(buffer) % block)]
            count = 0
            while count < len(wanted):
                read = os.preadv(fd, [wanted[count:]], start + count)
                if not read:
                    yield wanted[: count - count % block]
                    return
                count += read
            yield wanted
            start += count

    def close(self) -> None:
        """End the threads, when they have done what they are at."""
        if self._pool is not None:
            self._pool.shutdown()


class KnownHashes:
    """Hashes of an old version at the source. They arrive while other threads wait for them."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self._sums: dict[int, bytes] = {}  # by the first block of a stretch
        self._next = 0  # no stretch before this block will come any more
        self._changed = threading.Condition()

    def add(self, first: int, sums: bytes, is_last: bool) -> None:
        """Take what the destination told; raises FrameError for what it cannot have."""
        count, odd = divmod(len(sums), SUM_BYTES)
        blocks = self.blocks
        if (
            odd
            or first < self._next
            or first % blocks.stretch
            or count > max(0, min(blocks.stretch, blocks.total - first))
        ):
            raise FrameError("hashes arrived of blocks that an old version does not have, or out of their order")
        with self._changed:
            self._sums[first] = sums
            self._next = blocks.total if is_last else first + blocks.stretch
            self._changed.notify_all()

    def wait(self, numbers: range, check: Callable[[], None]) -> bytes:
        """Return the hashes of blocks of one stretch as soon as they are known; of fewer blocks where there are fewer.

        ``check`` is called from time to time, and raises what ends the waiting.
        """
        first = numbers.start - numbers.start % self.blocks.stretch
        with self._changed:
            while first >= self._next:
                check()
                self._changed.wait(_POLL)
            sums = self._sums.get(first, b"")
        return sums[(numbers.start - first) * SUM_BYTES : (numbers.stop - first) * SUM_BYTES]


def same_blocks(numbers: range, own: bytes, known: bytes) -> Iterator[tuple[range, bool]]:
    """Yield runs of blocks, with whether the old version has them, too; ``own`` and ``known`` are their hashes."""
    if own == known and len(own) == len(numbers) * SUM_BYTES:
        yield numbers, True
        return
    first, same = numbers.start, False
    for number in numbers:
        at = (number - numbers.start) * SUM_BYTES
        one = own[at : at + SUM_BYTES]
        is_same = len(one) == SUM_BYTES and one == known[at : at + SUM_BYTES]
        if is_same != same:
            if number > first:
                yield range(first, number), same
            first, same = number, is_same
    if numbers.stop > first:
        yield range(first, numbers.stop), same


def has_moved(fd: int, size: int, known: KnownHashes, check: Callable[[], None]) -> bool:
    """Return whether a file of a size like its old version's has hardly any block of it in the same place.

    Then its content was moved, or replaced altogether: some blocks are looked at, and it cannot tell. Raises OSError,
    and what ``check`` raises while it waits for the hashes.
    """
    blocks = known.blocks
    own, old = size // blocks.size, min(blocks.old_size // blocks.size, _MOST)
    if min(own, old) < _FEWEST or not old / 2 <= own <= old * 2:
        return False
    looked_at = range(0, min(own, old), max(1, min(own, old) // _SAMPLED))
    equal = 0
    for number in looked_at:
        told = known.wait(range(number, number + 1), check)
        data = bytearray(os.pread(fd, blocks.size, number * blocks.size))
        equal += told == blocks.digest(memoryview(data))[:SUM_BYTES]
    return equal <= _MOVED * len(looked_at)


def parse(values: object, size: int) -> Blocks:
    """Read what ``Blocks.pack`` made of an old version of a file of ``size`` bytes; raises FrameError."""
    if not isinstance(values, dict):
        raise FrameError("how a file is hashed cannot be read")
    try:
        block, count, algorithm, old_size = (values[name] for name in ("block", "count", "algorithm", "size"))
        key = binascii.unhexlify(values["key"])
    except (KeyError, TypeError, ValueError) as error:
        raise FrameError(f"how a file is hashed cannot be read: {error}") from error
    if not isinstance(block, int) or not _SMALLEST <= block <= _LARGEST or block & (block - 1):
        raise FrameError(f"the hashes of a file are of blocks of {block} bytes")
    if not (isinstance(count, int) and isinstance(old_size, int)) or not 0 < count <= _MOST:
        raise FrameError("the hashes of a file are too many")
    if count * block > min(size, old_size):
        raise FrameError(f"a file of {size} bytes has the hashes of {count} blocks of {block} bytes")
    if algorithm not in (*ALGORITHMS, *own_algorithms()) or len(key) != _KEY_BYTES:
        raise FrameError("the hashes of a file are of a kind that is not known here")
    return Blocks(block, count, algorithm, key, old_size)


def has_xxh128() -> bool:
    """Return whether this host has XXH3 of 128 bits, by the library that rsync brings to most systems.

    It is many times as fast as what Python has. It is no cryptographic hash: with a random seed it tells blocks apart
    whose makers do not know the seed. Nothing is imported or loaded before the first call.
    """
    return _load_xxh128() is not None


def xxh128(data: memoryview, seed: bytes) -> bytes:
    """Hash writable memory. Raises ValueError if this host does not have it."""
    function = _load_xxh128()
    if function is None:
        raise ValueError("XXH3 is needed, which this host does not have")
    return function(data, seed)


@functools.lru_cache(maxsize=None)
def _load_xxh128() -> Callable[[memoryview, bytes], bytes] | None:
    if sys.byteorder != "little":  # the library returns numbers
        return None
    try:
        import ctypes

        class Xxh128Hash(ctypes.Structure):
            _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]

        # PyDLL: to let other threads run meanwhile would take longer than to hash a block.
        function: Any = ctypes.PyDLL(_XXH128_LIBRARY).XXH3_128bits_withSeed
        function.restype, function.argtypes = Xxh128Hash, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64)
        byte = ctypes.c_char

        def hash_memory(data: memoryview, seed: bytes) -> bytes:
            address = ctypes.addressof(byte.from_buffer(data))
            return bytes(function(address, len(data), int.from_bytes(seed, "little")))

        known = hash_memory(memoryview(bytearray(b"longhaul" * 100)), bytes(8))
        return hash_memory if known == bytes.fromhex(_XXH128_OF_800_BYTES) else None
    except (ImportError, OSError, AttributeError, ValueError, TypeError):
        return None
