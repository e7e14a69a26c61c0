# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry the contents of a shard's files by tar, in the frames of the conversation.

tar's stream says nothing of its own end: cut at a member it looks complete. So it is sent in frames, with its length
and CRC-32 in the END frame. Files that a tar cannot be trusted with (names too long for it, names that bsdtar would
convert) follow behind it as they are, each after a RAW frame that names it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import zlib
from typing import IO, Any, Sequence

from ..._core import subprocesses
from ..._core.confinement.confine import Confinement
from ..._core.confinement.plan import plan_unpacking
from ..._core.context import Context
from ..._core.disk_full import full
from ..._core.errors import TransferFailed
from ..._core.subprocesses import pipe
from ..._engine.net.carrier import DestCarrier, FileRequest, Meter, Send, SendResult, ShardFiles, SourceCarrier
from ..._engine.net.control_channel import READ_BYTES, enlarge_pipe
from ..._engine.net.rate_limit import TokenBucket
from ..._engine.net.session import WireSession
from ..._engine.wire.conversation import Said
from ..._engine.wire.frames import Frame, FrameError, FrameKind, Payload
from ..._engine.wire.messages import Begin, End, Raw, inflate
from ..._model.entry import Entry, contents_of
from ..._tree.dirfd import Root
from ..._tree.staging import open_staging
from . import tar_command

_STDERR_TAIL = 2000  # bytes
_DISK_FULL = ("No space left on device", "Disk quota exceeded", "Disc quota exceeded")


def flavour_of(context: Context, side: str) -> str:
    """Return the tar flavour of one side; raise TransferFailed if it is unsupported."""
    flavour = str((context.settings.get("tar") or {}).get(side) or "")
    if flavour not in tar_command.FLAVOURS:
        raise TransferFailed(
            f"the {'source' if side == 'source' else 'destination'} has no tar that tar_nc can use (GNU tar or "
            "bsdtar): install one, or choose another method"
        )
    return flavour


def _carried(context: Context, files: Sequence[Entry]) -> int:
    """Return how many bytes of the files tar packs. bsdtar leaves holes out always."""
    leaves_holes_out = "sparse" in context.settings["preserve"] or flavour_of(context, "source") == tar_command.BSD
    return contents_of(files) if leaves_holes_out else sum(entry.size for entry in files)


def _meter(context: Context, files: Sequence[Entry]) -> Meter:
    """Return what counts files into the progress."""
    return Meter(context.progress, contents_of(files), _carried(context, files))


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _STDERR_TAIL))
    return stream.read().decode(errors="replace").strip()


def _ended(side: str, problem: str, said: str) -> str:
    """Return the failure of tar on a side, with its own message and what to do."""
    return f"at the {side} {problem}{said and f' ({said})'}. What has arrived is kept: run the task again"


class TarSource(SourceCarrier):
    """Packs, and sends."""

    def __init__(self, context: Context, session: WireSession) -> None:
        self._context = context
        self._flavour = flavour_of(context, "source")
        self._flavours = {self._flavour, flavour_of(context, "dest")}
        self._keeps_links = "hardlinks" in context.settings["preserve"]
        self._bucket = TokenBucket(int(context.settings["bwlimit"]), session.tickets, session.check)
        compress = context.settings["compress"]
        self._level = _level(compress.get("algorithm"), compress.get("level"))
        self.argv = tar_command.create_argv(  # in the root, which nobody can exchange once it is open
            self._flavour, ".", "sparse" in context.settings["preserve"]
        )
        self._running: set[subprocess.Popen[bytes]] = set()

    def send(self, _stream: int, shard: int, files: list[FileRequest], tell: Send) -> SendResult:
        """Send BEGIN, tar's output, the files that tar cannot take, END."""
        entries = [file.entry for file in files]
        sent = SendResult(contents_of(entries))
        meter = _meter(self._context, entries)
        packed = [file for file in files if self._fits(file.entry)]
        raw = [file for file in files if not self._fits(file.entry)]
        tell(Begin(shard, tar=bool(packed)))
        length = crc = 0
        if packed:
            length, crc, sent.doubtful = self._pack(packed, sent, meter, tell)
            # The headers of tar are no contents.
            sent.bytes = min(sent.bytes, _carried(self._context, [file.entry for file in packed]))
        for file in raw:
            self._send_raw(file, sent, meter, tell)
        tell(End(shard, length, crc))
        meter.end()
        return sent

    def _fits(self, entry: Entry) -> bool:
        if not tar_command.carries(entry.path, self._flavours):
            return False
        return self._keeps_links or entry.nlink == 1 or self._flavour != tar_command.BSD

    def _pack(self, files: list[FileRequest], sent: SendResult, meter: Meter, tell: Send) -> tuple[int, int, bool]:
        """Run tar; gives how much it wrote, the CRC-32 of that, and whether it complained."""
        folder = self._context.folder
        with tempfile.TemporaryFile(dir=folder) as names, tempfile.TemporaryFile(dir=folder) as errors:
            names.write(tar_command.name_list(file.entry.path for file in files))
            names.seek(0)
            process = subprocesses.start(
                self.argv, stdin=names, stdout=subprocess.PIPE, stderr=errors, cwd=self._context.top
            )
            self._running.add(process)
            try:
                length, crc = self._relay(pipe(process.stdout).fileno(), sent, meter, tell)
            except BaseException:
                process.kill()
                raise
            finally:
                process.wait()
                self._running.discard(process)
                with contextlib.suppress(OSError):
                    pipe(process.stdout).close()
            said = _tail(errors)
        if said:
            self.heard(said)
        problem = tar_command.explain_exit(self._flavour, process.returncode)
        if problem:
            raise TransferFailed(_ended("source", problem, said))
        return length, crc, process.returncode != 0

    def _relay(self, fd: int, sent: SendResult, meter: Meter, tell: Send) -> tuple[int, int]:
        enlarge_pipe(fd)
        length = crc = 0
        while True:
            data = os.read(fd, READ_BYTES)
            if not data:
                return length, crc
            crc = zlib.crc32(data, crc)
            length += len(data)
            self._send_data(data, sent, tell)
            meter.moved(len(data))

    def _send_data(self, data: bytes, sent: SendResult, tell: Send) -> None:
        if self._level:
            small = zlib.compress(data, self._level)
            if len(small) < len(data):
                self._bucket.take(len(small))
                sent.bytes += len(small)
                tell(Frame(FrameKind.DEFLATED, small))
                return
        self._bucket.take(len(data))
        sent.bytes += len(data)
        tell(Frame(FrameKind.DATA, data))

    def _send_raw(self, file: FileRequest, sent: SendResult, meter: Meter, tell: Send) -> None:
        """Send a file as it is. It may become longer or shorter meanwhile; that is found out afterwards."""
        tell(Raw(file.index))
        try:
            with Root(self._context.top) as root:
                fd = root.open_file(file.entry.path)
        except OSError as error:
            sent.problems[file.index] = f"cannot be read: {error.strerror}"
            return
        try:
            while True:
                data = os.read(fd, READ_BYTES)
                if not data:
                    return
                self._send_data(data, sent, tell)
                meter.moved(len(data))
        except OSError as error:
            sent.problems[file.index] = f"cannot be read: {error.strerror}"
        finally:
            os.close(fd)

    def close(self) -> None:
        """End the tars that still run."""
        self._bucket.close()
        for process in list(self._running):
            process.kill()


def _level(algorithm: Any, level: Any) -> int:
    """Return zlib's level, 0 for none. zlib is what Python always has; anything else is refused by the plan."""
    if algorithm in (None, "none"):
        return 0
    if algorithm not in ("zlib", "gzip"):
        raise TransferFailed(f"tar_nc cannot compress with {algorithm}: use zlib, or none")
    return int(level) if level else 1  # the quickest: more costs more time than it saves on any network


class _TarInput:
    """A shard on its way in: the tar that unpacks it, and what was counted."""

    def __init__(self, parent: int, name: bytes, folder: int, files: list[tuple[int, Entry]], meter: Meter) -> None:
        self.parent, self.name = parent, name
        self.folder = folder  # open, and this object's own
        self.names = {index: entry.path for index, entry in files}
        self.meter = meter
        self.process: subprocess.Popen[bytes] | None = None
        self.errors: IO[bytes] | None = None
        self.raw_fd = -1
        self.raw: set[int] = set()
        self.length = self.crc = 0
        self.trouble = ""


class TarDest(DestCarrier):
    """Receives, and unpacks each shard into a folder of its own."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._flavour = flavour_of(context, "dest")
        self._owners = os.geteuid() == 0 and bool({"owner", "group"} & set(context.settings["preserve"]))
        self._shards: dict[int, _TarInput] = {}
        self._current: dict[int, _TarInput] = {}  # by stream
        self.argv = tar_command.extract_argv(self._flavour, ".", self._owners)  # in a shard's folder

    def expect(self, shard: int, files: list[tuple[int, Entry]]) -> dict[int, int]:
        """Make the shard's folder. Nothing of an earlier run is of use."""
        temporary, name = open_staging(self._context).temporary_fd, b"shard-%d" % shard
        os.mkdir(name, 0o700, dir_fd=temporary)
        with Root(temporary) as parent:
            folder = parent.open_directory(name)
        meter = _meter(self._context, [entry for _index, entry in files])
        self._shards[shard] = _TarInput(temporary, name, folder, files, meter)
        return {}

    def take(self, stream: int, message: Said) -> None:
        """Take the next part of a stream."""
        if isinstance(message, Begin):
            shard = self._current[stream] = self._shards[message.id]
            if message.tar:
                self._start(shard)
            return
        shard = self._current[stream]
        if isinstance(message, Frame):
            data = inflate(message.payload) if message.kind == FrameKind.DEFLATED else message.payload
            shard.meter.moved(len(data))
            if shard.raw_fd >= 0:
                self._write(shard, shard.raw_fd, data)
            else:
                shard.crc = zlib.crc32(data, shard.crc)
                shard.length += len(data)
                if shard.process is not None and shard.process.stdin is not None:
                    self._write(shard, shard.process.stdin.fileno(), data)
        elif isinstance(message, Raw):
            self._end_file(shard)
            if message.index not in shard.names:
                raise FrameError("a file arrived that nobody asked for")
            shard.raw.add(message.index)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            shard.raw_fd = os.open(b"raw-%d" % message.index, flags, 0o600, dir_fd=shard.folder)
        elif isinstance(message, End):
            self._end_file(shard)
            self._check_end(shard, message)

    def _start(self, shard: _TarInput) -> None:
        shard.errors = tempfile.TemporaryFile(dir=self._context.folder)  # noqa: SIM115 - read when tar has ended
        confinement = Confinement(plan_unpacking(shard.folder))
        try:
            shard.process = subprocesses.start(
                self.argv,
                stdin=subprocess.PIPE,
                stdout=shard.errors,
                stderr=shard.errors,
                cwd=shard.folder,
                confine=confinement.apply,
            )
        finally:
            confinement.close()
        enlarge_pipe(pipe(shard.process.stdin).fileno())

    @staticmethod
    def _write(shard: _TarInput, fd: int, data: Payload) -> None:
        """Hand on contents; where tar (or the disk) takes no more, the rest is let go, and the files will be missed."""
        if shard.trouble:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(fd, view) :]
        except OSError as error:
            shard.trouble = error.strerror or str(error)

    @staticmethod
    def _end_file(shard: _TarInput) -> None:
        if shard.raw_fd >= 0:
            os.close(shard.raw_fd)
            shard.raw_fd = -1

    @staticmethod
    def _check_end(shard: _TarInput, end: End) -> None:
        if (end.size, end.crc) != (shard.length, shard.crc):
            raise TransferFailed(
                f"the stream of a shard arrived damaged: {shard.length} of {end.size} bytes, CRC-32 "
                f"{shard.crc:08x} instead of {end.crc:08x}. Run the transfer again; what is in place stays"
            )
        if shard.process is not None and shard.process.stdin is not None:
            shard.process.stdin.close()

    def collect(self, shard: int) -> ShardFiles:
        """Wait for tar, and see what it says."""
        incoming = self._shards.pop(shard)
        if incoming.process is not None and incoming.errors is not None:
            code = incoming.process.wait()
            said = _tail(incoming.errors)
            incoming.errors.close()
            if said:
                self.heard(said)
            if any(text in said for text in _DISK_FULL):
                raise full(self._context.root, f"tar said {said.splitlines()[0]!r}")
            problem = tar_command.explain_exit(self._flavour, code)
            if problem:
                raise TransferFailed(_ended("destination", problem, said))
            if code:
                incoming.trouble = said.splitlines()[0] if said else f"tar ended with code {code}"
        if any(text in incoming.trouble for text in _DISK_FULL):
            raise full(self._context.root, incoming.trouble)
        incoming.meter.end()
        return _Unpacked(incoming)

    def close(self) -> None:
        """End the tars that still run."""
        for shard in list(self._shards.values()):
            if shard.process is not None:
                shard.process.kill()
                with contextlib.suppress(OSError):
                    if shard.process.stdin is not None:
                        shard.process.stdin.close()
                shard.process.wait()
            if shard.errors is not None:
                shard.errors.close()
            self._end_file(shard)
            os.close(shard.folder)
        self._shards.clear()


class _Unpacked(ShardFiles):
    """What tar made of a shard."""

    def __init__(self, shard: _TarInput) -> None:
        self._shard = shard
        self._root = Root(shard.folder)
        self._last: tuple[bytes | None, int] = (None, -1)  # the fd is good until the root is asked for another
        self.trouble = shard.trouble

    def locate(self, index: int) -> tuple[int, bytes]:
        """Find a file where tar put it, reached without following a symlink."""
        if index in self._shard.raw:
            return self._root.fd, b"raw-%d" % index
        folder, _slash, name = self._shard.names[index].rpartition(b"/")
        if folder != self._last[0]:
            self._last = (folder, self._root.open_parent(self._shard.names[index])[0])
        return self._last[1], name

    def close(self) -> None:
        """Remove the folder."""
        self._root.close()
        os.close(self._shard.folder)
        with contextlib.suppress(OSError), Root(self._shard.parent) as parent:
            parent.remove(self._shard.name)
