# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The context of a method on one end of a transfer."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, NamedTuple, cast

from .json_shape import as_object, list_of, member, number
from .settings import Settings, check_time_units

if TYPE_CHECKING:
    from typing import TypedDict

    class Peer(TypedDict, total=False):
        """What the driving end knows of the serving one: from the plan, and from what that one published as ready."""

        address: str
        port: int
        host: str  # in the inventory
        timeout: int
        patience: float | None  # seconds for the first connection; None: nothing else could be tried
        user: str
        alias: str  # of the host keys
        host_keys: list[str]
        root: str  # as messages of rsync name it
        leftover: bool  # an interrupted run had left something there
        time_units: dict[str, int]  # at the destination, see TimeUnits
        mounts: list[str]  # inside the destination, escaped
        private: bool  # its sshd is of this transfer alone
        subpath: str  # in the daemon's module
        link_dest: list[str]  # in the module's terms
        chroot: bool
        confined: str  # what keeps the peer's rsync inside its root; see rsync/confinement
        confinement: list[str]  # what the peer says is in force in what it runs for us; see confinement
        cmd: list[str]

    class Serve(TypedDict, total=False):
        """What the serving end is told about itself."""

        address: str  # to listen at
        ports: list[int]  # to try in order; 0: any
        allow: list[str]  # addresses that may connect
        leftover: bool  # an interrupted run had left something here
        ssh: str  # system or private; see SshServer for what goes with it
        public_key: str
        port: int
        user: str
        authorized_keys: str
        host_keys: list[str]
        gate: list[str]

    class ProgressData(TypedDict):
        phase: str
        bytes_done: int
        bytes_total: int
        bytes_sent: int
        bytes_apparent: int
        files_done: int
        files_total: int
        current: str

else:  # making such classes takes time at each job's start
    Peer = Serve = ProgressData = dict

_KINDS: Mapping[str, type] = {
    **dict.fromkeys(("address", "host", "user", "alias", "root", "subpath", "confined"), str),
    **dict.fromkeys(("ssh", "public_key", "authorized_keys"), str),
    **dict.fromkeys(("port", "timeout"), int),
    **dict.fromkeys(("leftover", "private", "chroot"), bool),
}
_LISTS: Mapping[str, type] = {
    **dict.fromkeys(("host_keys", "link_dest", "cmd", "allow", "gate", "confinement", "mounts"), str),
    "ports": int,
}


def parse_peer(value: object) -> Peer:
    """Return what a request says of the serving end, which that end has said in part; raise WrongShape."""
    return cast(Peer, _parse(value, "peer"))


def parse_serve(value: object) -> Serve:
    """Return what a request tells the serving end about itself; raise WrongShape."""
    return cast(Serve, _parse(value, "serve"))


def _parse(value: object, what: str) -> Mapping[str, Any]:
    values = as_object(value, what)
    for name in values:
        if name in _KINDS:
            member(values, name, _KINDS[name])
        elif name in _LISTS:
            list_of(values[name], name, _LISTS[name])
    check_time_units(values.get("time_units", {}))
    if values.get("patience") is not None:
        number(values, "patience")
    return values


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # pylint: disable=ansible-bad-function


class Progress:
    """How far an end is; the job writes it to the status file once a second.

    ``bytes_done`` of ``bytes_total`` are contents without holes, sent or there already. ``bytes_sent`` went over the
    wire for them, as far as known, and ``bytes_apparent`` is the size of all files.
    """

    def __init__(self) -> None:
        self.phase = "starting"
        self.bytes_done = 0
        self.bytes_total = 0  # 0: not known yet
        self.bytes_sent = 0
        self.bytes_apparent = 0  # 0: not known yet
        self.files_done = 0
        self.files_total = 0
        self.current = ""  # the path at work, escaped

    def moved(self, count: int) -> None:
        """So many bytes more went by; less than 0: of files that must come again."""
        self.bytes_done += count

    def as_dict(self) -> ProgressData:
        """Return plain data. Content that is sent twice because a connection was lost counts once."""
        done = max(0, self.bytes_done)
        if self.bytes_total:
            done = min(done, self.bytes_total)
        return cast(ProgressData, dict(vars(self), bytes_done=done))


class ChangeTimeFiles(NamedTuple):
    """Open files with change times of a source, see _tree/change_times.py; -1 stands for none."""

    own: int  # beside the destination's tree
    older: list[int]  # beside each of Context.older


# Yields paths at which a tree may have a file, by size and mtime_ns, or by size and name: nothing of them is certain.
# The last argument says if this file is a reason to look through the tree; else it is sought where that was done.
FindMoved = Callable[[int, int, bytes, bool], Iterator[bytes]]


class Context:
    """One side of one transfer: where it is, what it does, and what it may use."""

    def __init__(
        self,
        side: str,
        part: str,
        root: bytes,
        settings: Settings,
        folder: str,
        peer: Peer | None = None,
        serve: Serve | None = None,
        secrets: dict[str, str] | None = None,
        progress: Progress | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self.side = side  # "source" or "dest"
        self.part = part  # "drive" or "serve"
        self.root = root  # absolute and real; the contents of the source's root arrive in the destination's
        self.root_fd = -1  # the same, where the job has opened it: see top
        self.older_fds: list[int] | None = None  # of link_dest, where the job has opened them: see older
        self.change_times: ChangeTimeFiles | None = None  # of the destination, if it is a snapshot
        self.moved: list[FindMoved | None] = []  # of each of older, where a manifest is beside it
        self.settings = settings
        self.folder = folder  # this job's own folder, 0700
        self.peer: Peer = {} if peer is None else peer  # for the driving end
        self.serve: Serve = {} if serve is None else serve  # for the serving end
        self.secrets = {} if secrets is None else secrets
        self.progress = Progress() if progress is None else progress
        self.stop = threading.Event()  # set when the job should end early
        self.last_words = ""  # why, where the peer should know
        self.log = _print if log is None else log
        self.staged: Any = None  # the open staging folders: see open_staging
        self.made: list[bytes] = []  # the root and parents of it that the job made, the deepest first

    @property
    def top(self) -> bytes | int:
        """The root as walks and ``Root`` take it: open, so that nobody can exchange it, or its path."""
        return self.root_fd if self.root_fd >= 0 else self.root

    @property
    def held(self) -> tuple[int, ...]:
        """The descriptors that a process of this job needs to work in the tree, beside those of the staging folders."""
        fds = [self.root_fd, *(self.older_fds or [])]
        if self.change_times is not None:
            fds += [self.change_times.own, *self.change_times.older]
        return tuple(fd for fd in fds if fd >= 0)

    @property
    def older(self) -> list[bytes | int]:
        """The folders of link_dest that there are, as ``Root`` takes them: open, or their paths."""
        if self.older_fds is not None:
            return [fd for fd in self.older_fds if fd >= 0]
        return [os.fsencode(path) for path in self.settings["link_dest"] if os.path.isdir(path)]

    @property
    def staging(self) -> bytes:
        """The folder below the destination root that belongs to this transfer alone."""
        return os.path.join(self.root, os.fsencode(staging_name(self.settings["id"])))

    def secret_file(self, text: str, name: str = "secret") -> str:
        """Return a path at which programs of this user can read the text while this process lives.

        On Linux it is a memfd, so nothing reaches a disk; elsewhere a 0600 file in the job's folder.
        """
        data = text.encode()
        if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
            fd = os.memfd_create(name)
            path = f"/proc/{os.getpid()}/fd/{fd}"
        else:
            import tempfile

            fd, path = tempfile.mkstemp(prefix=name, dir=self.folder)
        os.fchmod(fd, 0o600)
        os.write(fd, data)
        return path


class Server:
    """What a method's ``serve(context)`` gives back: the serving end, ready to be connected to.

    The job publishes ``ready`` for the driving end, waits until it is told to stop or nobody was
    connected for a while, and then closes it. ``close`` leaves no process, port, key or file behind.
    """

    ready: Peer  # becomes the driving end's Context.peer, on top of what the controller knows
    has_succeeded = False  # the conversation ended well: no further connection is expected

    def active(self) -> bool:
        """Return whether the driving end is connected at this moment."""
        raise NotImplementedError

    def close(self) -> None:
        """End everything that serve started."""
        raise NotImplementedError


def staging_name(transfer_id: str) -> str:
    """Name the folder below the destination root that holds temporary and partial files."""
    return f".longhaul-{transfer_id}"
