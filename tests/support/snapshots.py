# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots for tests that need some: made by the modules alone, and given the dates that a test wants."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.begin import begin
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.finish import finish
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.repository import Series

REPOSITORY = "/data/backup"


def backup_tasks(
    run: str,
    *,
    client: str = "alpha",
    src: str = "/data/src/",
    vault: str = "beta",
    repository: str = REPOSITORY,
    job: str = "data",
    **transfer: Any,
) -> list[dict[str, Any]]:
    """Return the tasks that make one snapshot of a tree of ``client`` on ``vault``; ``run`` names their registers.

    ``transfer`` are more options of the transfer. The repository must be there.
    """
    where = {"repository": repository, "host": client, "job": job, "run": run}
    begun, sent = f"begun_{run}", f"sent_{run}"
    return [
        {
            "name": f"Begin {run}",
            "longhaul.fleet.snapshot": {"action": "begin", **where},
            "delegate_to": vault,
            "register": begun,
        },
        {
            "name": f"Transfer {run}",
            "longhaul.fleet.transfer": {
                "src_host": client,
                "src": src,
                "dest_host": vault,
                "dest": f"{{{{ {begun}.path }}}}",
                "link_dest": f"{{{{ {begun}.link_dest }}}}",
                "delete": True,
                **transfer,
            },
            "register": sent,
        },
        {
            "name": f"Finish {run}",
            "longhaul.fleet.snapshot": {
                "action": "finish",
                **where,
                "expected_entries": f"{{{{ {sent}.files_total }}}}",
            },
            "delegate_to": vault,
        },
    ]


def make_snapshot(repository: Path, source: Path, *, client: str = "alpha", job: str = "data") -> Path:
    """Make a snapshot of a tree, as it is now, without a playbook; gives its tree."""
    with Series(str(repository), client, job, create=True) as series, series.lock("test"):
        begun = begin(series, "made by hand", int(time.time()) - 3600)
        shutil.rmtree(begun.path)
        subprocess.run(["cp", "-a", source, begun.path], check=True)
        return Path(series.path) / finish(series, "made by hand", int(time.time())).name / "data"


def redate(folder: Path, names: Sequence[str]) -> None:
    """Rename the complete snapshots of a job, the oldest first; ``latest`` points to the last. Their history goes.

    Raises AssertionError if there are not as many.
    """
    (folder / "history.jsonl").unlink(missing_ok=True)
    old = sorted(path.name for path in folder.glob("20*"))
    assert len(old) == len(names), f"{folder} has {old}"
    for before, after in zip(old, names):
        os.rename(folder / before, folder / after)
        facts = folder / after / "snapshot.json"
        base = json.loads(facts.read_text())
        facts.write_text(json.dumps({**base, "base": dict(zip(old, names)).get(base["base"], "")}))
    (folder / "latest").unlink()
    (folder / "latest").symlink_to(names[-1])
