# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""netcat's dialects and tar's flavours: which it is, and what is typed."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.copy import netcat, tar_command


@pytest.mark.parametrize(
    ("text", "system", "dialect"),
    [
        ("OpenBSD netcat (Debian patchlevel 1.219-1)\nusage: nc [-46CDdFhklNnrStUuvZz]", "Linux", "openbsd"),
        ("[v1.10-47]\nconnect to somewhere:", "Linux", "traditional"),
        ("Ncat 7.93 ( https://nmap.org/ncat )\nUsage: ncat", "Linux", "ncat"),
        ("BusyBox v1.35.0 (Debian 1:1.35.0-4) multi-call binary.", "Linux", "busybox"),
        ("usage: nc [-46DdEFhklNnrStUuvz] [-e policy]", "FreeBSD", "freebsd"),
        ("usage: nc [-46DdEFhklNnrStUuvz]", "Linux", ""),
        ("GNU netcat 0.7.1", "Linux", ""),
        ("", "Linux", ""),
    ],
)
def test_dialects_are_told_apart(text, system, dialect):
    assert netcat.detect(text, system) == dialect


@pytest.mark.parametrize(
    ("dialect", "connect"),
    [
        ("openbsd", "nc -4 -n -N 10.0.0.1 5000"),
        ("freebsd", "nc -4 -n -N 10.0.0.1 5000"),
        ("traditional", "nc -n -q 0 10.0.0.1 5000"),
        ("ncat", "nc -4 -n 10.0.0.1 5000"),
        ("busybox", "nc 10.0.0.1 5000"),
    ],
)
def test_netcat_argv(dialect, connect):
    assert netcat.connect_argv(dialect, "10.0.0.1", 5000) == connect.split()


@pytest.mark.parametrize("dialect", [d for d in netcat.DIALECTS if d != "builtin"])
def test_no_netcat_gets_a_time_limit_on_its_data(dialect):
    words = netcat.connect_argv(dialect, "::1", 1)
    assert not {"-w", "-i", "-d", "--recv-only", "--send-only"} & set(words)


def test_an_unknown_dialect_has_no_argv():
    with pytest.raises(ValueError):
        netcat.connect_argv("gnu", "::1", 1)


@pytest.mark.parametrize(
    ("text", "flavour"),
    [
        ("tar (GNU tar) 1.34\nCopyright", "gnu"),
        ("bsdtar 3.6.2 - libarchive 3.6.2", "bsd"),
        ("tar (busybox) 1.35.0", ""),
        ("", ""),
    ],
)
def test_flavours_are_told_apart(text, flavour):
    assert tar_command.detect(text) == flavour


def test_tar_takes_only_names_that_both_flavours_can():
    assert tar_command.carries(b"a/\xff\n", {"gnu"}) and not tar_command.carries("ä".encode(), {"gnu", "bsd"})
    assert tar_command.carries(b"-rf", {"bsd"}) and not tar_command.carries(b"d/" * 2000, {"gnu"})


@pytest.mark.parametrize(
    ("flavour", "code", "fatal"),
    [
        ("gnu", 0, False),
        ("gnu", 1, False),
        ("gnu", 2, False),
        ("bsd", 1, False),
        ("bsd", 2, True),
        ("gnu", -9, True),
        ("gnu", 127, True),
    ],
)
def test_what_an_exit_code_of_tar_means(flavour, code, fatal):
    assert bool(tar_command.explain_exit(flavour, code)) is fatal


PROGRAMS = {"gnu": "tar", "bsd": "bsdtar"}
HOSTILE = [
    b"-rf",
    b"-C",
    b"--checkpoint-action=exec=id",
    b"@list",
    b"#x",
    b"two\nlines",
    b"lit\\nx",
    b"*",
    b"a:b",
    b"-Tx",
]


@pytest.mark.parametrize(("packs", "unpacks"), list(itertools.product(PROGRAMS, PROGRAMS)))
def test_hostile_names_are_names_to_every_pair_of_tars(tmp_path: Path, packs, unpacks):
    if any(shutil.which(PROGRAMS[flavour]) is None for flavour in (packs, unpacks)):
        pytest.skip("needs GNU tar and bsdtar")
    source, dest = tmp_path / "source", tmp_path / "dest"
    source.mkdir()
    dest.mkdir()
    for name in HOSTILE:
        with open(os.path.join(os.fsencode(source), name), "wb") as stream:
            stream.write(name)
    packed = subprocess.run(
        tar_command.create_argv(packs, str(source), True, PROGRAMS[packs]),
        input=tar_command.name_list(HOSTILE),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    subprocess.run(tar_command.extract_argv(unpacks, str(dest), False, PROGRAMS[unpacks]), input=packed, check=True)
    found = {
        name: Path(os.fsdecode(os.path.join(os.fsencode(dest), name))).read_bytes()
        for name in os.listdir(os.fsencode(dest))
    }
    assert found == {name: name for name in HOSTILE}
