# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""FIFOs, sockets and device nodes with the real rsync, whose destination is not root."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.tests.support.compare import differences
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import Pair

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="cannot run here: needs root")


@needs_root
@pytest.mark.parametrize("streams", [1, 3])
def test_special_files_at_a_destination_without_root(streams):
    """FIFOs and sockets are made, which need no root; device nodes are not, and a rerun finds nothing to do."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        pair = Pair(Path(folder))
        pair.far_uid = 65534
        (pair.source / "sub").mkdir()
        (pair.source / "sub/file").write_text("text")
        os.mkfifo(pair.source / "fifo", 0o640)
        os.mknod(pair.source / "sub/socket", stat.S_IFSOCK | 0o600)
        os.mknod(pair.source / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.chown(pair.dest, 65534, 65534)
        plan = {"preserve": ["permissions", "times", "specials"], "streams": streams, "partial": False}
        outcome = pair.over_shell(**plan)
        assert (outcome.failure, outcome.errors, outcome.warnings) == ("", [], [])
        assert differences(pair.source, pair.dest, ignore=["owner"], skip=[b"device"]) == []
        assert not (pair.dest / "device").exists()
        assert not pair.over_shell(**plan).changed
