# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host on which there was no ssh: the role installed it, tuned it, and took all of that back."""

from __future__ import annotations

testinfra_hosts = ["ansible://empty"]

WRITTEN = "/root/ssh_config.d/05-fleet.conf"


def test_the_client_was_installed_and_the_server_was_not(host):
    assert host.exists("ssh")
    assert not host.package("openssh-server").is_installed


def test_what_the_role_wrote_named_both_peers(host):
    text = host.file(WRITTEN).content_string
    assert "Host ssh_client-debian12 nobody-answers.invalid" in text
    assert "-cbc" not in text


def test_a_peer_that_does_not_answer_has_the_ciphers_of_the_host_in_the_order_of_speed(host):
    said = host.check_output(f"ssh -T -F {WRITTEN} -G nobody-answers.invalid")
    usual = host.check_output("ssh -T -F none -G nobody-answers.invalid")

    def ciphers(text: str) -> list[str]:
        (line,) = [line for line in text.splitlines() if line.startswith("ciphers ")]
        return line.split()[1].split(",")

    assert sorted(ciphers(said)) == sorted(ciphers(usual))


def test_what_was_asked_for_counts_for_the_peers(host):
    said = host.check_output(f"ssh -F {WRITTEN} -G nobody-answers.invalid").splitlines()
    wanted = {"compression yes", "forwardx11 yes", "ipqos af21 cs1", "serveraliveinterval 25", "requesttty auto"}
    assert wanted - set(said) == set()


def test_no_copy_of_the_changed_file_was_kept(host):
    assert host.check_output("ls /root/ssh_config.d") == "05-fleet.conf"


def test_rsync_is_given_the_command_that_was_asked_for(host):
    said = host.check_output("bash --norc -ic '. /root/longhaul-rsync.sh; echo \"$RSYNC_RSH\"'")
    assert said == "ssh -T -o 'Compression no'"


def test_the_state_absent_leaves_nothing_behind(host):
    assert host.check_output("ls /etc/ssh/ssh_config.d") == ""
    assert not host.file("/etc/profile.d/longhaul-rsync.sh").exists
