# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a client and a log say, and what the diagnosis makes of it."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._rsyncd.diagnose import (
    ModuleEnvironment,
    diagnose,
    mount_of,
)

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:1 /usr /usr ro,relatime shared:1 - ext4 /dev/sda1 rw
31 22 8:2 / /srv/with\\040space rw,relatime - ext4 /dev/sdb1 ro
32 22 8:3 / /srv rw - ext4 /dev/sdc1 rw
"""


@pytest.mark.parametrize(
    "path, mount",
    [
        ("/var", ("/", False)),
        ("/usr/local", ("/usr", True)),
        ("/usrlocal", ("/", False)),
        ("/srv/with space/x", ("/srv/with space", True)),
        ("/srv/x", ("/srv", False)),
    ],
)
def test_which_mount_a_path_is_on(path, mount):
    assert mount_of(MOUNTS, path) == mount


@pytest.mark.parametrize(
    "said, log, code",
    [
        ("@ERROR: auth failed on module m", "auth failed on module m: no matching rule", "no_rule"),
        ("@ERROR: auth failed on module m", "auth failed for a: denied by rule", "denied_by_rule"),
        ("@ERROR: auth failed on module m", "", "auth_failed"),
        ("ERROR: module is write only", "", "write_only"),
        ("@ERROR: no path setting.", "", "no_path"),
        ("@ERROR: setuid failed", "", "not_root"),
        ("refusing to follow a symlink owned by an untrusted user; x", "", "foreign_symlink"),
        ("rsync: something new\n", "", "unknown"),
        ("", "", "unknown"),
    ],
)
def test_words(said, log, code):
    found = diagnose(said, ModuleEnvironment("m", "/etc/rsyncd.conf", "/srv", "nobody", log=log))
    assert found.code == code
    assert "{" not in found.text
