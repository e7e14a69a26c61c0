# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file system that shows a folder, and fails or is slow where it is told: what a bad disk or a quota does.

It is mounted by the kernel as any other (FUSE), so who uses it gets its errors from real system calls. As a program:
``faulty.py FOLDER MOUNT_POINT FAULTS.json`` serves it until it is unmounted. The protocol is that of <linux/fuse.h>.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

DEVICE = "/dev/fuse"
_MAX_WRITE = 128 << 10
_REQUEST, _ANSWER = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
_ATTRIBUTES, _SET = struct.Struct("<6Q10I"), struct.Struct("<II6QIIIIIIII")
_READ = struct.Struct("<QQIIQII")
_NODES_ROOT = 1


def why_not() -> str:
    """Return why no such file system can be mounted here; empty if one can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    return "" if os.access(DEVICE, os.R_OK | os.W_OK) else f"there is no {DEVICE}"


def fault(operation: str, name: str = "", number: int = 0, after: int = 0, seconds: float = 0.0) -> dict[str, Any]:
    """Return one fault: what an operation (read, readdir, write, chown) on a file or folder of that name (any) meets.

    ``number`` is the error, 0 for none; ``after``: of a read, the offset from which on it fails, of a write how many
    bytes have been written altogether before. ``seconds`` is how long a MiB takes.
    """
    return {"operation": operation, "name": name, "errno": number, "after": after, "seconds": seconds}


@contextlib.contextmanager
def mounted(folder: Path, point: Path, *faults: dict[str, Any]) -> Iterator[None]:
    """Show the folder at the mount point, with these faults, for the time of a block."""
    argv = [sys.executable, __file__, str(folder), str(point), json.dumps(faults)]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert server.stdout is not None
    try:
        assert server.stdout.readline(), "it was not mounted"
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(point)], check=True)
        server.stdout.close()
        server.wait(30)


class _Faulty:
    def __init__(self, folder: str, faults: list[dict[str, Any]]) -> None:
        self.paths = {_NODES_ROOT: os.fsencode(folder)}  # by node
        self.faults = faults
        self.written = 0
        self.listings: dict[int, list[os.DirEntry[bytes]]] = {}
        self.next = 1

    def meet(self, operation: str, path: bytes, at: int, size: int) -> None:
        """Raise or wait, where a fault says so."""
        for one in self.faults:
            named = not one["name"] or os.path.basename(path) == os.fsencode(one["name"])
            if one["operation"] == operation and named and at >= one["after"]:
                time.sleep(one["seconds"] * size / (1 << 20))
                if one["errno"]:
                    raise OSError(one["errno"], "")

    def fresh(self) -> int:
        """Return an unused number."""
        self.next += 1
        return self.next

    def attributes(self, path: bytes) -> bytes:
        """Return what lstat says."""
        s = os.lstat(path)
        times = [s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns]
        seconds, parts = [at // 10**9 & 0xFFFFFFFFFFFFFFFF for at in times], [at % 10**9 for at in times]
        owner = (s.st_mode, s.st_nlink, s.st_uid, s.st_gid, s.st_rdev, 4096, 0)
        return _ATTRIBUTES.pack(s.st_ino, s.st_size, s.st_blocks, *seconds, *parts, *owner)

    def entry(self, path: bytes) -> bytes:
        """Return the node of what is at a path."""
        attributes = self.attributes(path)
        node = next((node for node, known in self.paths.items() if known == path), 0) or self.fresh()
        self.paths[node] = path
        return struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + attributes

    # the operations: each takes the path of the node and what came with the request, and gives the answer

    def lookup(self, path: bytes, data: bytes) -> bytes:
        return self.entry(os.path.join(path, data[:-1]))

    def getattr(self, path: bytes, _data: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + self.attributes(path)

    def setattr(self, path: bytes, data: bytes) -> bytes:
        valid, _pad, _fh, size, _owner, atime, mtime, _ctime, atime_ns, mtime_ns, *rest = _SET.unpack(data)
        _ctime_ns, mode, _unused, uid, gid, _last = rest
        if valid & 6:
            self.meet("chown", path, 0, 0)
            os.lchown(path, uid if valid & 2 else -1, gid if valid & 4 else -1)
        if valid & 1:
            os.chmod(path, stat.S_IMODE(mode))
        if valid & 8:
            os.truncate(path, size)
        if valid & 48:
            now, old = time.time_ns(), os.lstat(path)
            new = [now if valid & 128 else atime * 10**9 + atime_ns, now if valid & 256 else mtime * 10**9 + mtime_ns]
            given = (new[0] if valid & 16 else old.st_atime_ns, new[1] if valid & 32 else old.st_mtime_ns)
            os.utime(path, ns=given, follow_symlinks=False)
        return self.getattr(path, b"")

    def readlink(self, path: bytes, _data: bytes) -> bytes:
        return os.readlink(path)

    def symlink(self, path: bytes, data: bytes) -> bytes:
        name, target = data[:-1].split(b"\0")
        os.symlink(target, os.path.join(path, name))
        return self.entry(os.path.join(path, name))

    def mkdir(self, path: bytes, data: bytes) -> bytes:
        os.mkdir(os.path.join(path, data[8:-1]), struct.unpack_from("<I", data)[0])
        return self.entry(os.path.join(path, data[8:-1]))

    def unlink(self, path: bytes, data: bytes) -> bytes:
        os.unlink(os.path.join(path, data[:-1]))
        return b""

    def rmdir(self, path: bytes, data: bytes) -> bytes:
        os.rmdir(os.path.join(path, data[:-1]))
        return b""

    def rename(self, path: bytes, data: bytes) -> bytes:
        old, new = data[8:-1].split(b"\0")
        old, new = os.path.join(path, old), os.path.join(self.paths[struct.unpack_from("<Q", data)[0]], new)
        os.rename(old, new)
        for node, known in list(self.paths.items()):
            if known == new:
                self.paths[node] += b" (replaced)"
            elif known == old or known.startswith(old + b"/"):
                self.paths[node] = new + known[len(old) :]
        return b""

    def link(self, path: bytes, data: bytes) -> bytes:
        os.link(self.paths[struct.unpack_from("<Q", data)[0]], os.path.join(path, data[8:-1]), follow_symlinks=False)
        return self.entry(os.path.join(path, data[8:-1]))

    def open(self, path: bytes, data: bytes) -> bytes:
        flags = struct.unpack_from("<I", data)[0] & (os.O_ACCMODE | os.O_APPEND | os.O_TRUNC)
        return struct.pack("<QII", os.open(path, flags), 0, 0)

    def create(self, path: bytes, data: bytes) -> bytes:
        flags, mode, _umask, _more = struct.unpack_from("<4I", data)
        path = os.path.join(path, data[16:-1])
        fd = os.open(path, flags & (os.O_ACCMODE | os.O_APPEND | os.O_EXCL) | os.O_CREAT, stat.S_IMODE(mode))
        return self.entry(path) + struct.pack("<QII", fd, 0, 0)

    def read(self, path: bytes, data: bytes) -> bytes:
        fd, offset, size, *_rest = _READ.unpack(data)
        self.meet("read", path, offset, size)
        return os.pread(fd, size, offset)

    def write(self, path: bytes, data: bytes) -> bytes:
        fd, offset, *_rest = _READ.unpack_from(data)
        self.meet("write", path, self.written, len(data) - _READ.size)
        count = os.pwrite(fd, data[_READ.size :], offset)
        self.written += count
        return struct.pack("<II", count, 0)

    def statfs(self, path: bytes, _data: bytes) -> bytes:
        s = os.statvfs(path)
        sizes = (s.f_blocks, s.f_bfree, s.f_bavail, s.f_files, s.f_ffree, s.f_bsize, s.f_namemax, s.f_frsize)
        return struct.pack("<5Q3I28x", *sizes)

    def release(self, _path: bytes, data: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", data)[0])
        return b""

    def fsync(self, _path: bytes, data: bytes) -> bytes:
        os.fsync(struct.unpack_from("<Q", data)[0])
        return b""

    def opendir(self, path: bytes, _data: bytes) -> bytes:
        number = self.fresh()
        with os.scandir(path) as found:
            self.listings[number] = list(found)
        return struct.pack("<QII", number, 0, 0)

    def readdir(self, path: bytes, data: bytes) -> bytes:
        number, offset, size, *_rest = _READ.unpack(data)
        self.meet("readdir", path, offset, 0)
        answer = b""
        for index, item in enumerate(self.listings[number][offset:], offset + 1):
            record = struct.pack("<QQII", item.inode(), index, len(item.name), 0) + item.name
            record += bytes(-len(record) % 8)
            if len(answer) + len(record) > size:
                break
            answer += record
        return answer

    def releasedir(self, _path: bytes, data: bytes) -> bytes:
        del self.listings[struct.unpack_from("<Q", data)[0]]
        return b""

    def init(self, _path: bytes, _data: bytes) -> bytes:
        return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 1 << 5, 0, 0, _MAX_WRITE, 1, 0, 0, 0)  # big writes

    def nothing(self, _path: bytes, _data: bytes) -> bytes:
        return b""

    def serve(self, device: int) -> None:
        """Answer until the file system is unmounted."""
        operations: dict[int, Callable[[bytes, bytes], bytes]] = {1: self.lookup, 3: self.getattr, 4: self.setattr}
        operations.update({5: self.readlink, 6: self.symlink, 9: self.mkdir, 10: self.unlink, 11: self.rmdir})
        operations.update({12: self.rename, 13: self.link, 14: self.open, 15: self.read, 16: self.write})
        operations.update({17: self.statfs, 18: self.release, 20: self.fsync, 25: self.nothing, 26: self.init})
        operations.update({27: self.opendir, 28: self.readdir, 29: self.releasedir, 30: self.nothing, 35: self.create})
        without_answer = (2, 36, 42)  # forget, interrupt, forget many
        while True:
            try:
                request = os.read(device, _MAX_WRITE + 4096)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):
                    continue
                return
            _length, number, unique, node, *_rest = _REQUEST.unpack_from(request)
            if number in without_answer:
                continue
            failed, answer = 0, b""
            try:
                if number not in operations:
                    raise OSError(errno.ENOSYS, "")
                answer = operations[number](self.paths.get(node, b""), request[_REQUEST.size :])
            except OSError as error:
                failed = error.errno or errno.EIO
            with contextlib.suppress(FileNotFoundError):  # who asked is gone
                os.write(device, _ANSWER.pack(_ANSWER.size + len(answer), -failed, unique) + answer)


def main() -> None:
    """Mount it, say so, and serve it."""
    folder, point, faults = sys.argv[1:]
    device = os.open(DEVICE, os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"faulty", os.fsencode(point), b"fuse", 0, options):
        sys.exit(os.strerror(ctypes.get_errno()))
    print("mounted", flush=True)
    _Faulty(folder, json.loads(faults)).serve(device)


if __name__ == "__main__":
    main()
