# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The examples are playbooks that Ansible accepts, for hosts that their inventory has. ansible-lint reads them, too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLES = REPOSITORY / "examples"
PLAYBOOKS = sorted(path.name for path in EXAMPLES.glob("*.yml"))


def run(program, *arguments):
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(REPOSITORY / ".build")}
    argv = [str(Path(sys.executable).with_name(program)), "-i", str(EXAMPLES / "inventory/hosts.yml"), *arguments]
    return subprocess.run(argv, cwd=EXAMPLES, env=environment, capture_output=True, text=True, check=False)


def words(value):
    """Yield every string in a playbook."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from (key, *words(item))
    elif isinstance(value, list):
        for item in value:
            yield from words(item)
    elif isinstance(value, str):
        yield value


def test_ansible_accepts_every_playbook():
    ended = run("ansible-playbook", "--syntax-check", *PLAYBOOKS)
    assert (ended.returncode, ended.stderr.count("ERROR")) == (0, 0), ended.stderr
    assert [name for name in PLAYBOOKS if f"playbook: {name}" not in ended.stdout] == []


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_the_readme_names_every_playbook(name):
    assert f"[{name}]({name})" in (EXAMPLES / "README.md").read_text()


def test_every_host_that_is_named_is_in_the_inventory():
    ended = run("ansible", "all", "--list-hosts")
    known = {line.strip() for line in ended.stdout.splitlines()[1:]}
    named = {word for name in PLAYBOOKS for word in words(yaml.safe_load((EXAMPLES / name).read_text()))}
    hosts = {word for word in named if word.endswith(".example.com")}
    assert hosts
    assert hosts - known == set()
