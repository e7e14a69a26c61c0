# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection as it was at an earlier commit, from git: the control node before an upgrade."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

EARLIER = "27d328889adf1f7c01d4de32bfa310455bb9943c"  # today's version must finish what this one began
_REPOSITORY = Path(__file__).resolve().parents[2]


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    """Run git here; ``safe.directory``, because root runs these tests in a clone of somebody else."""
    argv = ["git", "-c", "safe.directory=*", "-C", str(_REPOSITORY), *words]
    return subprocess.run(argv, check=False, capture_output=True, text=True)


def why_not(commit: str = EARLIER) -> str:
    """Return why this copy of the repository cannot have the commit; an empty string if it has it or should have it."""
    try:
        found = _git("rev-parse", "--is-shallow-repository")
    except FileNotFoundError:
        return "git is not installed"
    if found.returncode:
        return f"this copy of the repository has no history: {found.stderr.strip()}"
    if found.stdout.strip() == "true" and _git("cat-file", "-e", f"{commit}^{{commit}}").returncode:
        return f"this clone is shallow and lacks commit {commit}: run git fetch --unshallow"
    return ""


def unpack(folder: Path, commit: str = EARLIER) -> Path:
    """Put the collection into ``folder``, and return the folder that ``ANSIBLE_COLLECTIONS_PATH`` must name."""
    place = folder / "ansible_collections/longhaul/fleet"
    place.mkdir(parents=True)
    archive = folder / "collection.tar"
    made = _git("archive", "--format=tar", "-o", str(archive), commit)
    assert made.returncode == 0, f"git cannot unpack commit {commit}: {made.stderr}"
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="tar")
    archive.unlink()
    return folder
