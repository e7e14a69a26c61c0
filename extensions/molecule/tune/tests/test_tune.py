# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the playbook tune has done to the pair, and what it reported of the last run."""

from __future__ import annotations

import os
import re
from pathlib import Path

DROP_IN = "/etc/ssh/ssh_config.d/10-longhaul.conf"
PEER = {"tune-debian12": "tune-debian13", "tune-debian13": "tune-debian12"}
FOLDER = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])
REPORT = FOLDER / "tune.md"


def test_each_host_is_tuned_for_the_other(host):
    text = host.file(DROP_IN).content_string
    own = host.backend.get_hostname()
    assert re.search(rf"^Host {PEER[own]}\b", text, re.MULTILINE)
    assert not re.search(rf"^Host .*\b{own}\b", text, re.MULTILINE)


def test_ssh_uses_what_was_decided(host):
    peer = PEER[host.backend.get_hostname()]
    written = re.search(r"^ +Ciphers (\S+)$", host.file(DROP_IN).content_string, re.MULTILINE)[1]
    assert f"ciphers {written}\n" in host.check_output(f"ssh -T -G {peer}") + "\n"


def test_nothing_of_the_measurements_is_left(host):
    assert host.check_output("find /var/tmp /tmp /srv -name 'longhaul*'") == ""
    assert host.run("pgrep -f '[e]ngine.pyz'").rc == 1


def test_tcp_is_set_up_and_the_links_are_as_they_were(host):
    assert "net.core.rmem_max = 268435456" in host.file("/etc/sysctl.d/90-longhaul-nic.conf").content_string
    assert "longhaul" not in host.check_output("ls /etc/netplan /etc/network /etc/systemd/network 2>/dev/null || true")


def test_the_report_has_both_directions_and_both_measurements():
    (row,) = [line for line in REPORT.read_text().splitlines() if line.startswith("| tune-debian12 to tune-debian13 |")]
    _empty, _pair, path, before, after, change, _end = (cell.strip() for cell in row.split("|"))
    assert re.fullmatch(r"passed \(\d+\) there, passed \(\d+\) back", path)
    cipher = r"[0-9.]+ MB/s, \S+(gcm|poly1305)@openssh.com"
    assert re.fullmatch(cipher, before)
    assert re.fullmatch(cipher, after)
    assert re.fullmatch(r"[+-]\d+ %", change)
    assert float(before.split()[0]) > 0
    assert float(after.split()[0]) > 0


def test_without_measurements_the_paths_alone_are_reported():
    lines = (FOLDER / "not-measured.md").read_text().splitlines()
    (row,) = [line for line in lines if line.startswith("| tune-debian12 to tune-debian13 |")]
    _empty, _pair, path, before, after, change, _end = (cell.strip() for cell in row.split("|"))
    assert re.fullmatch(r"passed \(\d+\) there, passed \(\d+\) back", path)
    assert (before, after, change) == ("not measured", "not measured", "")
