# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What happens to the packets of several connections while they send.

Nothing of this is imported before a transfer has taken a moment: most are over by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Iterable

from .path import NOTHING, Path, joined, path_of
from .tcp_info import TcpInfo, read_tcp_info

if TYPE_CHECKING:
    from .data_connection import DataConnection

Infos = Dict["DataConnection", TcpInfo]


def look_at(links: Iterable[DataConnection]) -> Infos:
    """Return what the system says of the connections now, but for those of which it says nothing."""
    said = ((link, read_tcp_info(link.socket)) for link in links)
    return {link: info for link, info in said if info is not None}


class PathMeter:
    """Compares looks at connections, of which some may come and go."""

    def __init__(self) -> None:
        self._before: dict[DataConnection, Path] = {}

    def take(self, infos: Infos) -> Path:
        """Return what happened since the last look, over all connections together."""
        before, self._before = self._before, {link: path_of(info) for link, info in infos.items()}
        return joined([path.since(before.get(link, NOTHING)) for link, path in self._before.items()])
