# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the integration tests share: one testbed for all of them, made clean before each test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Iterator

import pytest
from ansible_collections.longhaul.fleet.tests.support import compiled, leftovers
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.prepared_ansible import Prepared
from ansible_collections.longhaul.fleet.tests.testbed import Testbed, why_not


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    """Two hosts, alpha and beta, that are up until the last test has ended: a pair for each process of pytest."""
    reason = why_not()
    if reason:
        pytest.skip(f"cannot run here: {reason}")
    with Testbed() as bed:
        for host in bed.hosts:
            have_compiled_once(bed, host)
        yield bed


def have_compiled_once(bed: Testbed, host: str) -> None:
    """Have a host's Python keep what it compiles."""
    root = bed.root(host)
    kept = root / compiled.KEPT.lstrip("/")
    kept.mkdir(parents=True)
    kept.chmod(0o1777)
    asked = bed.exec(host, ["/usr/bin/python3", "-c", "import site; print(*site.getsitepackages(), sep='\\n')"])
    places = [root / line.lstrip("/") for line in asked.stdout.splitlines()]
    packages = next(place for place in places if place.is_dir())
    (packages / f"{compiled.NAME}.py").write_bytes(Path(compiled.__file__).read_bytes())
    (packages / f"{compiled.NAME}.pth").write_text(compiled.AT_START, encoding="utf-8")


@pytest.fixture
def hosts(testbed: Testbed) -> Iterator[Testbed]:
    """The testbed with nothing in /data, nothing running, and the network whole."""
    testbed.restore()
    for host in testbed.hosts:
        leftovers.clean(testbed, host)
    yield testbed
    testbed.restore()


@pytest.fixture(scope="session")
def prepared() -> Iterator[Prepared]:
    """A process that has imported Ansible, of which runs are forks."""
    made = Prepared(Path(sys.executable))
    yield made
    made.close()


@pytest.fixture
def playbooks(hosts: Testbed, tmp_path: Path, prepared: Prepared) -> Iterator[Playbooks]:
    """Runs playbooks against the clean hosts, as root; ``Playbooks.inventory`` may be rewritten for others.

    With pipelining, since that is quick. Inventories that tests write themselves do not mention it: transfers use it
    then, and other modules do not.
    """
    inventory = hosts.inventory(tmp_path / "inventory.yml", extra={"ansible_pipelining": True})
    made = Playbooks(inventory, tmp_path, collections_folder(), prepared)
    yield made
    made.end()


@pytest.fixture
def unpiped(playbooks: Playbooks, hosts: Testbed) -> Playbooks:
    """Playbooks without pipelining: modules with their arguments stand in files on the hosts."""
    playbooks.inventory = hosts.inventory(playbooks.folder / "unpiped.yml", extra={"ansible_pipelining": False})
    return playbooks
