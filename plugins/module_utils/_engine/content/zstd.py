# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""zstd: by Python where it brings it (3.14), else by the library that nearly every system has.

Private to the collection. Nothing is imported or loaded before the first call: a transfer that does not compress pays
nothing.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:  # to ask whether zstd is available should cost little, and what is imported is compiled each time
    from ..wire.frames import Payload

MOST_BYTES = 8 << 20  # that are packed, or unpacked, at once
_LIBRARY = "libzstd.so.1"  # by the loader's own search; ctypes.util.find_library would run programs
_OLDEST = 10400  # 1.4.0: all that is used here is stable since then
_LOWEST, _HIGHEST = -131072, 22  # levels
_MAGIC = b"\x28\xb5\x2f\xfd"
_WINDOW_LOG = 23  # of MOST_BYTES: a frame that claims to need more memory is refused


def available() -> bool:
    """Return whether this host can do it."""
    return _engine() is not None


def compress(data: Payload, level: int) -> bytes:
    """Return the data as one frame. Levels are zstd's own, the nearest one for what is none."""
    return bytes(_needed().compress(data, max(_LOWEST, min(_HIGHEST, level))))


def decompress(data: Payload, length: int) -> Payload:
    """Undo it; raises ValueError for what is not one whole frame of exactly ``length`` bytes.

    Whatever a frame claims, it gets no more memory than ``length`` needs.
    """
    if not 0 <= length <= MOST_BYTES:
        raise ValueError(f"{length} bytes are more than zstd may give at once")
    if data[: len(_MAGIC)] != _MAGIC:  # the library would take frames of old formats, too
        raise ValueError("contents arrived as zstd that are not")
    found: Payload = _needed().decompress(data, length)
    if len(found) != length:
        raise ValueError(f"contents packed by zstd do not give the {length} bytes that were announced")
    return found


def _needed() -> Any:
    engine = _engine()
    if engine is None:
        raise ValueError("zstd is needed, which this host has neither in its Python nor as a library")
    return engine


@functools.lru_cache(maxsize=None)
def _engine() -> Any:
    for load in (_from_python, _from_system):
        engine = load()
        if engine is not None:
            return engine
    return None


def _from_python() -> _Module | None:
    try:
        from compression import zstd  # type: ignore[import-not-found]  # Python 3.14 brings it
    except ImportError:
        return None
    return _Module(zstd)


def _from_system() -> _Library | None:
    """Load the library; None if it is missing, too old, or does not give back what it was given."""
    text = b"is this what it was? " * 20
    try:
        import ctypes

        engine = _Library(ctypes, ctypes.CDLL(_LIBRARY))
        return engine if engine.decompress(engine.compress(text, 1), len(text)) == text else None
    except (ImportError, OSError, AttributeError, ValueError, TypeError, MemoryError):
        return None


class _Module:
    """Python's own."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._options = {module.DecompressionParameter.window_log_max: _WINDOW_LOG}

    def compress(self, data: Payload, level: int) -> bytes:
        return bytes(self._module.compress(data, level=level))

    def decompress(self, data: Payload, length: int) -> bytes:
        engine = self._module.ZstdDecompressor(options=self._options)
        try:
            found = bytes(engine.decompress(data, length + 1))
        except self._module.ZstdError as error:
            raise ValueError(f"contents packed by zstd cannot be unpacked: {error}") from error
        if not engine.eof or engine.unused_data:
            raise ValueError("contents packed by zstd were cut, or something follows them")
        return found


class _Context:
    """Memory that the library keeps from one call to the next; it goes with the thread that made it."""

    def __init__(self, make: Callable[[], Any], free: Callable[[Any], Any]) -> None:
        self._free = free
        self.pointer = make()
        if not self.pointer:
            raise MemoryError("zstd gets no memory")

    def __del__(self) -> None:
        if getattr(self, "pointer", None):
            self._free(self.pointer)


class _Local(threading.local):
    """What each thread has for itself."""

    packs: _Context | None = None
    unpacks: _Context | None = None
    room = bytearray()  # to pack into


class _Library:
    """The system's library, whose calls let other threads run. Raise AttributeError if it lacks one of them."""

    def __init__(self, ctypes: Any, library: Any) -> None:
        size, pointer, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
        self._byref, self._char = ctypes.byref, ctypes.c_char

        def function(name: str, result: Any, *arguments: Any) -> Any:
            found = getattr(library, f"ZSTD_{name}")
            found.restype, found.argtypes = result, arguments
            return found

        if function("versionNumber", ctypes.c_uint)() < _OLDEST:
            raise OSError("this libzstd is too old")
        block = (pointer, size)  # address and bytes
        self._make_packs, self._free_packs = function("createCCtx", pointer), function("freeCCtx", size, pointer)
        self._make_unpacks, self._free_unpacks = function("createDCtx", pointer), function("freeDCtx", size, pointer)
        self._compress = function("compressCCtx", size, pointer, *block, *block, number)
        self._decompress = function("decompressDCtx", size, pointer, *block, *block)
        self._bound = function("compressBound", size, size)
        self._frame_size = function("findFrameCompressedSize", size, *block)
        self._is_error = function("isError", ctypes.c_uint, size)
        self._error_name = function("getErrorName", ctypes.c_char_p, size)
        self._local = _Local()

    def _address(self, data: Payload) -> Any:
        """Return what a function takes as the address of the data; it keeps the data alive."""
        if isinstance(data, bytes):
            return data
        view = memoryview(data)
        if view.readonly or not view.nbytes:
            return bytes(view)  # ctypes shares only what can be written to
        return self._byref(self._char.from_buffer(view))

    def _why(self, code: int) -> str:
        return str(self._error_name(code).decode("ascii", "replace"))

    def compress(self, data: Payload, level: int) -> bytes:
        local, count = self._local, len(data)
        if local.packs is None:
            local.packs = _Context(self._make_packs, self._free_packs)
        bound = self._bound(count)
        if len(local.room) < bound:
            local.room = bytearray(bound)
        room = local.room
        packed = self._compress(local.packs.pointer, self._address(room), len(room), self._address(data), count, level)
        if self._is_error(packed):  # there is room enough, so it is memory
            raise MemoryError(f"zstd cannot pack: {self._why(packed)}")
        return bytes(memoryview(room)[:packed])

    def decompress(self, data: Payload, length: int) -> bytearray:
        local = self._local
        if local.unpacks is None:
            local.unpacks = _Context(self._make_unpacks, self._free_unpacks)
        if self._frame_size(self._address(data), len(data)) != len(data):  # an error is a number, too, a huge one
            raise ValueError("contents packed by zstd were cut, or something follows them")
        room = bytearray(length)
        found = self._decompress(local.unpacks.pointer, self._address(room), length, self._address(data), len(data))
        if self._is_error(found):
            raise ValueError(f"contents packed by zstd cannot be unpacked: {self._why(found)}")
        if found < length:
            del room[found:]
        return room
