# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts keep the engine compiled, and run nothing from there that another user could have written."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.support.refusal import small_tree
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

KEPT = "var/cache/longhaul"
PLAIN = 5002  # the number of the user "plain" on the hosts
DAY = 86400


def kept(bed: Testbed) -> dict[str, list[Path]]:
    return {host: sorted((bed.root(host) / KEPT).glob("*")) for host in bed.hosts}


def forget(bed: Testbed) -> None:
    """Remove what earlier tests, some with other versions and Pythons, have left on the hosts."""
    for host in bed.hosts:
        shutil.rmtree(bed.root(host) / KEPT, ignore_errors=True)


def transfer(playbooks: Playbooks, name: str) -> None:
    options = {
        "src_host": "alpha",
        "src": "/data/src/",
        "dest_host": "beta",
        "dest": f"/data/{name}",
        "encryption": "none",
    }
    done = playbooks.run([{"name": name, "longhaul.fleet.transfer": options}], hosts="localhost").expect_success()
    assert done.result(name)["changed"]


def test_the_engine_is_kept_compiled(hosts: Testbed, playbooks: Playbooks) -> None:
    forget(hosts)
    small_tree(hosts)
    transfer(playbooks, "first")
    before = kept(hosts)
    for paths in before.values():
        (engine,) = paths
        assert engine.name.startswith("engine-") and engine.suffix == ".pyz"
        assert stat.S_IMODE(engine.parent.stat().st_mode) == 0o700
        now = engine.stat().st_mtime
        os.utime(engine, (now - 40 * DAY, now - 40 * DAY))
        engine.with_name("engine-of-an-older-version.pyz").touch()
    transfer(playbooks, "second")
    for engine, other in kept(hosts).values():
        assert engine.stat().st_mtime > engine.parent.stat().st_ctime - DAY, "it was not marked as used"
        assert other.name == "engine-of-an-older-version.pyz"
        now = other.stat().st_mtime
        os.utime(other, (now - 40 * DAY, now - 40 * DAY))
        engine.unlink()
    transfer(playbooks, "third")
    assert kept(hosts) == before  # made again, and what nobody used for a month is gone


def test_what_another_user_can_write_is_not_run(hosts: Testbed, playbooks: Playbooks) -> None:
    forget(hosts)
    small_tree(hosts)
    transfer(playbooks, "first")
    planted = b"what another user wrote"
    folder, file = (hosts.root(host) / KEPT for host in hosts.hosts)
    for path in [*folder.glob("*"), *file.glob("*")]:
        path.write_bytes(planted)
    os.chown(folder, PLAIN, PLAIN)
    for path in file.glob("*"):
        path.chmod(0o666)
    transfer(playbooks, "second")
    assert [path.read_bytes() for path in folder.glob("*")] == [planted]
    assert planted not in [path.read_bytes() for path in file.glob("*")]  # it was recreated
    shutil.rmtree(folder)
