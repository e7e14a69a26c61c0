# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Special files of an ordinary user, through everything from the options to the comparison."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.tests.soak import options
from ansible_collections.longhaul.fleet.tests.soak.case import Case
from ansible_collections.longhaul.fleet.tests.soak.hosts import ORDINARY
from ansible_collections.longhaul.fleet.tests.soak.judge import Pair, on_disk
from ansible_collections.longhaul.fleet.tests.soak.tree import CHARACTER, FIFO, FILE, FOLDER, SOCKET, Inode, Tree
from ansible_collections.longhaul.fleet.tests.support.compare import differences

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root")


def make_case(method: str, preserve: tuple[str, ...] | None) -> Case:
    """Return a case whose source has one special file of each kind that matters."""
    source, dest = Tree(), Tree()
    for tree in (source, dest):
        tree.add(b"", Inode(FOLDER, 0o755, ORDINARY.uid, ORDINARY.gid))
    for name, kind, device in (
        (b"fifo", FIFO, 0),
        (b"socket", SOCKET, 0),
        (b"device", CHARACTER, os.makedev(1, 3)),
        (b"file", FILE, 0),
    ):
        source.add(name, Inode(kind, 0o640, ORDINARY.uid, ORDINARY.gid, device=device))
    row = {**options.DEFAULTS, "method": method, "encryption": "none", "preserve": preserve}
    return Case(row, source, dest, Tree(), ORDINARY)


@pytest.mark.often(2)
@needs_root
@pytest.mark.parametrize("method", ["stream", "tar_nc"])
@pytest.mark.parametrize("preserve", [None, ("times",)])
def test_fifos_and_sockets_need_no_root(method, preserve):
    with on_disk(make_case(method, preserve)) as place:
        pair = Pair(place.folder, place.case)
        try:
            asked = {**place.options(), "src": f"{place.source}/", "dest": str(place.zone("ours") / "copy")}
            result = pair.transfer(asked)
            kept = [name for name in ("fifo", "socket") if (place.zone("ours") / "copy" / name).exists()]
            assert kept == ([] if preserve else ["fifo", "socket"])
            assert set(result["preserved"]) <= set(options.ALL) and "devices" not in result["preserved"]
            assert (result["verified"], result["differences_total"]) == ("size", 0)
            if not preserve:
                assert differences(place.source, place.zone("ours") / "copy", skip=[b"device"]) == []
                assert "owner and device nodes cannot be kept: " in "; ".join(result["warnings"])
            assert not pair.transfer(asked)["changed"]
            (place.zone("ours") / "copy/fifo").unlink(missing_ok=True)
            assert pair.transfer(asked, check=True)["changed"] == (not preserve)
        finally:
            pair.close()
