# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module on a host without rsync: unless the role installs it, that is said before anything is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.render import module_text

MODULE = Path(__file__).resolve().parents[4] / "plugins/modules/rsyncd_config.py"


def run(folder: Path, **options) -> dict:
    """Run the module where no program is called as it expects; give its result."""
    arguments = {
        "path": str(folder / "rsyncd.conf"),
        "include_dir": str(folder / "rsyncd.d"),
        "modules": [{"name": "data", "path": str(folder)}],
        "rsync": "no-such-rsync",
        "_ansible_remote_tmp": str(folder),
        **options,
    }
    ran = subprocess.run(
        [sys.executable, str(MODULE)],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("how", [{"state": "checked"}, {"_ansible_check_mode": True}])
def test_rsync_may_be_missing_only_as_long_as_it_will_be_installed(tmp_path, how):
    tmp_path.chmod(0o755)
    refused = run(tmp_path, **how)
    assert refused["failed"] and "rsync is not installed on this host" in refused["msg"]
    taken = run(tmp_path, installs=True, **how)
    assert not taken.get("failed") and taken["modules"], taken
    assert os.listdir(tmp_path) == []


def test_nothing_is_written_that_rsync_has_not_tried(tmp_path):
    refused = run(tmp_path, installs=True)
    assert refused["failed"] and "Nothing was changed" in refused["msg"]
    assert os.listdir(tmp_path) == []


def test_a_unit_that_systemd_does_not_know_is_taken_for_a_usual_one(tmp_path):
    tmp_path.chmod(0o755)
    folder = tmp_path / "rsyncd.d"
    folder.mkdir(mode=0o755)
    kept = {"name": "kept", "path": "/usr/kept", "read_only": False}
    (folder / "kept.conf").write_text(module_text(kept, {}))
    (tmp_path / "rsyncd.conf").write_text(f"&include {folder}\n")
    taken = run(tmp_path, state="checked", installs=True, unit="no-such-unit.service", modules=[])
    assert [values["name"] for values in taken["kept"]] == ["kept"] and taken["unit_found"] is False
    assert taken["drop_in"] == {"settings": ["ReadWritePaths=-/usr/kept"], "shut": []}
    assert "drop_in" not in run(tmp_path, state="checked", installs=True)


def test_a_password_that_rsync_cannot_use_is_refused_and_not_said(tmp_path):
    refused = run(tmp_path, state="checked", secrets=[{"name": "ann", "password": "one\ntwo"}])
    assert refused["msg"] == (
        "rsyncd_secrets cannot be used, and nothing was changed: the password of ann is empty, no text, or more than "
        "one line"
    )
    assert "two" not in json.dumps(refused)
