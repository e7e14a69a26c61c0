# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a schedule: programs accept them; they run the right command, once at a time, at low priority."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest
from ansible.plugins.filter.core import comment, quote, to_bool

ROLE = Path(__file__).resolve().parents[3] / "roles/backup"
ODD = ["-i", "/srv/my inventory's.yml", "-e", "@/srv/$jobs `x`.yml", "longhaul.fleet.backup"]

# Says what it is given and how it runs; holds on while a file is there.
PROGRAM = """\
#!/usr/bin/python3
import os, sys, time
print(repr(sys.argv[1:]), os.getcwd(), os.nice(0), os.environ.get("WORD"), flush=True)
while os.path.exists(sys.argv[0] + ".hold"):
    time.sleep(0.02)
sys.exit(int(os.path.exists(sys.argv[0] + ".fail")) * 2)
"""


def render(template: str, folder: Path, by: str = "systemd", freebsd: bool = False, **variables) -> str:
    environment = jinja2.Environment(  # as Ansible sets it
        loader=jinja2.FileSystemLoader(ROLE / "templates"), trim_blocks=True
    )
    environment.filters.update(comment=comment, quote=quote, bool=to_bool)
    given = {
        "backup_schedule_name": "longhaul-backup",
        "backup_schedule_time": "01:05",
        "backup_schedule_weekdays": [],
        "backup_schedule_jitter": 900,
        "backup_schedule_user": "root",
        "backup_schedule_environment": {"WORD": "it's $HOME"},
        "backup_schedule_nice": 7,
        "backup_schedule_io": "best-effort",
        "backup_schedule_log_keep": 8,
        "__backup_schedule_by": by,
        "__backup_schedule_freebsd": freebsd,
        "__backup_schedule_lock": str(folder / "the lock"),
        "__backup_schedule_log": str(folder / "log"),
        "__backup_schedule_folder": str(folder),
        "__backup_schedule_runner": str(folder / "runner"),
        "__backup_schedule_argv": [str(folder / "program"), *ODD],
        **variables,
    }
    return environment.get_template(template).render(ansible_managed="Ansible managed", **given)


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.fixture
def runner(tmp_path):
    """Writes the runner of a way, and gives it; beside it is the program that it runs."""

    def write(by: str, **variables) -> Path:
        for name, text in (
            ("runner", render("schedule_runner.sh.j2", tmp_path, by, **variables)),
            ("program", PROGRAM),
        ):
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        return tmp_path / "runner"

    return write


def call(path: Path, *arguments: str) -> tuple[int, str]:
    ended = subprocess.run([path, *arguments], capture_output=True, text=True, check=False, timeout=60)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize("by", ["systemd", "cron"])
def test_it_runs_what_it_shall_with_every_word_as_it_is(runner, tmp_path, by):
    rc, said = call(runner(by))
    nice = os.nice(0) + (0 if by == "systemd" else 7)  # systemd does that itself
    assert rc == 0 and f"{ODD!r} {tmp_path} {min(nice, 19)} it's $HOME\n" in said, said
    (tmp_path / "program.fail").touch()
    assert call(tmp_path / "runner")[0] == 2


@pytest.mark.parametrize("by", ["systemd", "cron"])
def test_two_runs_do_not_overlap_and_a_dead_one_holds_nothing(runner, tmp_path, by):
    path = runner(by)
    (tmp_path / "program.hold").touch()
    with subprocess.Popen([path], stdout=subprocess.PIPE, text=True) as first:
        assert "begun" in first.stdout.readline() and "/srv/my inventory" in first.stdout.readline()
        rc, said = call(path)
        assert rc == 75 and "another run is still at work" in said and "the lock" in said
        (tmp_path / "program.hold").unlink()
        first.communicate(timeout=60)
        assert first.returncode == 0
    assert call(path)[0] == 0
    with open(tmp_path / "the lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert call(path)[0] == 75


def test_cron_waits_by_chance_and_writes_to_the_log(runner, tmp_path):
    rc, said = call(runner("cron", backup_schedule_jitter=1), "scheduled")
    text = (tmp_path / "log").read_text()
    assert (rc, said) == (0, "") and "begun at" in text and "ended with 0 at" in text and "/srv/my inventory" in text
    assert "% (900 + 1)" in runner("cron").read_text() and "sleep" not in runner("systemd").read_text()
    assert "sleep" not in runner("cron", backup_schedule_jitter=0).read_text()


@pytest.mark.parametrize("io, words", [("idle", "ionice -c 3"), ("best-effort", "ionice -c 2 -n 7"), ("none", None)])
def test_how_much_it_stands_back(runner, tmp_path, io, words):
    text = runner("cron", backup_schedule_io=io).read_text()
    assert (words in text) if words else ("ionice" not in text)
    unit = render("schedule.service.j2", tmp_path, backup_schedule_io=io)
    assert ("IOSchedulingClass=" + io in unit) == (words is not None) and "Nice=7" in unit


@pytest.mark.parametrize("days", [[], ["mon", "sat"]])
def test_freebsd_runs_it_last_in_its_daily_work(runner, tmp_path, days):
    text = runner("periodic", freebsd=True).read_text()
    assert 'lockf -s -t 0 -k "$lock" "$@"' in text and "flock" not in text and "ionice" not in text
    for user in ("root", "backup"):
        script = tmp_path / "script"
        script.write_text(
            render("schedule_periodic.sh.j2", tmp_path, backup_schedule_weekdays=days, backup_schedule_user=user)
        )
        for path in (script, tmp_path / "runner"):
            subprocess.run(["sh", "-n", str(path)], check=True)
        assert ("1|6) ;;" in script.read_text()) == bool(days)
        assert ("su -m backup -c" in script.read_text()) == (user == "backup")


def test_what_failed_in_the_daily_work_must_be_looked_at(runner, tmp_path):
    runner("cron", backup_schedule_jitter=0)
    script = tmp_path / "script"
    script.write_text(render("schedule_periodic.sh.j2", tmp_path))
    script.chmod(0o755)
    assert call(script)[0] == 0
    (tmp_path / "program.fail").touch()
    rc, said = call(script)
    assert rc == 3 and "ended with 2" in said


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="cannot run here: no systemd")
@pytest.mark.parametrize("days, expected", [([], "*-*-* 01:05:00"), (["mon", "sat"], "Mon,Sat *-*-* 01:05:00")])
@pytest.mark.parametrize("io", ["none", "best-effort", "idle"])
def test_systemd_takes_the_units(runner, tmp_path, days, expected, io):
    runner("systemd")
    for kind in ("service", "timer"):
        text = render(f"schedule.{kind}.j2", tmp_path, backup_schedule_weekdays=days, backup_schedule_io=io)
        (tmp_path / f"longhaul-backup.{kind}").write_text(text)
    argv = [
        "systemd-analyze",
        "verify",
        "--man=no",
        *(str(tmp_path / f"longhaul-backup.{k}") for k in ("service", "timer")),
    ]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "longhaul-backup" not in ended.stderr, ended.stderr
    (calendar,) = re.findall(r"^OnCalendar=(.*)$", (tmp_path / "longhaul-backup.timer").read_text(), re.MULTILINE)
    argv = ["systemd-analyze", "calendar", calendar]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert f"Normalized form: {expected}" in shown, shown


@pytest.mark.parametrize("days, expected", [([], "5 1 * * *"), (["mon", "sat"], "5 1 * * mon,sat")])
def test_the_line_of_cron(tmp_path, days, expected):
    *_settings, line = lines(render("schedule_cron.j2", tmp_path, "cron", backup_schedule_weekdays=days))
    assert line == f"{expected} root {tmp_path}/runner scheduled"


def test_the_log_is_rotated(tmp_path):
    assert lines(render("schedule_logrotate.j2", tmp_path))[:3] == [f"{tmp_path}/log {{", "    weekly", "    rotate 8"]
    # newsyslog.conf(5): logfilename [owner:group] mode count size when flags
    (line,) = lines(render("schedule_newsyslog.j2", tmp_path))
    assert re.fullmatch(r"/\S+ \w+:\w+ [0-7]{3} \d+ \* \$W0D0 [BCDEGJNPRTUXYZ]+", line), line


@pytest.mark.skipif(sys.platform != "linux", reason="cannot run here: no flock")
def test_what_the_run_leaves_behind_does_not_hold_the_lock(runner, tmp_path):
    path = runner("systemd")
    (tmp_path / "program").write_text(
        "#!/usr/bin/python3\nimport subprocess\n"
        "subprocess.Popen(['sleep', '20'], stdin=-3, stdout=-3, stderr=-3, start_new_session=True)\n"
    )
    assert call(path)[0] == 0
    (tmp_path / "program").write_text(PROGRAM)
    assert call(path)[0] == 0
