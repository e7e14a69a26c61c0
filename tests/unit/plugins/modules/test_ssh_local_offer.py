# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module that decides what a client offers: on a busy host, and for a peer that does not answer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._ssh.local_offer import MEASURED
from ansible_collections.longhaul.fleet.plugins.modules import ssh_local_offer

# It says what stands in the next line of a file for the cipher; its last argument is the cipher.
OPENSSL = """\
#!/bin/sh
for name; do :; done
said=$(head -n 1 "$0.$name")
sed -i 1d "$0.$name"
[ "$said" != unknown ] || exit 1
echo "+F:22:$name:$said"
"""


class Module:
    """The part of an Ansible module that a measurement needs."""

    params = {"measure": "always"}

    def __init__(self, openssl: Path) -> None:
        self._openssl = str(openssl)
        self.runs = 0

    def get_bin_path(self, _name: str) -> str:
        return self._openssl

    def run_command(self, argv: list[str]) -> tuple[int, str, str]:
        self.runs += 1
        ended = subprocess.run(argv, check=False, capture_output=True, text=True)
        return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    ("aes", "expected", "runs"),
    [
        (["2000.5"], 2000.5, 2),
        (["inf", "nan", "2000.5"], 2000.5, 4),
        (["inf", "0.00", "nan", "2000.5"], None, 4),
        (["unknown", "2000.5"], None, 2),  # a cipher that it does not have is not asked for again
    ],
)
def test_a_cipher_without_a_figure_is_measured_again(
    tmp_path: Path, aes: list[str], expected: float | None, runs: int
) -> None:
    openssl = tmp_path / "openssl"
    openssl.write_text(OPENSSL)
    openssl.chmod(0o755)
    for name, lines in zip(MEASURED, (aes, ["1000"]), strict=True):
        Path(f"{openssl}.{name}").write_text("".join(f"{line}\n" for line in lines))
    module: Any = Module(openssl)
    speeds = ssh_local_offer.measured(cast(AnsibleModule, module), None)
    assert speeds == {**({MEASURED[0]: expected} if expected else {}), MEASURED[1]: 1000}
    assert module.runs == runs


def run(**options: Any) -> Any:
    """Run the module; give its result."""
    ended = subprocess.run(
        [sys.executable, "-c", f"from {ssh_local_offer.__name__} import main; main()"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {**options, "measure": "never"}}),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(ended.stdout)


def test_peers_are_completed_from_the_inventory_and_a_mistake_is_told() -> None:
    inventory = {"one": {"address": "10.0.0.1", "port": 2222, "aes": None}}
    checked = run(state="checked", peers=[{"name": "one"}, {"name": "own"}], inventory=inventory, own_name="own")
    (one,) = checked["completed"]
    assert (one["address"], one["port"], one["patterns"]) == ("10.0.0.1", 2222, ["one", "10.0.0.1"])
    assert checked["problems"] == [] and isinstance(checked["aes"], bool)
    assert "'*' matches every host" in run(state="checked", peers=[{"name": "a", "patterns": ["*"]}])["problems"][0]


def test_a_peer_that_does_not_answer_is_told_and_gets_what_the_client_has() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        peer = {"name": "gone", "address": "127.0.0.1", "port": closed.getsockname()[1]}
        peers = run(state="checked", peers=[peer])["completed"]
        planned = run(state="planned", peers=peers, aes=False, aes_reason="it is old")
    assert planned["problems"] == planned["addresses"] == [] and "it is old" in planned["said"][0]
    assert "cannot be reached" in planned["said"][1]
    (block,) = planned["plan"]["blocks"]
    assert block["algorithms"]["Ciphers"] == planned["plan"]["ciphers"]["gone"] != []
    asked = run(state="planned", peers=peers, aes=True, probe=False)
    assert "it was not asked" in asked["said"][1]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (None, "missing"),
        ("Port 22\n", "no"),
        ("Include sshd.d/*.conf\nPort 22\n", "yes"),
        ("Match User ada\nInclude sshd.d/*.conf\n", "late"),
    ],
)
def test_the_configuration_of_the_server_is_told_by_whether_it_reads_its_drop_in(
    tmp_path: Path, server: str | None, expected: str
) -> None:
    config = tmp_path / "sshd_config"
    if server is not None:
        config.write_text(server)
    answer = run(server_config=str(config), server_drop_in=str(tmp_path / "sshd.d/10-longhaul.conf"))
    assert answer["server_includes"] == expected


def test_a_drop_in_that_is_ignored_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "client.d").mkdir()
    drop_in = tmp_path / "client.d/10-longhaul.conf"
    drop_in.write_text("Host one\n  Port 2222\n")
    (tmp_path / "client.d/20-other.conf").write_text("Host one\n  HostName 192.0.2.1\n")
    config = tmp_path / "ssh_config"
    config.write_text(f"Include {tmp_path}/client.d/*.conf\n")
    given = {"config": str(config), "drop_in": str(drop_in), "peers": [{"name": "one"}]}
    for ignored, port in ((False, 2222), (True, 22)):
        answer = run(**given, ignore_drop_in=ignored)
        peer = answer["peers"]["one"]
        assert (answer["includes"], peer["port"], peer["hostname"]) == ("yes", port, "192.0.2.1")
