# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the cases of ``hard_tree.py`` are made with, and the list that they register in."""

from __future__ import annotations

import os
from typing import Callable

HOUR_NS = 3600 * 10**9
START_NS = 1_000_000_000 * 10**9 + 123_456_789  # September 2001: far from "now", and with odd nanoseconds

Case = Callable[["Maker"], bytes]  # makes its entries; gives the path of the one that it is about
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def register(make: Case) -> Case:
        CASES[name] = make
        return make

    return register


class Maker:
    """Makes entries below a root; paths are relative bytes."""

    def __init__(self, root: bytes, outside: bytes, many: int) -> None:
        self.root, self.outside, self.many = root, outside, many
        self.times: dict[bytes, int] = {}  # the entries that a case gave a time of its own

    def at(self, path: bytes) -> bytes:
        return os.path.join(self.root, path)

    def file(self, path: bytes, text: bytes = b"contents\n") -> bytes:
        with open(self.at(path), "xb") as file:
            file.write(text)
        return path

    def folder(self, path: bytes) -> bytes:
        os.mkdir(self.at(path))
        return path

    def link(self, old: bytes, new: bytes) -> bytes:
        os.link(self.at(old), self.at(new), follow_symlinks=False)
        return new

    def symlink(self, path: bytes, target: bytes) -> bytes:
        os.symlink(target, self.at(path))
        return path

    def node(self, path: bytes, mode: int, device: int = 0) -> bytes:
        os.mknod(self.at(path), mode, device)
        return path

    def xattr(self, path: bytes, name: str, value: bytes) -> bytes:
        os.setxattr(self.at(path), name, value, follow_symlinks=False)
        return path

    def set_times(self) -> None:
        """Set a past time with nanoseconds for every entry, directories after their children, the root last."""
        clock = START_NS
        for path, folders, files, fd in os.fwalk(self.root, topdown=False, follow_symlinks=False):
            links = [name for name in folders if os.path.islink(os.path.join(f"/proc/self/fd/{fd}".encode(), name))]
            for name in sorted(files + links):
                clock += HOUR_NS + 1_234_567
                own = self.times.get(os.path.relpath(os.path.join(path, name), self.root), clock)
                os.utime(name, ns=(clock, own), dir_fd=fd, follow_symlinks=False)
            clock += HOUR_NS + 1_234_567
            os.utime(fd, ns=(clock, self.times.get(os.path.relpath(path, self.root), clock)))
