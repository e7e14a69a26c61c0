# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of trees share."""

from __future__ import annotations

import contextlib
import os

import pytest

NOBODY = 65534


@pytest.fixture
def as_nobody():
    """Run a block as a user without rights who owns the given path and what is below it; as oneself where not root."""

    @contextlib.contextmanager
    def become(*owned):
        if os.geteuid() != 0:
            yield
            return
        for top in map(os.fspath, owned):
            for folder, folders, files in os.walk(top):
                for name in ["", *folders, *files]:
                    os.chown(os.path.join(folder, name), NOBODY, NOBODY, follow_symlinks=False)
            for part in range(1, len(top.split("/"))):
                above = "/".join(top.split("/")[: part + 1])
                os.chmod(above, os.stat(above).st_mode | 0o011)
        groups = os.getgroups()
        os.setgroups([])
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)

    return become
