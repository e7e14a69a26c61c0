# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Serve one connection of a remote shell by a daemon's module, so that rsync itself changes its root to the tree.

The client on the other host speaks as it does over ssh: it sends its version, reads that of the server, and the rest
is the same as with a daemon. This process stands between the two: it says to the daemon what a daemon's client says
first (which module, which options: those that were checked), keeps the daemon's answers to that from the client, and
from then on moves bytes. Source: exchange_protocols() and rsync_module() in rsync's clientserver.c, setup_protocol()
in its compat.c.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import tempfile
import threading
from typing import Callable, Sequence

from ..._core import subprocesses
from ..._core.context import Context
from ..._core.errors import TransferFailed
from .argv import withheld_rules
from .confinement import MODULE, module_conf, module_rules

_CAP_SYS_CHROOT = 18  # <linux/capability.h>
_LONGEST_LINE = 4096  # bytes of one answer of the daemon
_MOST_LINES = 64  # until it says OK
_OLDEST, _NEWEST = 27, 255  # versions of the protocol
_REFUSED = 5  # rsync's exit code for a client and a server that do not agree
_PIECE = 1 << 18  # bytes that are moved at once
_GREETING = re.compile(rb"^@RSYNCD: (?P<version>\d{1,3})(?:\.\d+)?(?: |$)")
_OK = b"@RSYNCD: OK"
_SPLICE: Callable[..., int] | None = getattr(os, "splice", None)  # Python 3.10 and newer, on Linux
_NONBLOCK = getattr(os, "SPLICE_F_NONBLOCK", 2)


class ChrootUnavailable(Exception):
    """The two do not come together. The text says why."""


def may_change_root() -> bool:
    """Return whether this process may make the tree the root folder of a program."""
    if os.geteuid() != 0:
        return False
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as stream:
        for line in stream:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> _CAP_SYS_CHROOT & 1)
    return True


def chrooting(context: Context) -> Callable[[Sequence[bytes]], ChrootedRsync]:
    """Return what makes the work for one command out of its argv.

    Raises TransferFailed if the path of the root cannot be written into a configuration.
    """
    fds, path = [], os.fsdecode(context.root)
    if os.path.isdir("/proc/self/fd"):  # whatever the path leads to by now
        fds = [context.root_fd if context.root_fd >= 0 else os.open(context.root, os.O_RDONLY | os.O_DIRECTORY)]
        path = f"/proc/self/fd/{fds[0]}"
    conf, rules = (os.path.join(context.folder, f"rsync-module.{kind}") for kind in ("conf", "rules"))
    held_to = module_rules(context.settings)
    try:
        text = module_conf(path, context.side, rules if held_to else "", withheld_rules(context.settings, context.side))
    except ValueError as error:
        raise TransferFailed(f"{error}: rsync cannot be confined to this path. Rename the folder") from error
    for name, content in ((rules, held_to), (conf, text)):
        fd, new = tempfile.mkstemp(dir=context.folder)  # a daemon that starts at this moment reads it whole
        with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(content)
        os.replace(new, name)
    return lambda argv: ChrootedRsync(conf, argv, fds)


class ChrootedRsync:
    """A function that serves one connection (``service.Work``) in a forked child.

    ``conf``: the daemon's configuration. ``argv``: the server's command, as it would run in the root. ``keeps``: the
    descriptors that the configuration's paths need.
    """

    def __init__(self, conf: str, argv: Sequence[bytes], keeps: Sequence[int]) -> None:
        self.keeps = tuple(keeps)
        self.options = tuple(argv[1:-1])  # without "rsync" and "./"
        self._conf = conf

    def __call__(self, stdin: int, stdout: int) -> int:
        """Serve; return the exit code of rsync."""
        to_rsync, from_rsync = os.pipe(), os.pipe()
        process = subprocesses.start(
            ["rsync", "--server", "--daemon", f"--config={self._conf}", "."],
            stdin=to_rsync[0],
            stdout=from_rsync[1],
            die_with_parent=True,
            pass_fds=self.keeps,
        )
        os.close(to_rsync[0])
        os.close(from_rsync[1])
        try:
            introduce(stdin, stdout, to_rsync[1], from_rsync[0], self.options)
        except (ChrootUnavailable, OSError) as problem:
            os.write(2, f"longhaul: {problem}\n".encode("utf-8", "replace"))
            process.kill()
            process.wait()
            return _REFUSED
        threading.Thread(target=move, args=(stdin, to_rsync[1]), daemon=True).start()
        move(from_rsync[0], stdout)
        code = process.wait()
        return code if code >= 0 else 128 - code


def introduce(from_client: int, to_client: int, to_daemon: int, from_daemon: int, options: Sequence[bytes]) -> None:
    """Speak as a daemon's client begins, so that the next byte of each side is for the other.

    Raises ChrootUnavailable, and OSError where one of them is gone.
    """
    version = int.from_bytes(_exactly(from_client, 4), "little")
    if not _OLDEST <= version <= _NEWEST:
        raise ChrootUnavailable("the peer does not speak rsync's protocol")
    # No user is asked for, so that the kind of digest does not matter; from version 32 on one must be named.
    _write(to_daemon, b"@RSYNCD: %d.0 md5\n%s\n" % (version, MODULE.encode()))
    greeting = _GREETING.match(_line(from_daemon))
    if greeting is None:
        raise ChrootUnavailable("rsync's daemon did not greet")
    for _number in range(_MOST_LINES):
        said = _line(from_daemon)
        if said == _OK:
            break
        if said.startswith((b"@ERROR", b"@RSYNCD: EXIT")):
            raise ChrootUnavailable(f"rsync cannot be confined to the root: {said.decode('utf-8', 'replace')}")
    else:
        raise ChrootUnavailable("rsync's daemon did not come to the point")
    _write(to_daemon, b"".join(word + b"\0" for word in (*options, MODULE.encode() + b"/", b"")))
    _write(to_client, int(greeting.group("version")).to_bytes(4, "little"))


def move(source: int, target: int) -> None:
    """Move bytes until the source ends or nobody reads any more; then close the target, so that its reader knows."""
    readable, writable = select.poll(), select.poll()
    readable.register(source, select.POLLIN)
    writable.register(target, select.POLLOUT)
    with contextlib.suppress(OSError):
        while _move_some(source, target):
            readable.poll()
            writable.poll()
    with contextlib.suppress(OSError):
        os.close(target)


def _move_some(source: int, target: int) -> bool:
    """Move what is there; return whether more may come."""
    if _SPLICE is None:
        data = os.read(source, _PIECE)
        _write(target, data)
        return bool(data)
    # A splice that waits itself keeps its pipe locked meanwhile: rsync, which never waits for one side alone, would.
    with contextlib.suppress(BlockingIOError):
        while _SPLICE(source, target, _PIECE, flags=_NONBLOCK):
            pass
        return False
    return True


def _exactly(fd: int, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = os.read(fd, count - len(data))
        if not piece:
            raise ChrootUnavailable("the connection ended before it began")
        data += piece
    return data


def _line(fd: int) -> bytes:
    """Read one line, and not a byte more."""
    data = b""
    while len(data) < _LONGEST_LINE:
        byte = os.read(fd, 1)
        if byte in (b"", b"\n"):
            return data
        data += byte
    raise ChrootUnavailable("rsync's daemon said a line that is too long")


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
