# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trying files out with the manager's own program before they are put in place. Private to the collection."""

from __future__ import annotations

import glob
import os
import shutil
from typing import Mapping, Sequence

from .._core.subprocesses import find_program
from .managers import parse_interfaces
from .programs import run

NETPLAN_FOLDERS = ("/lib/netplan", "/etc/netplan", "/run/netplan")


def try_files(contents: Mapping[str, str], absent: Sequence[str], folder: str) -> list[str]:
    """Return the complaints of the programs. ``contents`` are the future files, by path; ``folder`` is an empty one.

    systemd-networkd and NetworkManager have no program that checks a file; both say in their journal what they ignore.
    """
    problems = []
    if any(path.startswith("/etc/netplan/") for path in [*contents, *absent]) and find_program("netplan"):
        problems += _netplan(contents, absent, os.path.join(folder, "root"))
    for number, (path, content) in enumerate(sorted(contents.items())):
        copy = os.path.join(folder, str(number))
        with open(copy, "w", encoding="utf-8") as opened:
            opened.write(content)
        if path.startswith("/etc/network/interfaces.d/") and find_program("ifup"):
            names = sorted(parse_interfaces(content)[0])
            problems += _said(path, ["ifup", "--no-act", "--force", "-i", copy, *names]) if names else []
        elif path.startswith("/etc/rc.conf.d/"):
            problems += _said(path, ["sh", "-n", copy])
    return problems


def _netplan(contents: Mapping[str, str], absent: Sequence[str], root: str) -> list[str]:
    """Let the generator write into another root what all files together make."""
    for folder in NETPLAN_FOLDERS:
        os.makedirs(root + folder, mode=0o700)
        for path in glob.glob(f"{folder}/*.yaml"):
            if path not in absent:
                shutil.copy2(path, root + path)
    for path, content in contents.items():
        if path.startswith("/etc/netplan/"):
            with open(root + path, "w", encoding="utf-8", opener=_private) as opened:
                opened.write(content)
    ended = run(["netplan", "generate", "--root-dir", root])
    said = ended.said.replace(root, "")
    return [f"netplan does not accept what its files would be: {said}"] if ended.code else []


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _said(path: str, argv: Sequence[str]) -> list[str]:
    ended = run(argv)
    return [f"{path}: {argv[0]} does not accept it: {ended.said}"] if ended.code else []
