# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The schedule of the role backup on a real host: it is as wanted, stays so, runs, and goes without a trace."""

from __future__ import annotations

import os
from typing import Any

from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

RUNNER, LOCK = "usr/local/libexec/longhaul-backup", "var/lib/longhaul-schedule/longhaul-backup.lock"
CRON = {RUNNER, LOCK, "etc/cron.d/longhaul-backup", "etc/logrotate.d/longhaul-backup"}
UNITS = {f"etc/systemd/system/longhaul-backup.{kind}" for kind in ("service", "timer")}
SYSTEMD = {RUNNER, LOCK, *UNITS}
PROGRAM = """#!/bin/sh
printf '%s|' "$@" "$PWD" "$WORD" >/data/ran
cut -d ' ' -f 19 /proc/self/stat >>/data/ran
ionice >>/data/ran
id -un >>/data/ran
"""
# Everything that a user may say of the run.
SAID = {
    "backup_schedule_playbook": "/srv/play books/nightly.yml",
    "backup_schedule_vars_files": ["/srv/$jobs.yml", "/srv/vault 2.yml"],
    "backup_schedule_arguments": ["--vault-id", "it's this"],
    "backup_schedule_folder": "/data/where it runs",
    "backup_schedule_environment": {"WORD": "a $word"},
    "backup_schedule_time": "04:05",
    "backup_schedule_weekdays": ["mon", "sat"],
    "backup_schedule_jitter": 0,
    "backup_schedule_user": "daemon",
    "backup_schedule_nice": 7,
    "backup_schedule_io": "idle",
    "backup_schedule_log_keep": 3,
}
WORDS = [
    *("-i", "/data/hosts", "-e", "@/srv/$jobs.yml", "-e", "@/srv/vault 2.yml", "--vault-id", "it's this"),
    *("/srv/play books/nightly.yml", "/data/where it runs", "a $word"),
]


def test_a_schedule_comes_runs_changes_and_goes(hosts: Testbed, playbooks: Playbooks) -> None:
    root = hosts.root("alpha")
    (root / "data/program").write_text(PROGRAM)
    (root / "data/program").chmod(0o755)
    (root / "data/where it runs").mkdir()
    (root / "data/ran").touch()
    (root / "data/ran").chmod(0o666)

    def schedule(*flags: str, **variables: Any) -> Run:
        given = {
            "backup_schedule_program": "/data/program",
            "backup_schedule_inventories": ["/data/hosts"],
            **variables,
        }
        role = {"name": "longhaul.fleet.backup", "tasks_from": "schedule"}
        tasks = [{"name": "The schedule", "ansible.builtin.include_role": role, "vars": given}]
        return playbooks.run(tasks, *flags, hosts="alpha")

    def changed(run: Run) -> bool:
        return any(one.result.get("changed") for one in run.expect_success().results)

    def there() -> set[str]:
        return {path for path in CRON | SYSTEMD if (root / path).exists()}

    assert changed(schedule("--check", backup_schedule_how="cron", **SAID)) and there() == set()
    assert changed(schedule(backup_schedule_how="cron", **SAID)) and there() == CRON
    assert not changed(schedule(backup_schedule_how="cron", **SAID)) and there() == CRON
    hosts.exec("alpha", ["/usr/sbin/runuser", "-u", "daemon", "/" + RUNNER])
    assert (root / "data/ran").read_text() == "|".join([*WORDS, f"{min(os.nice(0) + 7, 19)}\nidle\ndaemon\n"])
    assert "5 4 * * mon,sat daemon /" + RUNNER in (root / "etc/cron.d/longhaul-backup").read_text()
    assert "    rotate 3\n" in (root / "etc/logrotate.d/longhaul-backup").read_text()

    said = schedule(backup_schedule_how="cron", backup_schedule_name="a.b", backup_schedule_time="1:30")
    assert said.rc and "only names of letters" in said.output and "which is not a time of day" in said.output
    assert there() == CRON

    assert changed(schedule(backup_schedule_how="systemd")) and there() == SYSTEMD
    hosts.exec("alpha", ["/" + RUNNER])
    assert (root / "data/ran").read_text().startswith("-i|/data/hosts|longhaul.fleet.backup|/data||")
    gone = {"backup_schedule_state": "absent"}
    assert changed(schedule("--check", **gone)) and there() == SYSTEMD
    assert changed(schedule(**gone)) and there() == set()
    assert not changed(schedule(**gone))
