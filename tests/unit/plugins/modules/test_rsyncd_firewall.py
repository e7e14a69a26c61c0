# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The port is opened in a real nftables, in a network and with an /etc of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = Path(__file__).resolve().parents[4] / "plugins/modules/rsyncd_firewall.py"
TOOLS = all(shutil.which(program) for program in ("nft", "unshare", "mount"))
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0 or not TOOLS, reason="cannot run here: needs root and nftables"),
]
RULES = """\
flush ruleset
table inet filter {
  chain input {
    type filter hook input priority filter; policy drop;
    tcp dport 22 accept
  }
}
"""
PRELUDE = """
set -eu
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/scratch
mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /etc
printf '%s' "$RULES" > /etc/nftables.conf
nft -f /etc/nftables.conf
run() {
  printf '{"ANSIBLE_MODULE_ARGS": {"port": 8730, "sources": [%s], "_ansible_check_mode": %s,
    "_ansible_remote_tmp": "/mnt/scratch"}}' "$1" "${2:-false}" | "$PYTHON" "$MODULE" | grep .
}
"""
TEN, FD = '"10.0.0.0/8"', '"fd00::/8"'


def in_a_network(script: str, rules: str = RULES) -> list[str]:
    """Run a script after the prelude; give the lines that it prints."""
    ran = subprocess.run(
        ["unshare", "--net", "--mount", "bash", "-c", PRELUDE + script],
        env={
            **os.environ,
            "RULES": rules,
            "PYTHON": sys.executable,
            "MODULE": str(MODULE),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def test_it_is_opened_now_and_after_a_boot_and_only_once():
    first, second, *ruleset = in_a_network(f"""
run '{TEN}'; run '{TEN}'
nft -f /etc/nftables.conf # as at boot
nft list ruleset
""")
    assert json.loads(first)["changed"] and not json.loads(second)["changed"]
    assert json.loads(first)["firewall"] == "nftables"
    rules = [line.strip() for line in ruleset if "dport" in line]
    assert rules[0].startswith("ip saddr 10.0.0.0/8 tcp dport 8730 accept comment")
    assert rules[1] == "tcp dport 22 accept"


def test_check_mode_predicts():
    first, *rest = in_a_network(f"run '{TEN}' true; nft list ruleset; ls /etc/*longhaul* || true")
    assert json.loads(first)["changed"]
    assert not [line for line in rest if "8730" in line or "longhaul" in line]


def test_other_sources_take_the_place_of_the_old_ones():
    *results, _table, _chain, _type, rule, _ssh, _end, _last = in_a_network(f"""
run '{TEN}'; run '{TEN}, {FD}'; run '{TEN}, {FD}'; run ''
nft list ruleset
""")
    assert [json.loads(result)["changed"] for result in results] == [True, True, False, True]
    assert rule.strip() == 'tcp dport 8730 accept comment "longhaul.fleet.rsyncd 8730 any"'


def test_a_client_gets_through():
    answers = "    tcp sport 8730 accept\n    tcp dport 22 accept\n"
    script = """
ip link set lo up
listen() { "$PYTHON" -c 'import socket; s = socket.create_server(("", 8730)); s.settimeout(60); s.accept()'; }
ask() { "$PYTHON" -c 'import socket; socket.create_connection(("127.0.0.1", 8730), 2)' 2>&1; }
run '"127.0.0.0/8"' true
listen & sleep 1
ask > /dev/null && echo answered || echo refused
run '"127.0.0.0/8"' > /dev/null
ask > /dev/null && echo answered || echo refused
wait
"""
    result, refused, answered = in_a_network(script, RULES.replace("    tcp dport 22 accept\n", answers))
    assert json.loads(result)["commands"]
    assert (refused, answered) == ("refused", "answered")


def test_a_file_that_nft_does_not_take_is_left_alone():
    result, last = in_a_network(
        f"echo 'table inet x {{ broken' >> /etc/nftables.conf; run '{TEN}'; tail -1 /etc/nftables.conf"
    )
    assert "was left as it is" in result
    assert last == "table inet x { broken"


@pytest.mark.parametrize("rules", ["flush ruleset\n", RULES.replace("policy drop", "policy accept")])
def test_where_nothing_is_closed_nothing_is_done(rules):
    (result,) = in_a_network(f"run '{TEN}'", rules)
    found = json.loads(result)
    assert (found["firewall"], found["changed"]) == ("none", False)
