# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Earlier releases of the collection, as git keeps them: what an upgrade begins with."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

COMMITS = {"0.1.0": "ac4af213ffbda13da5499e19d191d5c25445bdf3"}
_REPOSITORY = Path(__file__).resolve().parents[2]


def why_not(version: str) -> str:
    """Return why a release is not available; an empty string where it is."""
    asked = ["git", "-C", str(_REPOSITORY), "cat-file", "-e", f"{COMMITS[version]}^{{commit}}"]
    try:
        found = subprocess.run(asked, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return "git is not installed"
    return "" if found else f"this copy of the repository has no history that reaches back to {version}"


def unpack(version: str, folder: Path) -> Path:
    """Put a release into ``folder``, and return the folder that ``ANSIBLE_COLLECTIONS_PATH`` must name."""
    place = folder / "ansible_collections/longhaul/fleet"
    place.mkdir(parents=True)
    archive = folder / "release.tar"
    made = ["git", "-C", str(_REPOSITORY), "archive", "--format=tar", "-o", str(archive), COMMITS[version]]
    subprocess.run(made, check=True, capture_output=True)
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="tar")
    archive.unlink()
    assert f"version: {version}\n" in (place / "galaxy.yml").read_text(encoding="utf-8")
    return folder
