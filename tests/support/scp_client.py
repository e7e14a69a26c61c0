# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an scp says that sends files, and what none should say. It shares no code with the server."""

from __future__ import annotations

from typing import Iterable, Iterator

# None of these is a file of a transfer in which a shard has the files 0 to 5, or a folder but that of the shard.
FOREIGN = (
    *(b"../secret", b"/etc/passwd", b"..", b".", b"authorized_keys", b"00", b"+1", b"-1", b"1 ", b" 1", b"1\0"),
    *(b"link", b"view-3/0", b"tmp", b".longhaul-0123456789abcdef", b"9" * 300, "٣".encode(), b"\xff" * 900),
    b"\x1b]0;x\x07",
)
NEVER = (  # lines that end a session
    *(b"\n", b"T1 0 1 0\n", b"C0644 -1 0\n", b"C0644 99999999999999999999 0\n", b"C0644 9223372036854775808 0\n"),
    *(b"C9999 4 0\n", b"C644 4 0\n", b"C0644  4 0\n", b"C0644 4\n", b"C0644 04 0\n", b"C0644 4 \n", b"c0644 4 0\n"),
    *(b"D0755 0 view-3\n", b"D0755 0 0\n", b"D0755 0 ..\n", b"X\n", b"E \n", b"\0", b"C" * 5000, b"SSH-2.0-x\r\n"),
)


def file(name: bytes, text: bytes, size: int | None = None) -> bytes:
    """Return what is said of a file."""
    return b"C0644 %d %s\n%s\0" % (len(text) if size is None else size, name, text)


def pushed(folder: bytes, files: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return what is said of a folder with files: their names and contents."""
    return b"D0755 0 %s\n%sE\n" % (folder, b"".join(file(*one) for one in files))


def evil(shard: int, secret: str) -> Iterator[bytes]:
    """Yield sessions that ask for more than they may have; ``secret`` is the path of a foreign file."""
    view = b"D0755 0 view-%d\n" % shard
    for name in (*FOREIGN, secret.encode()):
        yield pushed(b"view-%d" % shard, [(name, b"evil")])
        yield pushed(name, [(b"0", b"evil")])
        yield file(name, b"evil")
    for line in NEVER:
        yield line
        yield view + line + b"evil\0E\n"
        yield view + file(b"0", b"good") + line
    for size in (5, 1 << 40, (1 << 63) - 1):
        yield view + b"C0644 %d 0\nevil" % size
    yield view + file(b"0", b"good") * 40
    yield view + b"E\nE\n"
    yield view + b"E\n" + file(b"0", b"evil")
    yield view + view + file(b"0", b"evil")
    yield b"E\n" + view
    yield view + b"C0644 4 0\nevil\2dead\n"
    yield view + b"C0644 4 0\nevilX"
    yield b"\1scp: view: gone\n" * 30 + view + file(b"0", b"good") + b"E\n"
