# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hooks of a migration that fail: which one it was is told everywhere, and of one with no_log nothing else is."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.tests.integration import test_migrate
from ansible_collections.longhaul.fleet.tests.integration.test_migrate import Migration
from ansible_collections.longhaul.fleet.tests.support.rarely import rarely
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

migration = test_migrate.migration  # its fixture

SAYS = "echo to standard output; echo to standard error >&2; exit 3"
SECRET = "hunter2"
FOR_ALL = {"name": "mark the host", "host": "source", "command": ["/usr/bin/touch", "/data/marked"]}
OPEN = {"name": "flush the cache", "host": "source", "command": ["/bin/sh", "-c", SAYS]}
HIDDEN = {
    "name": "log in",
    "host": "source",
    "no_log": True,
    "command": ["/bin/sh", "-c", f"echo {SECRET}; echo {SECRET} >&2; exit 3"],
}
TASKS = f"- name: Tell the secret\n  ansible.builtin.command: /bin/sh -c 'echo {SECRET} >&2; exit 3'\n"


def everything_said(migration: Migration, output: str) -> str:
    """Return what was printed and all that stands in the folder of reports."""
    files = [path for path in migration.folder.rglob("*") if path.is_file()]
    assert len(files) >= 4
    return output + "".join(path.read_text() for path in files)


@pytest.mark.parametrize("when", ["after_cutover", *rarely("before_cutover", "cutover_failed", "switch_failed")])
def test_a_failed_hook_is_named_with_its_output(hosts: Testbed, migration: Migration, when: str) -> None:
    fails = {"host": "dest", "command": ["/bin/false"]}
    migration.jobs[0].update({"before_cutover": [fails]} if when == "cutover_failed" else {})
    migration.jobs[0].update({"after_cutover": [fails]} if when == "switch_failed" else {})
    migration.jobs[0][when] = [OPEN]
    # Those of all jobs (migrate_before_cutover, migrate_after_cutover, migrate_cutover_failed, migrate_switch_failed)
    # run ahead of the job's own.
    migration.options[f"migrate_{when}"] = [FOR_ALL]
    said = migration.run_into_failure()
    assert (hosts.root("alpha") / "data/marked").exists()
    reports = {
        "the message": said,
        "the report of the job": migration.text(),
        "the overview": (migration.folder / "report.md").read_text(),
        "its data": migration.report()["failure"]["reason"],
    }
    for where, text in reports.items():
        assert f"flush the cache ({when}) on alpha" in text, (where, text)
        assert "(rc 3): to standard error" in text, (where, text)
    ran = [(one["name"], one["kind"], one["result"]) for one in migration.report()["hooks"]]
    assert ran[-2:] == [("mark the host", when, "done"), ("flush the cache", when, "failed")]
    assert bool(migration.report()["switch"]) == (when in ("after_cutover", "switch_failed"))

    # The same with no_log, once as a command and once as a file of tasks: its name is all that is told.
    (migration.playbooks.inventory.parent / "login.yml").write_text(TASKS)
    for hidden in (HIDDEN, {"name": "log in", "host": "source", "no_log": True, "tasks": "login.yml"}):
        migration.jobs[0][when] = [hidden]
        run = migration.start("-vv").wait()
        assert run.rc != 0
        told = everything_said(migration, run.output)
        assert SECRET not in told and f"log in ({when}) on alpha failed" in run.failures[-1], run.failures[-1]
