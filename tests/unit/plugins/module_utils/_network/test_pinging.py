# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a host has a ping that can test a path, and which package brings one."""

from __future__ import annotations

import os

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core import search_path
from ansible_collections.longhaul.fleet.plugins.module_utils._network.pinging import find_ping

IPUTILS = "#!/bin/sh\necho 'Usage: ping [-aAbB] [-M pmtudisc] destination' >&2; exit 2\n"
BUSYBOX = "#!/bin/sh\necho 'Usage: ping [-c COUNT] HOST' >&2; exit 1\n"


@pytest.mark.parametrize("manager, package", [("apt-get", "iputils-ping"), ("dnf", "iputils")])
@pytest.mark.parametrize("ping, usable", [(IPUTILS, True), (BUSYBOX, False), (None, False)])
def test_what_is_there_is_looked_at(tmp_path, monkeypatch, ping, usable, manager, package):
    for name, text in (("ping", ping), (manager, "#!/bin/sh\n")):
        if text is not None:
            (tmp_path / name).write_text(text)
            os.chmod(tmp_path / name, 0o755)
    monkeypatch.setattr(search_path, "_SYSTEM_FOLDERS", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ping("Linux") == (usable, package)
