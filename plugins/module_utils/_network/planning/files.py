# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Code that all renderers share: files, and the addresses of one family."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Iterable

from ..file_marks import MAKES, MARK
from .interfaces import LinkEntry


@dataclass(frozen=True)
class File:
    """A file on the host. ``entry`` is the item of ``nic_links`` that it belongs to; without a mode it keeps it."""

    path: str
    content: str
    mode: int | None
    entry: str = ""


def make(path: str, entry: LinkEntry, header: str, lines: Iterable[str], mode: int = 0o644) -> File:
    """Put a file together. ``header`` is a comment, or empty; the marks say whose the file is and what it makes."""
    top = [header.rstrip("\n")] if header.strip() else []
    top.append(f"# {MARK}{entry.name}")
    made = [device.name for device in entry.devices if device.kind in ("bond", "vlan")]
    if made:
        top.append(f"# {MAKES}{' '.join(made)}")
    return File(path, "\n".join([*top, *lines]) + "\n", mode, entry.name)


def family(address: str) -> int:
    """Return 4 or 6, for an address with or without prefix length."""
    return ipaddress.ip_interface(address).version


def of_family(addresses: Iterable[str], version: int) -> list[str]:
    """Return the addresses of one family."""
    return [address for address in addresses if family(address) == version]
