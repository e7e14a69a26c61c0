# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Code that scp and sftp share: the conversation over ssh, and the client program.

The driving end runs the real client. Where it is the source it pushes a view of a shard's files into the destination's
staging folder; where it is the destination it pulls from the view that the source has made.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import stat
import subprocess
import tempfile
import threading
from typing import Callable, Collection, Sequence

from ..._core import subprocesses, time_accounting
from ..._core.context import Context
from ..._core.die_with_parent import descendants
from ..._core.errors import TransferFailed
from ..._core.outcome import Outcome
from ..._core.subprocesses import pipe
from ..._engine.net.carrier import DestCarrier, FileRequest, Meter, Send, SendResult, ShardFiles, SourceCarrier
from ..._engine.net.control_channel import Channel
from ..._engine.net.session import WireSession
from ..._engine.receiver.receiver import Receiver
from ..._engine.sender.sender import Sender
from ..._engine.wire.conversation import Contents
from ..._engine.wire.messages import Ready
from ..._model.entry import Entry, contents_of, entry_from_stat
from ..._tree import metadata
from ..._tree.dirfd import Root
from ..._tree.staging import Staging, open_staging
from ..ssh.client_check import check_connection
from ..ssh.client_command import common_options, known_hosts_lines, ssh_command, ssh_host
from ..ssh.failure import explain
from .fd_symlinks import View, fd_room, raise_fd_limit, view_name
from .shard_list import ServedFile, ShardLists

SESSION = "longhaul session"
VIEWS = "views"  # in the source's job folder
_POLL_SECONDS = 0.5
_STDERR_TAIL = 2000  # bytes
_UNPLANNED = 16 << 20  # bytes that a client may write beyond what it fetches and its requests, before it is ended
_REQUEST = 64  # bytes, or a little less
_RERUN = "What is in place stays: fix the network and run the task again to resume"
_LOST = re.compile(r"lost connection|Connection (?:closed|reset)|Broken pipe|client_loop", re.IGNORECASE)


def failure(program: str, code: int, said: str) -> str | None:
    """Return why a run of scp or sftp failed as a whole; None if it did not, and what it said is about single files.

    ``code`` is below 0 for a signal. SIGPIPE is that of a client whose ssh was gone before it could read its end.
    """
    reason = explain(said, code)
    if reason:
        return reason
    if code == -signal.SIGPIPE:
        return f"the connection was lost: {said or f'what carried it for {program} is gone'}. {_RERUN}"
    if code < 0:
        return f"it was ended by signal {-code}{said and f' ({said})'}. {_RERUN}"
    if code and (code == 255 or _LOST.search(said)):
        return f"the connection was lost: {said or f'it ended with code {code}'}. {_RERUN}"
    return None


def _meter(context: Context, files: Sequence[Entry]) -> Meter:
    """Return what counts files into the progress; their holes are sent, too."""
    return Meter(context.progress, contents_of(files), sum(entry.size for entry in files))


def _shows_io(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as lines:
            return bool(lines.readline())
    except OSError:
        return False


class Mover:
    """The real program with one set of flags. Its two halves name the same places at the destination."""

    def open_base(self, staged: Staging) -> int:
        """Open the folder of the destination in which files arrive; the descriptor is the caller's."""
        raise NotImplementedError

    def place(self, shard: int, file_index: int, entry: Entry) -> tuple[bytes, bytes]:
        """Return the folder (below the base; empty: the base itself) and the name under which a file arrives."""
        raise NotImplementedError

    def resumes(self) -> bool:
        """Return whether it goes on inside a file."""
        return False

    def push(
        self, options: list[str], host: str, view: str, shard: int, files: list[FileRequest]
    ) -> tuple[list[str], str]:
        """Return the argv, and what it reads on standard input, to send a view. It runs in the view's parent folder."""
        raise NotImplementedError

    def pull(self, options: list[str], host: str, shard: int, files: list[FileRequest]) -> tuple[list[str], str]:
        """Return the argv, and its standard input, to fetch a view. It runs in the base."""
        raise NotImplementedError


class ClientRunner:
    """Runs the client program, and says what its end means."""

    def __init__(self, options: list[str], address: str, folder: str) -> None:
        self.options, self.host = options, ssh_host(address)
        self._folder = folder  # for what it reads and says
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(
        self, argv: list[str], given: str, cwd: int | str, meter: Meter, counter: str, most: int | None = None
    ) -> str:
        """Run it to its end; gives what it printed where it complained. Raises TransferFailed for a lost connection.

        ``cwd`` is a path or an open directory. ``counter`` is the line of /proc/PID/io that grows with the contents;
        ``most``: beyond which the program is ended, since its peer sends what nobody planned.
        """
        with tempfile.TemporaryFile(dir=self._folder) as batch, tempfile.TemporaryFile(dir=self._folder) as errors:
            batch.write(given.encode())
            batch.seek(0)
            process = subprocesses.start(
                argv,
                stdin=batch,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=cwd,
                die_with_parent=True,
            )
            self._running.add(process)
            try:
                # If this system does not show what it does, it counts as busy
                with contextlib.nullcontext() if _shows_io(process.pid) else time_accounting.at_work():
                    self._watch(process, meter, counter, most)
            finally:
                self._running.discard(process)
            size = errors.seek(0, os.SEEK_END)
            errors.seek(max(0, size - _STDERR_TAIL))
            said = errors.read().decode(errors="replace").strip()
        code = process.returncode
        failed = failure(argv[0], code, said)
        if failed:
            raise TransferFailed(f"{argv[0]} to {self.host}: {failed}")
        return said or (f"{argv[0]} ended with code {code}" if code else "")

    def _watch(self, process: subprocess.Popen[bytes], meter: Meter, counter: str, most: int | None) -> None:
        seen = 0
        while True:
            try:
                process.wait(_POLL_SECONDS)
                return
            except subprocess.TimeoutExpired:
                pass
            time_accounting.note_encryption(descendants(process.pid))
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{process.pid}/io", encoding="ascii") as lines:
                    now = next(int(line.split()[1]) for line in lines if line.startswith(counter))
                meter.moved(now - seen)
                seen = now
            if most is not None and seen > most:
                process.terminate()
                subprocesses.end(process, 5)
                raise TransferFailed(
                    f"protocol error: {self.host} sends more than was asked for, {seen} bytes until it was stopped"
                )

    def close(self) -> None:
        """End what runs."""
        for process in list(self._running):
            process.terminate()


class CopySource(SourceCarrier):
    """The source: shows each shard in a view, and pushes it with the runner.

    Where it serves, it has ``lists`` instead, tells the servers beside it what a shard is, and waits until it was
    fetched.
    """

    def __init__(
        self, context: Context, mover: Mover, runner: ClientRunner | None, lists: ShardLists | None = None
    ) -> None:
        raise_fd_limit()
        self._context, self._mover, self._runner, self._lists = context, mover, runner, lists
        self._room = fd_room(max(1, int(context.settings["streams"])))
        self._views = os.path.join(context.folder, VIEWS)
        self._fetched: dict[int, threading.Event] = {}
        self._closed = False

    def send(self, _stream: int, shard: int, files: list[FileRequest], tell: Send) -> SendResult:
        """Push the files, or offer them and wait until they were fetched."""
        sent = SendResult(sum(file.missing for file in files), sum(file.entry.size - file.have for file in files))
        meter = _meter(self._context, [file.entry for file in files])
        if self._lists is not None:
            self._fetched[shard] = event = threading.Event()
            self._offer(self._lists, shard, files, sent)
            tell(Ready(shard))
            self._wait(event)
            self._lists.remove(shard)
            del self._fetched[shard]
        elif self._runner is not None:
            self._push(self._runner, shard, files, sent, meter)
        meter.end()
        return sent

    def _push(self, runner: ClientRunner, shard: int, files: list[FileRequest], sent: SendResult, meter: Meter) -> None:
        with View(self._context, os.path.join(self._views, view_name(shard)), files, self._room) as view:
            sent.problems = view.problems
            wanted = [file for file in files if file.have < file.entry.size or not file.entry.size]
            readable = [file for file in wanted if file.index not in view.problems]
            if readable:
                argv, given = self._mover.push(runner.options, runner.host, view_name(shard), shard, readable)
                self.argv = argv
                said = runner.run(argv, given, self._views, meter, "rchar")
                self.heard(said)
                sent.doubtful = bool(said)

    def _offer(self, lists: ShardLists, shard: int, files: list[FileRequest], sent: SendResult) -> None:
        """Let the servers open the files of a shard, as far as they can be read."""
        readable = []
        with Root(self._context.top) as source:
            for file in files:
                try:
                    os.close(source.open_file(file.entry.path))
                except OSError as error:
                    sent.problems[file.index] = f"cannot be read: {error.strerror}"
                else:
                    readable.append((file.index, ServedFile(file.entry.path, file.entry.size)))
        lists.write(shard, readable)

    def _wait(self, event: threading.Event) -> None:
        event.wait()
        if self._closed:
            raise TransferFailed("the transfer ended while the destination fetched files")

    def fetched(self, shard: int) -> None:
        """Let the view go."""
        event = self._fetched.get(shard)
        if event is not None:
            event.set()

    def close(self) -> None:
        """End what runs and whoever waits."""
        self._closed = True
        for event in list(self._fetched.values()):
            event.set()
        if self._runner is not None:
            self._runner.close()


class CopyDest(DestCarrier):
    """The destination: knows where files arrive, and fetches them where it drives.

    Where it serves, it has ``lists``, and tells the servers beside it what may arrive.
    """

    def __init__(
        self, context: Context, mover: Mover, runner: ClientRunner | None, lists: ShardLists | None = None
    ) -> None:
        self._context, self._mover, self._runner, self._lists = context, mover, runner, lists
        self._base = -1 if context.settings["check"] else mover.open_base(open_staging(context))
        self._files: dict[int, list[FileRequest]] = {}
        self._meters: dict[int, Meter] = {}
        self._trouble: dict[int, str] = {}

    def expect(self, shard: int, files: list[tuple[int, Entry]]) -> dict[int, int]:
        """Find partial files that an earlier run left."""
        have: dict[int, int] = {}
        for index, entry in files:
            size = self._left(shard, index, entry) if self._mover.resumes() else 0
            if size:
                have[index] = size
                self.resumed = True
        self._files[shard] = [FileRequest(index, entry, have.get(index, 0)) for index, entry in files]
        self._meters[shard] = _meter(self._context, [entry for _index, entry in files])
        if self._lists is not None:
            self._await(self._lists, shard, files)
        return have

    def _await(self, lists: ShardLists, shard: int, files: list[tuple[int, Entry]]) -> None:
        """Let the servers write the files of a shard, and no more of each than it has."""
        places = [(index, self._mover.place(shard, index, entry), entry.size) for index, entry in files]
        for folder in {folder for _index, (folder, _name), _size in places if folder}:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o700, dir_fd=self._base)
        lists.write(shard, [(index, ServedFile(os.path.join(*place), size)) for index, place, size in places])

    def _left(self, shard: int, index: int, entry: Entry) -> int:
        _folder, name = self._mover.place(shard, index, entry)
        try:
            status = os.stat(name, dir_fd=self._base, follow_symlinks=False)
            is_ours = status.st_nlink == 1 and status.st_uid in open_staging(self._context).owners
            if stat.S_ISREG(status.st_mode) and is_ours and status.st_size <= entry.size:
                # It may have got the source's mode, under which it cannot be written to.
                metadata.chmod(self._base, name, 0o600, entry_from_stat(name, status))
                return status.st_size
            os.unlink(name, dir_fd=self._base)
        except OSError:
            pass
        return 0

    def fetch(self, shard: int) -> None:
        """Pull a shard's files."""
        wanted = [file for file in self._files[shard] if file.have < file.entry.size or not file.entry.size]
        if not wanted:
            return
        if self._runner is None:
            raise TransferFailed("protocol error: the source asks this side to fetch files, which it sends itself")
        argv, given = self._mover.pull(self._runner.options, self._runner.host, shard, wanted)
        self.argv = argv
        planned = sum(file.entry.size - file.have for file in wanted)
        buffer = (self._context.settings.get("sftp") or {}).get("buffer") or _REQUEST
        most = planned * (2 + _REQUEST // buffer) + _UNPLANNED
        said = self._runner.run(argv, given, self._base, self._meters[shard], "wchar", most)
        self.heard(said)
        self._trouble[shard] = said.splitlines()[0] if said else ""

    def collect(self, shard: int) -> ShardFiles:
        """Return the locations of the files."""
        if self._lists is not None:
            self._lists.remove(shard)
        self._meters.pop(shard).end()
        files = self._files.pop(shard)
        owners = open_staging(self._context).owners
        return _Copied(self._base, self._mover, shard, files, owners, self._trouble.pop(shard, ""))

    def close(self) -> None:
        """End what runs."""
        if self._runner is not None:
            self._runner.close()
        if self._base >= 0:
            os.close(self._base)
            self._base = -1


class _Copied(ShardFiles):
    def __init__(
        self, base: int, mover: Mover, shard: int, files: list[FileRequest], owners: Collection[int], trouble: str
    ) -> None:
        self._base, self._mover, self._shard = base, mover, shard
        self.owners = owners
        self._entries = {file.index: file.entry for file in files}
        self._fds: dict[bytes, int] = {}
        self.trouble = trouble

    def locate(self, index: int) -> tuple[int, bytes]:
        folder, name = self._mover.place(self._shard, index, self._entries[index])
        if not folder:
            return self._base, name
        if folder not in self._fds:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            self._fds[folder] = os.open(folder, flags, dir_fd=self._base)
        return self._fds[folder], name

    def close(self) -> None:
        for folder, fd in self._fds.items():
            os.close(fd)
            with contextlib.suppress(OSError):
                os.rmdir(folder, dir_fd=self._base)


def partial_name(entry: Entry) -> bytes:
    """Name what is there of one version of a file: another version never goes on where it stopped."""
    identity = repr((entry.path, entry.size, entry.mtime_ns, entry.ino)).encode()
    return hashlib.blake2b(identity, digest_size=16).hexdigest().encode()


def run_session(
    context: Context,
    reader: int,
    writer: int,
    mover: Mover,
    runner: ClientRunner | None,
    lists: ShardLists | None = None,
) -> Outcome:
    """Hold the conversation over one connection; gives the whole outcome."""
    channel = Channel(reader, writer, float(context.settings["timeout"] or 300))
    session = WireSession(context, [channel], Contents.PROGRAM)
    if context.side == "source":
        return Sender(context, session, CopySource(context, mover, runner, lists)).run()
    return Receiver(context, session, CopyDest(context, mover, runner, lists)).run()


def drive_over_ssh(context: Context, make_mover: Callable[[Context], Mover]) -> Outcome:
    """Connect by ssh, hold the conversation, and run the program beside it."""
    peer = context.peer
    identity = context.secret_file(context.secrets["identity"], "identity")
    known = context.secret_file(known_hosts_lines(context.settings["id"], peer["host_keys"]), "known_hosts")
    ciphers, timeout = context.settings["ciphers"], int(context.settings["timeout"] or 90)
    ssh = ssh_command(peer, identity, known, ciphers, timeout=timeout)
    check_connection(ssh, peer["address"], context.settings["id"])
    options = common_options(peer, identity, known, ciphers, timeout=timeout)
    runner = ClientRunner(options, peer["address"], context.folder)
    with tempfile.TemporaryFile(dir=context.folder) as errors:
        process = subprocesses.start(
            [*ssh, ssh_host(peer["address"]), SESSION],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            die_with_parent=True,
        )
        reader, writer = os.dup(pipe(process.stdout).fileno()), os.dup(pipe(process.stdin).fileno())
        pipe(process.stdin).close()
        pipe(process.stdout).close()
        try:
            return run_session(context, reader, writer, make_mover(context), runner)
        except TransferFailed as error:
            process.terminate()
            process.wait()
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip()
            raise TransferFailed(f"{error}{' (' + said.splitlines()[-1] + ')' if said else ''}") from error
        finally:
            subprocesses.end(process, 5)
