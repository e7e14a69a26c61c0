# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cases of ``hard_tree.py``: long paths, and every type of file."""

from __future__ import annotations

import contextlib
import os
import socket
import stat

from .hard_maker import Maker, case


@case("longer than PATH_MAX")
def _longer_than_path_max(maker: Maker) -> bytes:
    component = b"long-" + b"y" * 245
    path = b"names"
    here = os.open(maker.at(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        while len(path) < 4200:
            os.mkdir(component, dir_fd=here)
            below = os.open(component, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here, path = below, path + b"/" + component
        file = os.open(b"file", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=here)
        os.write(file, b"far down\n")
        os.close(file)
    finally:
        os.close(here)
    return path + b"/file"


@case("nearly an own staging name at the root")
def _nearly_an_own_staging_name_at_the_root(maker: Maker) -> bytes:
    maker.folder(b".longhaul-fedcba987654321")
    return maker.file(b".longhaul-fedcba987654321/file")


@case("empty file")
def _empty_file(maker: Maker) -> bytes:
    return maker.file(b"types/empty-file", b"")


@case("empty directory")
def _empty_directory(maker: Maker) -> bytes:
    return maker.folder(b"types/empty-directory")


@case("crowded directory")
def _crowded_directory(maker: Maker) -> bytes:
    maker.folder(b"types/crowd")
    for number in range(maker.many):
        maker.file(b"types/crowd/%06d" % number, b"" if number % 2 else b"%d\n" % number)
    return b"types/crowd"


@case("200 levels")
def _200_levels(maker: Maker) -> bytes:
    path = b"types/" + b"/".join([b"deep"] * 200)
    os.makedirs(maker.at(path))
    return maker.file(path + b"/file")


@case("hard links across directories")
def _hard_links_across_directories(maker: Maker) -> bytes:
    for folder in (b"types/links", b"types/links/a", b"types/links/b", b"types/links/b/c"):
        maker.folder(folder)
    first = maker.file(b"types/links/b/c/first", b"one file, three names\n")
    maker.link(first, b"types/links/a/second")
    return maker.link(first, b"types/links/third")


@case("hard-linked symlinks")
def _hard_linked_symlinks(maker: Maker) -> bytes:
    return maker.link(maker.symlink(b"types/linked-symlink-1", b"empty-file"), b"types/linked-symlink-2")


@case("hard-linked FIFOs")
def _hard_linked_fifos(maker: Maker) -> bytes:
    return maker.link(maker.node(b"types/linked-fifo-1", stat.S_IFIFO | 0o600), b"types/linked-fifo-2")


@case("links partly outside the root")
def _links_partly_outside(maker: Maker) -> bytes:
    os.makedirs(maker.outside, exist_ok=True)
    first = maker.file(b"types/linked-outside-1", b"three names, two of them inside\n")
    maker.link(first, b"types/linked-outside-2")
    other = os.path.join(maker.outside, b"third name")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(other)
    os.link(maker.at(first), other)
    return first


@case("dangling symlink")
def _dangling_symlink(maker: Maker) -> bytes:
    return maker.symlink(b"types/dangling", b"no/such/file")


@case("absolute symlink")
def _absolute_symlink(maker: Maker) -> bytes:
    return maker.symlink(b"types/absolute", b"/etc/passwd")


@case("symlink out of the tree")
def _symlink_out_of_the_tree(maker: Maker) -> bytes:
    return maker.symlink(b"types/upwards", b"../../../../etc/passwd")


@case("looping symlink")
def _looping_symlink(maker: Maker) -> bytes:
    return maker.symlink(b"types/loop", b"loop")


@case("symlink to a directory")
def _symlink_to_a_directory(maker: Maker) -> bytes:
    return maker.symlink(b"types/to-directory", b"../names")


@case("symlink with a long, odd target")
def _symlink_with_an_odd_target(maker: Maker) -> bytes:
    return maker.symlink(b"types/odd-target", b" -> \n\xff" + b"z" * 3000)


@case("FIFO")
def _fifo(maker: Maker) -> bytes:
    return maker.node(b"types/fifo", stat.S_IFIFO | 0o640)


@case("socket")
def _socket(maker: Maker) -> bytes:
    # Bound through a dir fd, since the path of a socket may have 107 bytes only.
    folder = os.open(maker.at(b"types"), os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(f"/proc/self/fd/{folder}/socket")
    finally:
        os.close(folder)
    return b"types/socket"


@case("block device")
def _block_device(maker: Maker) -> bytes:
    return maker.node(b"types/block", stat.S_IFBLK | 0o600, os.makedev(7, 200))


@case("character device")
def _character_device(maker: Maker) -> bytes:
    return maker.node(b"types/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))


@case("hard-linked devices")
def _hard_linked_devices(maker: Maker) -> bytes:
    return maker.link(
        maker.node(b"types/linked-device-1", stat.S_IFCHR | 0o600, os.makedev(240, 70000)), b"types/linked-device-2"
    )


def _sparse(maker: Maker, path: bytes, size: int, data: dict[int, bytes]) -> bytes:
    with open(maker.at(path), "xb") as file:
        for offset, text in data.items():
            file.seek(offset)
            file.write(text)
        file.truncate(size)
    return path


MIB = 1 << 20


@case("leading hole")
def _leading_hole(maker: Maker) -> bytes:
    return _sparse(maker, b"types/hole-leading", 2 * MIB, {MIB: b"d" * MIB})


@case("trailing hole")
def _trailing_hole(maker: Maker) -> bytes:
    return _sparse(maker, b"types/hole-trailing", 2 * MIB, {0: b"d" * MIB})


@case("holes in the middle")
def _holes_in_the_middle(maker: Maker) -> bytes:
    return _sparse(maker, b"types/hole-middle", 5 * MIB, {0: b"a" * 4096, 2 * MIB + 1: b"b" * 4096, 5 * MIB - 1: b"c"})


@case("all hole")
def _all_hole(maker: Maker) -> bytes:
    return _sparse(maker, b"types/hole-all", 4 * MIB, {})


@case("one byte at the end")
def _one_byte_at_the_end(maker: Maker) -> bytes:
    return _sparse(maker, b"types/hole-but-one", 4 * MIB, {4 * MIB - 1: b"!"})


@case("preallocated")
def _preallocated(maker: Maker) -> bytes:
    path = maker.file(b"types/preallocated", b"")
    fd = os.open(maker.at(path), os.O_RDWR)
    try:
        os.posix_fallocate(fd, 0, MIB)
        os.write(fd, b"start")
    finally:
        os.close(fd)
    return path
