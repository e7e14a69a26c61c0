# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection where Ansible looks for it, whatever the name of the folder it was cloned to.

``collection.py link`` makes ``.build/ansible_collections/longhaul/fleet``, a symlink, for running it;
``collection.py copy`` makes a copy below ``.build/copy``, for the programs that need a real directory. Each prints the
folder that ANSIBLE_COLLECTIONS_PATH takes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = Path("ansible_collections/longhaul/fleet")
BYTECODE = REPOSITORY / ".build/bytecode"  # what Python compiles of it, and of Ansible: not beside the sources


def environment(programs: Path) -> dict[str, str]:
    """Return the environment for Python and Ansible of a virtual environment whose programs are in this folder.

    Compiled code is kept, and not beside the sources. Where the caller's environment forbids to write it, each process
    would compile all that it imports, the standard library included.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPYCACHEPREFIX": str(BYTECODE)}


def link() -> Path:
    """Make the symlink."""
    place = REPOSITORY / ".build" / NAME
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.is_symlink() or place.resolve() != REPOSITORY:
        place.unlink(missing_ok=True)
        place.symlink_to(os.path.relpath(REPOSITORY, place.parent), target_is_directory=True)
    return REPOSITORY / ".build"


def copy(user: str = "copy") -> Path:
    """Make a fresh copy of all files that git tracks or would track; each ``user`` has one to itself."""
    base = REPOSITORY / ".build" / user
    place = base / NAME
    shutil.rmtree(place, ignore_errors=True)
    # ansible-test and ansible-lint ask git which files there are, and must not find the repository around the copy.
    subprocess.run(["git", "init", "--quiet", str(place)], check=True)
    listing = ["git", "-C", str(REPOSITORY), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, check=True, capture_output=True).stdout
    for name in sorted(set(os.fsdecode(listed).split("\0")) - {""}):
        source, target = REPOSITORY / name, place / name
        if source.is_symlink() or source.is_file():  # not one that is deleted but still tracked
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return base


if __name__ == "__main__":
    print({"link": link, "copy": copy}[sys.argv[1]]())
