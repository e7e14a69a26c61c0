# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The alert rules fire when they should, and name metrics that there are. Needs promtool of Debian's prometheus."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.rows import State
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.health import judge
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.metrics import write_metrics
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.migrate.metrics import (
    MigrationFigures,
    write_migration_metrics,
)

REPOSITORY = Path(__file__).resolve().parents[3]
RULES = REPOSITORY / "extras/prometheus/longhaul.rules.yml"
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    not PROMTOOL, reason="cannot run here: promtool is not installed: apt-get install prometheus"
)
MIGRATION = '{job="data",source="old",dest="new"}'
BACKUP = '{host="web1",job="data",repository="vault:/srv/backup"}'
COPY = BACKUP[:-1] + ',copy="vault2:/srv/backup"}'
FIGURES = MigrationFigures(
    "data", "old", "new", "seed", State.RUNNING, 1, 2, 3.0, 4, 5, 6, 7.0, 8, verified=True, verified_at=9, failed_at=10
)
RUN = {
    "id": "web1/data", "name": "data", "host": "web1", "repository": {"host": "vault", "path": "/srv/backup"},
    "stale_after": None,
}  # fmt: skip


def labelled(labels: str, **more: str) -> str:
    return labels[:-1] + "".join(f',{name}="{value}"' for name, value in more.items()) + "}"


def promtool(*words: str, **options: str) -> None:
    ended = subprocess.run([PROMTOOL or "", *words], capture_output=True, text=True, check=False, **options)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def rules() -> list[dict[str, str]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_every_metric_of_a_rule_is_written():
    written = write_migration_metrics([FIGURES], now=1, active=True)
    source = (REPOSITORY / "plugins/plugin_utils/jobs/backup/metrics.py").read_text()
    backup = {f"longhaul_backup_{name}" for name in re.findall(r'^ +\(?"(\w+)",', source, re.MULTILINE)}
    known = {*re.findall(r"^# TYPE (\w+)", written, re.MULTILINE), *backup, "longhaul_backup_state"}
    used = {name for rule in rules() for name in re.findall(r"longhaul_\w+", rule["expr"])}
    assert used and used - known == set()


@needs_promtool
def test_promtool_finds_no_fault_in_the_rules_and_in_the_metrics():
    promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    promtool("check", "metrics", input=write_migration_metrics([FIGURES], now=1, active=True))
    promtool("check", "metrics", input=write_metrics(judge([RUN], [], ["web1/data"], [], time.time())))


# Each rule: the series of its metrics, by the minute; when it is asked; whether it fires then.
CASES = [
    ("LonghaulMigrationFailed", {"migrate_failed" + MIGRATION: "1x10"}, "5m", True),
    ("LonghaulMigrationFailed", {"migrate_failed" + MIGRATION: "1 0x10"}, "5m", False),
    ("LonghaulMigrationSourceStopped", {"migrate_stopped_timestamp_seconds" + MIGRATION: "0x90"}, "70m", True),
    ("LonghaulMigrationSourceStopped", {"migrate_stopped_timestamp_seconds" + MIGRATION: "0x90"}, "50m", False),
    *(
        (
            "LonghaulMigrationStalled",
            {
                "migrate_state" + labelled(MIGRATION, state="running"): "1x60",
                "migrate_rate_bytes_per_second" + MIGRATION: f"{rate}x60",
                "migrate_left_bytes" + MIGRATION: f"{left}x60",
            },
            "30m",
            fires,
        )
        for rate, left, fires in ((0, 5, True), (1, 5, False), (0, 0, False))
    ),
    *(
        ("LonghaulMigrationRunDied", {"migrate_active": one, "migrate_written_timestamp_seconds": "0x90"}, at, fires)
        for one, at, fires in (("1x90", "40m", True), ("1x90", "20m", False), ("0x90", "40m", False))
    ),
    ("LonghaulMigrationNotCompared", {"migrate_state" + labelled(MIGRATION, state="switched"): "1x1600"}, "25h", True),
    ("LonghaulMigrationNotCompared", {"migrate_state" + labelled(MIGRATION, state="switched"): "1x1600"}, "23h", False),
    ("LonghaulBackupFailed", {"backup_state" + labelled(BACKUP, state="aside"): "1x20"}, "10m", True),
    ("LonghaulBackupFailed", {"backup_state" + labelled(BACKUP, state="ok"): "1x20"}, "10m", False),
    ("LonghaulBackupTooOld", {"backup_newest_timestamp_seconds" + BACKUP: "0x3000"}, "49h", True),
    ("LonghaulBackupTooOld", {"backup_newest_timestamp_seconds" + BACKUP: "0x3000"}, "47h", False),
    ("LonghaulBackupNever", {"backup_state" + labelled(BACKUP, state="never"): "1x3000"}, "49h", True),
    ("LonghaulBackupNever", {"backup_state" + labelled(BACKUP, state="never"): "1x3000"}, "47h", False),
    ("LonghaulRestoreNotPractised", {"backup_drill_success" + BACKUP: "0x20"}, "10m", True),
    ("LonghaulRestoreNotPractised", {"backup_drill_success" + BACKUP: "1x20"}, "10m", False),
    ("LonghaulRestoreNotPractised", {"backup_drill_timestamp_seconds" + BACKUP: "0x22000"}, "361h", True),
    ("LonghaulBackupCopyFailing", {"backup_copy_healthy" + COPY: "0x90"}, "70m", True),
    ("LonghaulBackupCopyFailing", {"backup_copy_healthy" + COPY: "0x90"}, "50m", False),
    ("LonghaulBackupCopyFailing", {"backup_copy_healthy" + COPY: "1x90"}, "70m", False),
    ("LonghaulBackupCopyTooOld", {"backup_copy_newest_timestamp_seconds" + COPY: "0x5000"}, "73h", True),
    ("LonghaulBackupCopyTooOld", {"backup_copy_newest_timestamp_seconds" + COPY: "0x5000"}, "71h", False),
    *(
        ("LonghaulBackupShrank", {"backup_gone" + BACKUP: f"{gone}x9", "backup_entries" + BACKUP: "10x9"}, "5m", fires)
        for gone, fires in ((30, True), (3, False))
    ),
]  # fmt: skip


def test_every_rule_has_a_case_in_which_it_fires():
    assert {name for name, _series, _at, fires in CASES if fires} == {rule["alert"] for rule in rules()}


@needs_promtool
def test_each_rule_fires_when_it_should(tmp_path):
    by_name = {rule["alert"]: rule for rule in rules()}
    tests: dict[str, list[object]] = {"1m": [], "30m": []}  # by how often rules are evaluated
    for name, series, at, fires in CASES:
        labels = dict(re.findall(r'(\w+)="([^"]*)"', " ".join(series)))
        alerts = [{"exp_labels": {**labels, **by_name[name]["labels"]}}] if fires else []
        tests["30m" if at.endswith("h") else "1m"].append(
            {
                "interval": "1m",
                "input_series": [{"series": f"longhaul_{one}", "values": values} for one, values in series.items()],
                "promql_expr_test": [],
                "alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": alerts}],
            }
        )
    # What annotations say is not compared, so the copy that is tested has none.
    copy = yaml.safe_load(RULES.read_text())
    for group in copy["groups"]:
        for rule in group["rules"]:
            del rule["annotations"]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(copy))
    for interval, some in tests.items():
        written = {"rule_files": ["rules.yml"], "evaluation_interval": interval, "tests": some}
        (tmp_path / "tests.yml").write_text(yaml.safe_dump(written))
        promtool("test", "rules", str(tmp_path / "tests.yml"))
