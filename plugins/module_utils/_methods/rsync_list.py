# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""List the source for those who divide it or want to know how much there is. Private to the collection."""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Iterator

from .._job.context import staging_name
from .._tree.entry import DIRECTORY, REGULAR
from .._tree.filters import Filters
from .._tree.walk import walk
from .rsync_shards import Listed, decode_listed, encode_listed

_END = b"end\0"  # of a complete list: a broken connection must not pass for a small tree


def list_source(root: bytes, settings: dict[str, Any]) -> Iterator[Listed]:
    """Give what the plan lets travel, directories before their contents; what cannot be read is rsync's to report.

    Raises ValueError for a filter rule that only rsync itself can follow.
    """
    rules = [f"H /{staging_name(settings['id'])}", *settings["rules"]]
    filters = Filters.parse(rules, root)
    only = os.fsencode(settings["only"]) if settings["only"] is not None else None
    found = walk(
        root,
        filters=filters,
        one_file_system=settings["one_file_system"],
        only=only,
        on_error=lambda _path, _error: None,
    )
    for entry in found:
        size = entry.size if entry.type == REGULAR else 0
        yield Listed(entry.path, entry.type == DIRECTORY, size, entry.link_id)


def write_list(root: bytes, settings: dict[str, Any], out: BinaryIO) -> None:
    """Write the list as records, for the other end."""
    for entry in list_source(root, settings):
        out.write(encode_listed(entry))
    out.write(_END)
    out.flush()


def read_list(stream: BinaryIO) -> Iterator[Listed]:
    """Read records as they come; raises ValueError where the list broke off."""
    rest = b""
    while True:
        data = stream.read1(1 << 16) if hasattr(stream, "read1") else stream.read(1 << 16)
        if not data:
            raise ValueError("the source's list of its files broke off")
        *records, rest = (rest + data).split(b"\0")
        for record in records:
            if record + b"\0" == _END:
                return
            yield decode_listed(record)
