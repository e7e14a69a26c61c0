# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tells which program manages the links: only one that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._network import discover, managers
from ansible_collections.longhaul.fleet.plugins.module_utils._network.programs import ProgramResult
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._network.network_hosts import (
    as_host,
    host,
    link,
)

STATUS = """\
* 2: eth0
             Link File: n/a
          Network File: /etc/systemd/network/20-wired.network
                 State: routable (configured)
"""


@pytest.mark.parametrize("runs", [True, False])
def test_what_networkd_has_left_counts_only_while_it_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runs: bool
) -> None:
    def run(argv: Sequence[str]) -> ProgramResult:
        if argv[0] == "systemctl":
            return ProgramResult(0 if runs else 3, "", "")
        return ProgramResult(0, STATUS if argv[0] == "networkctl" else "", "")

    monkeypatch.setattr(discover, "run", run)
    monkeypatch.setattr(discover, "find_program", lambda name: name in ("networkctl", "systemctl", "netplan"))
    monkeypatch.setattr(discover, "_NETWORKD_LINKS", str(tmp_path))
    monkeypatch.setattr(discover.glob, "glob", lambda pattern: ["x.yaml"] if "netplan" in pattern else [])
    evidence, here = discover._evidence("Linux", as_host(host(link("eth0"))).links)
    found = managers.managers_of(["eth0"], evidence)["eth0"].manager
    assert found == ("networkd" if runs else None)
    assert here["networkd"] == {"present": True, "configured": runs, "running": runs}
    hints = {name: bool(has["present"] and has.get("configured", True)) for name, has in here.items()}
    assert managers.default_manager({"eth0": None}, None, hints) == ("netplan" if runs else None)
