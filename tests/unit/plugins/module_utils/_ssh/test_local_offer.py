# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Include lines: found, found too late, and taken apart; and what a processor is said to be."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._ssh.local_offer import (
    aes_by_flags,
    aes_by_speed,
    assess_aes,
    includes,
    parse_speed,
    without,
)

OURS = "/etc/ssh/ssh_config.d/10-longhaul.conf"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Include /etc/ssh/ssh_config.d/*.conf\nHost *\n  SendEnv LANG\n", "yes"),
        ("# comment\n\n  include\tssh_config.d/*.conf  # ours\n", "yes"),
        ("Include=ssh_config.d/*.conf\n", "yes"),
        ('Include "/etc/ssh/ssh_config.d/*.conf"\n', "yes"),
        ("Include /etc/ssh/other/* /etc/ssh/ssh_config.d/10-*.conf\n", "yes"),
        ("Host *\n  SendEnv LANG\nInclude ssh_config.d/*.conf\n", "late"),
        ("Match final all\nInclude ssh_config.d/*.conf\n", "late"),
        ("Host a\nInclude x\nInclude ssh_config.d/*.conf\n", "late"),
        ("#Include /etc/ssh/ssh_config.d/*.conf\n", "no"),
        ("Include /etc/ssh/ssh_config.d/*.config\n", "no"),
        ("Include conf.d/*.conf\n", "no"),
        ('Include "/etc/ssh/ssh_config.d/*.conf\n', "no"),
        ("", "no"),
        ("SendEnv Include /etc/ssh/ssh_config.d/*.conf\n", "no"),
    ],
)
def test_includes(text, expected):
    assert includes(text, OURS, "/etc/ssh") == expected


FILES = {
    "/etc/ssh/ssh_config.d/*.conf": ["/etc/ssh/ssh_config.d/50-redhat.conf", OURS, "/etc/ssh/ssh_config.d/20 own.conf"],
    "/etc/ssh/only/*": [OURS],
    "/etc/ssh/none/*": [],
}


@pytest.mark.parametrize(
    "text, path, expected",
    [
        (
            "Include ssh_config.d/*.conf\nHost *\n",
            OURS,
            'Include "/etc/ssh/ssh_config.d/20 own.conf" /etc/ssh/ssh_config.d/50-redhat.conf\nHost *\n',
        ),
        ("Host x\n  Include only/*\n  Port 22\n", OURS, "Host x\n# nothing to include\n  Port 22\n"),
        ("Include only/*\n", "", f"Include {OURS}\n"),
        ("Include none/* only/*\n", "", f"Include {OURS}\n"),
        ("Ciphers aes128-ctr\n", OURS, "Ciphers aes128-ctr\n"),
    ],
)
def test_without(text, path, expected):
    assert without(text, path, "/etc/ssh", lambda pattern: FILES[pattern]) == expected


X86 = "processor\t: 0\nflags\t\t: fpu vme aes avx2\nbugs\t\t:\n"
ARM = "processor\t: 0\nFeatures\t: fp asimd aes pmull\n"


@pytest.mark.parametrize(
    "cpuinfo, aes",
    [
        (X86, True),
        (ARM, True),
        (X86.replace(" aes", ""), False),
        (X86.replace(" aes", " vaes"), False),  # a longer word is another flag
        (ARM.replace(" aes", ""), False),
        ("cpu\t\t: POWER9, altivec supported\n", None),
        ("", None),
    ],
)
def test_flags(cpuinfo, aes):
    verdict = aes_by_flags(cpuinfo)
    assert (verdict.aes if verdict else None) is aes


@pytest.mark.parametrize(
    "output, speed",
    [
        ("+R:503374:AES-128-GCM:0.770000\n+H:16384\n+F:25:AES-128-GCM:10710752748.05\n", 10710752748.05),
        ("+H:16384\n+F:22:ChaCha20-Poly1305:0.00\n", None),
        ("Error setting cipher\n", None),
        ("", None),
    ],
)
def test_speed(output, speed):
    assert parse_speed(output) == speed


@pytest.mark.parametrize(
    "cpuinfo, speeds, aes, known, says",
    [
        (X86, {}, True, True, "has AES"),
        (X86.replace(" aes", ""), {}, False, True, "no AES"),
        ("", {"aes-128-gcm": 9e8, "chacha20-poly1305": 3e8}, True, True, "AES is quicker: 900 MB/s"),
        (None, {"aes-128-gcm": 9e7, "chacha20-poly1305": 3e8}, False, True, "AES is slower: 90 MB/s"),
        (X86, {"aes-128-gcm": 9e7, "chacha20-poly1305": 3e8}, False, True, "slower"),  # measured counts more
        (X86, {"aes-128-gcm": 9e7}, True, True, "has AES"),
        (None, {}, True, False, "nothing tells"),
        ("", {"chacha20-poly1305": 3e8}, True, False, "nothing tells"),
    ],
)
def test_judge(cpuinfo, speeds, aes, known, says):
    verdict = assess_aes(cpuinfo, speeds)
    assert (verdict.aes, verdict.known) == (aes, known)
    assert says in verdict.reason


def test_half_a_measurement_is_none():
    assert aes_by_speed({"aes-128-gcm": 1.0}) is None
