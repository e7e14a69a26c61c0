# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two ends of a transfer by any method, as processes of this machine."""

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.longhaul.fleet.tests.support.rsync_pair import VERSION
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine.ends import ALL, Pair, settings
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._methods.stream_pairs import WITHOUT_ROOT

SSH = ("rsync", "scp", "sftp")


def make_pair(trees: tuple[Path, Path, Path], method: str, serving: str = "dest", **changes: object) -> Pair:
    """Return both ends for a source, a destination and a folder for the jobs; ``changes`` are of the settings."""
    source, dest, work = trees
    changes.setdefault("preserve", ALL if os.geteuid() == 0 else WITHOUT_ROOT)
    plan = settings(method, encrypt=False, rsync={"source": VERSION, "dest": VERSION}, **changes)
    pair = Pair(work, source, dest, plan, serving)
    if method in SSH:
        pair.use_ssh()
    if method == "rsyncd":
        pair.serve["allow"] = ["127.0.0.1"]
        pair.secrets = {"serve": {"daemon": "word"}, "drive": {"daemon": "word"}}
    return pair
