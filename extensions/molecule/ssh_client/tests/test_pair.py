# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ssh and sshd do after the role: for the peers, for everybody else, and on the wire."""

from __future__ import annotations

import re

import pytest

testinfra_hosts = ["ansible://pair"]

PEER = {"ssh_client-debian12": "ssh_client-debian13", "ssh_client-debian13": "ssh_client-debian12"}
DROP_IN = "/etc/ssh/ssh_config.d/10-longhaul.conf"
WITH_AES = ["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"]
WITHOUT = ["chacha20-poly1305@openssh.com", "aes128-ctr", "aes192-ctr"]


@pytest.fixture
def peer(host) -> str:
    return PEER[host.backend.get_hostname()]


@pytest.fixture
def quickest(host) -> list[str]:
    """Return the expected first ciphers on this processor, which both hosts share."""
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", host.file("/proc/cpuinfo").content_string, re.MULTILINE)
    return WITH_AES if flags is None or "aes" in flags.group(1).split() else WITHOUT


def effective(host, name: str) -> dict[str, str]:
    said = host.check_output(f"ssh -G {name}")  # not with -T, which would decide about the terminal
    return dict(line.split(" ", 1) for line in said.splitlines() if " " in line)


def on_the_wire(host, name: str) -> str:
    """Return the cipher that a real connection used."""
    ran = host.run(f"ssh -v -o BatchMode=yes {name} true")
    assert ran.rc == 0, ran.stderr
    return re.search(r"kex: client->server cipher: (\S+)", ran.stderr)[1]


def test_the_drop_in_belongs_to_root_and_everybody_may_read_it(host):
    file = host.file(DROP_IN)
    assert (file.user, file.group, file.mode) == ("root", "root", 0o644)
    assert file.content_string.startswith("#\n# Ansible managed")


def test_the_fastest_ciphers_come_first_and_none_is_lost_or_new(host, peer, quickest):
    tuned = effective(host, peer)["ciphers"].split(",")
    usual = effective(host, "stranger.example")["ciphers"].split(",")
    assert tuned[: len(quickest)] == quickest
    assert sorted(tuned) == sorted(usual)


def test_the_other_options_count_for_the_peer(host, peer):
    found = effective(host, peer)
    assert found["compression"] == "no"
    assert found["requesttty"] in ("no", "false")
    assert effective(host, "stranger.example")["requesttty"] == "auto"
    assert found["forwardx11"] == "no"
    assert found["ipqos"].startswith("none")
    assert found["serveraliveinterval"] == "15"


def test_ssh_t_still_gives_a_terminal(host, peer):
    assert host.check_output(f"ssh -tt -o BatchMode=yes {peer} tty").strip().startswith("/dev/pts/")
    assert host.run(f"ssh -o BatchMode=yes {peer} tty").stdout.strip() == "not a tty"


def test_a_real_connection_uses_the_fastest_cipher(host, peer, quickest):
    assert on_the_wire(host, peer) == quickest[0]


def test_a_host_that_is_no_peer_is_treated_as_before(host):
    before = host.file("/root/stranger.before").content_string
    assert host.check_output("ssh -T -G stranger.example").strip() == before.strip()


def test_a_pattern_counts_as_a_name(host, peer, quickest):
    if peer == "ssh_client-debian13":
        assert effective(host, "disk1.thirteen.example")["ciphers"].split(",")[0] == quickest[0]


def test_the_old_peer_is_reached_and_it_alone_may_use_old_ciphers(host, peer):
    assert on_the_wire(host, "old.example") == "aes128-cbc"  # and not 3des-cbc, which that server prefers
    assert "cbc" not in effective(host, peer)["ciphers"]
    refused = host.run("ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -p 2222 ssh_client-debian12 true")
    assert refused.rc == 255
    assert "no matching cipher found" in refused.stderr


def test_interactive_users_have_rsync_rsh_and_programs_do_not(host):
    profile = "/etc/profile.d/longhaul-rsync.sh"
    ask = f"'. {profile}; echo \"[${{RSYNC_RSH:-}}]\"'"
    assert host.run(f"bash --norc -ic {ask}").stdout.strip() == "[ssh -T -x]"
    assert host.run(f"RSYNC_RSH=mine bash --norc -ic {ask}").stdout.strip() == "[mine]"
    assert host.run(f"sh -c {ask}").stdout.strip() == "[]"


def test_the_server_treats_the_peer_as_a_peer_and_others_as_before(host, peer):
    address = host.check_output(f"getent hosts {peer}").split()[0]
    tuned = host.check_output(f"sshd -T -C addr={address}")
    assert re.search(r"^ipqos none", tuned, re.MULTILINE)
    assert re.search(r"^x11forwarding no$", tuned, re.MULTILINE)
    assert re.search(r"^clientaliveinterval 15$", tuned, re.MULTILINE)
    others = host.check_output("sshd -T -C addr=203.0.113.9")
    assert re.search(r"^clientaliveinterval 0$", others, re.MULTILINE)
    assert re.search(r"^x11forwarding yes$", others, re.MULTILINE)
    startups = 40 if "12" in host.backend.get_hostname() else 30  # changed on one of them afterwards
    assert re.search(rf"^maxstartups {startups}:30:200$", others, re.MULTILINE)
    if "persourcepenaltyexemptlist" in others:
        assert re.search(rf"^persourcepenaltyexemptlist .*{re.escape(address)}", others, re.MULTILINE)
    else:
        assert "12" in host.backend.get_hostname()


def test_the_drop_in_of_the_server_is_where_it_was_named(host):
    expected = "20-fleet.conf" if "13" in host.backend.get_hostname() else "10-longhaul.conf"
    found = host.check_output("ls -1 /etc/ssh/sshd_config.d").split()
    assert [name for name in found if name.endswith(".conf")] == [expected]
    assert host.file(f"/etc/ssh/sshd_config.d/{expected}").mode == 0o600


def test_sshd_was_reloaded_once_and_never_restarted(host):
    """A later change of its drop-in, on the host with Debian 12, came with ssh_client_manage_service=false."""
    before = host.file("/root/sshd.before").content_string
    assert re.fullmatch(r"ExecMainPID=[1-9]\d*\n", before)
    assert host.check_output("systemctl show --property=ExecMainPID ssh") == before.strip()
    said = host.check_output("journalctl --unit ssh --output cat --no-pager")
    assert said.count("Received SIGHUP; restarting.") == 1, said


def test_the_configuration_of_the_distribution_is_as_it_was_but_for_the_include_line(host):
    text = host.file("/etc/ssh/ssh_config").content_string
    assert text.count("Include /etc/ssh/ssh_config.d/*.conf") == 1
    first = next(line for line in text.splitlines() if line and not line.startswith("#"))
    assert first.startswith("Include ")
    copies = host.check_output("ls /etc/ssh | grep '^ssh_config\\..*~$' || true").split()
    if "12" in host.backend.get_hostname():  # the line was taken out there, and the role put it back
        (copy,) = copies
        assert text == "Include /etc/ssh/ssh_config.d/*.conf\n" + host.file(f"/etc/ssh/{copy}").content_string
    else:
        assert copies == []
