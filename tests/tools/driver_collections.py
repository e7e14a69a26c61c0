# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collections that Molecule's docker driver needs, out of the wheel of the package ansible.

So they come from where pip takes everything else, and Galaxy need not be within reach. Nothing but the tests uses them.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import collection

PLACE = collection.REPOSITORY / ".cache/collections"
WHEEL = "ansible>=12,<15"
NEEDED = ("ansible/posix", "community/docker", "community/library_inventory_filtering_v1")


def make(python: str) -> Path:
    """Unpack them where they are missing; give the folder that ANSIBLE_COLLECTIONS_PATH takes."""
    stamp = PLACE / "stamp"
    wanted = f"{WHEEL} {' '.join(NEEDED)}"
    if stamp.is_file() and stamp.read_text() == wanted:
        return PLACE
    shutil.rmtree(PLACE, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        argv = [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "-d", folder]
        subprocess.run([*argv, WHEEL], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        folders = tuple(f"ansible_collections/{name}/" for name in NEEDED)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(PLACE, [name for name in archive.namelist() if name.startswith(folders)])
    missing = [name for name in NEEDED if not (PLACE / "ansible_collections" / name).is_dir()]
    if missing:
        raise RuntimeError(f"the wheel of {WHEEL} does not hold {', '.join(missing)}")
    stamp.write_text(wanted)
    return PLACE
