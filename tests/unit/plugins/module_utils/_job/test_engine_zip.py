# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The engine is the same file whether its sources lie in a folder or in Ansible's archive."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from ansible_collections.longhaul.fleet.plugins.module_utils._job import engine_zip

PLACE = "ansible_collections/longhaul/fleet/plugins/module_utils"
PACK = f"from {PLACE.replace('/', '.')}._job import engine_zip; import sys; engine_zip.pack_engine(sys.argv[1])"


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def as_ansible_sends_it(path: Path) -> Path:
    """Make an archive with the collection's module_utils in it."""
    root = Path(engine_zip.__file__).parents[1]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for depth in range(1, PLACE.count("/") + 2):
            archive.writestr("/".join(PLACE.split("/")[:depth]) + "/__init__.py", "")
        for file in root.rglob("*.py"):
            archive.write(file, f"{PLACE}/{file.relative_to(root).as_posix()}")
    return path


def test_the_engine_from_a_folder_and_from_an_archive_are_one(tmp_path):
    engine_zip.pack_engine(str(tmp_path / "folder.pyz"))
    sent = as_ansible_sends_it(tmp_path / "sent.zip")
    subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(sent)!r}); {PACK}", tmp_path / "sent.pyz"],
        check=True,
    )
    from_folder, from_archive = contents(tmp_path / "folder.pyz"), contents(tmp_path / "sent.pyz")
    assert from_folder == from_archive
    assert {"__main__.py", "longhaul/_job/main.py", "longhaul/_methods/gate.py"} <= set(from_folder)
    assert not [name for name in from_folder if name.startswith(("longhaul/_snapshot", "longhaul/_network"))]
    loaded = "import longhaul._job.main, longhaul._job.transfer_job, longhaul._methods.stream"
    engine = str(tmp_path / "sent.pyz")
    subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {engine!r}); {loaded}"], check=True)
