# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drills: their options, when one is due, what is told of one, and what of hosts' answers is taken."""

from __future__ import annotations

import base64
import functools
import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.request import parse_scratch_load
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._model.entry import DIRECTORY, REGULAR, Entry
from ansible_collections.longhaul.fleet.plugins.module_utils._model.filters import Filters
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.manifest import About, ManifestWriter
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.units import seconds_of
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import HostFailed
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.drill import (
    DrillRecord,
    fill_in,
    find_damage,
    is_due,
    parse_choice,
    parse_scratch,
    read_drill,
    seconds_for_all,
    tell_drill,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.drill_run import RestoreDrill
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.job_problems import find_problems
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.backup.jobs import make_runs
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.workflow import JobStopped
from ansible_collections.longhaul.fleet.tests.support.driving import Transfers, live_to_end

INTO = {"host": "client", "path": "/scratch/"}
SETTINGS: Any = read_drill({"into": INTO, "every": "7d"}, "web", "vault", {})
AT = "2026-01-01T00:00:00Z"
NOW = seconds_of(AT) or 0
DAY = 86400
GOOD = DrillRecord(
    AT, "web", "/scratch/longhaul-drill-1", snapshot="2026-01-01T000000Z", files=10, bytes=1 << 20, files_total=100,
    bytes_total=1 << 30, seconds=2.0, restored=True, succeeded=AT, bytes_per_second=float(1 << 19),
    files_per_second=5.0,
)  # fmt: skip


def test_options_have_defaults():
    assert SETTINGS == (7 * DAY, (1, 200), "newest", "web", "/scratch", {}, [])
    given = {"every": "36h", "share": "1/1", "snapshot": "random", "into": {"host": "repository", "path": "/a"}}
    assert read_drill({**given, "validate": {"command": ["x"]}}, "web", "vault", {}) == (
        36 * 3600, (1, 1), "random", "vault", "/a", {"command": ["x"]}, []
    )  # fmt: skip
    assert read_drill({}, "web", "vault", {}) is None and read_drill(None, "web", "vault", {}) is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"into": None}, "no into"),
        ({"into": {"host": "db"}}, "no into"),
        ({"into": {"host": "db", "path": "a"}}, "not absolute"),
        ({"into": {"host": "db", "path": "/a/../b"}}, "'..' in it"),
        ({"every": "often"}, "every of drill is 'often'"),
        ({"every": "0d"}, "is 0"),
        ({"share": "2"}, "share '2' of drill"),
    ],
)
def test_wrong_options_are_named(wrong, words):
    with pytest.raises(Refused, match=words):
        read_drill({"into": INTO, **wrong}, "web", "vault", {})


JOB = {"name": "data", "host": "web", "src": "/srv/data", "keep": {"last": 1}}
HERE = {"host": "vault", "path": "/srv/backup"}


@pytest.mark.parametrize(
    ("drill", "words"),
    [
        ({"into": INTO}, ""),
        ({"into": {"host": "repository", "path": "/srv"}}, ""),  # beside the repository
        ({"into": {"host": "vault", "path": "/srv/backup"}}, "which is in /srv/backup"),
        ({"into": {"host": "repository", "path": "/srv/backup/drills"}}, "which is in /srv/backup"),
        ({"into": {"host": "client", "path": "/srv/data/drills"}}, "which is in /srv/data"),
        ({"into": {"host": "db", "path": "/srv/db"}}, "which is in /srv/db"),  # of another job
        ({"into": {"host": "safe", "path": "/copies/drills"}}, "which is in /copies, a repository"),  # of a copy
        ({"into": {"host": "all", "path": "/scratch"}}, "a source of a backup there. Name another host"),
        ({"into": {"host": "nowhere", "path": "/x"}}, "names nowhere"),
        ({"into": INTO, "validate": {"name": "x"}}, "validate of drill has not exactly one of"),
        ("weekly", "is no dictionary"),
    ],
)
def test_problems_of_jobs_with_drills(drill, words):
    jobs = [{**JOB, "drill": drill}, {**JOB, "name": "db", "host": "db", "src": "/srv/db"}]
    jobs.append({**JOB, "name": "all", "host": "all", "src": "/", "copies": [{"host": "safe", "path": "/copies"}]})
    jobs = [{**job, "repository": HERE} for job in jobs]
    found = find_problems(jobs, {"all": ["web", "db", "vault", "safe", "all"]})
    assert words in "".join(found) if words else found == []


CONSISTENT = [{"postgresql": {"databases": ["shop"]}}, {"mariadb": {"into": "my/dumps"}}]
LOAD = {"postgresql": {"databases": "shop"}}


@pytest.mark.parametrize(
    ("job", "load", "words"),
    [
        ({}, [LOAD, {"mariadb": {}}], ""),
        ({}, [{"oracle": {}}], "give one of postgresql, mariadb"),
        ({}, [{"mariadb": {}}, {"mariadb": {}}], "one kind twice"),
        ({"consistent": CONSISTENT[:1]}, [{"mariadb": {}}], "names mariadb, and consistent of the job has no mariadb"),
        ({"consistent": [*CONSISTENT, {"mariadb": {"into": "b"}}]}, [{"mariadb": {}}], "has 2 entries mariadb"),
        ({"consistent": [{"oracle": {}}]}, [LOAD], "an entry of consistent has oracle"),
        ({}, [{"postgresql": {"databases": ["shpo"]}}], "names the database shpo of postgresql, of which consistent"),
    ],
)
def test_dumps_to_load_are_those_of_the_job(job, load, words):
    written = {**JOB, "repository": HERE, "consistent": CONSISTENT, "drill": {"into": INTO, "load": load}, **job}
    found = find_problems([written], {"all": ["web", "vault"]})
    assert words in "".join(found) if words else found == []
    if not words:
        settings: Any = make_runs([written], {"all": ["web"]})[0]["drill"]
        first, second = settings.load
        assert (first.folder, second.folder) == (".longhaul-dumps/postgresql", "my/dumps")
        assert (first.kind, first.databases, second.kind, second.databases) == ("postgresql", ["shop"], "mariadb", ())
        # A tree of several paths has a folder for each.
        (run,) = make_runs([{**written, "src": ["/srv/data", "/srv/more"]}], {"all": ["web"]})
        settings = run["drill"]
        assert settings.load[0].folder == "data/.longhaul-dumps/postgresql"


def test_no_dump_of_a_client_runs_where_snapshots_are():
    drill = {"load": [LOAD], "into": {"host": "repository", "path": "/scratch"}}
    job = {**JOB, "repository": HERE, "consistent": CONSISTENT, "drill": drill}
    (problem,) = find_problems([job], {"all": ["web", "vault"]})
    assert "dumps of web loaded on vault, where snapshots are" in problem
    assert find_problems([{**job, "trust": "full"}], {"all": ["web", "vault"]}) == []
    on_copy = {**job, "copies": [{"host": "safe", "path": "/copies"}]}
    on_copy["drill"] = {**drill, "into": {"host": "safe", "path": "/scratch"}}
    assert "loaded on safe" in "".join(find_problems([on_copy], {"all": ["web", "vault", "safe"]}))


@pytest.mark.parametrize(
    ("age", "changes", "due"),
    [
        (6 * DAY, {}, False),
        (7 * DAY - 1800, {}, True),  # a run of a schedule may be early
        (7 * DAY - 7200, {}, False),
        (DAY, {"failure": "it failed"}, True),
        (-DAY, {}, True),  # the clock was wrong
    ],
)
def test_when_a_drill_is_due(age, changes, due):
    assert is_due(SETTINGS, replace(GOOD, **changes), NOW + age) is due
    assert is_due(SETTINGS, None, NOW) and is_due(SETTINGS, GOOD, NOW, forced=True)
    assert not is_due(None, None, NOW, forced=True)


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 2048.0),
        ({"files_total": 100_000}, 20_000.0),  # many small files
        ({"bytes_per_second": None}, 20.0),
        ({"bytes_per_second": None, "files_per_second": None}, None),
        ({"files_total": 0}, None),
    ],
)
def test_how_long_everything_would_take(changes, seconds):
    assert seconds_for_all(replace(GOOD, **changes)) == seconds


def test_a_drill_that_failed_keeps_what_the_last_good_one_found():
    later = DrillRecord("2026-01-08T00:00:00Z", "web", "/scratch/longhaul-drill-2")
    later.begin_after(GOOD)
    later.failure = "no room"
    assert later.succeeded == AT and later.bytes_per_second == GOOD.bytes_per_second and not later.has_succeeded
    later.failure, later.files, later.bytes, later.seconds = "", 8, 1024, 2.0
    later.succeed()
    assert later.has_succeeded and (later.bytes_per_second, later.files_per_second) == (512.0, 4.0)


def test_what_is_told():
    assert tell_drill(GOOD) == (
        "drill: restored 10 files, 1.0 MiB, of 2026-01-01T000000Z to web:/scratch/longhaul-drill-1 in 2.0 s, as the "
        "manifest says; restoring the whole job (100 files, 1.0 GiB) would take about 34m08s at this rate"
    )
    assert tell_drill(replace(GOOD, failure="no room")) == "drill failed: no room"


def test_the_folder_is_filled_in():
    hook = {"command": ["check", "--in={folder}"], "name": "{folder}"}
    assert fill_in(hook, "/s/data", {}) == {"command": ["check", "--in=/s/data"], "name": "{folder}"}
    module = {"module": "stat", "args": {"path": "{folder}/a", "follow": True}}
    assert fill_in(module, "/s", {}) == {"module": "stat", "args": {"path": "/s/a", "follow": True}}
    words = {"command": ["check", "-h{postgresql} {mariadb}", "{folder}"]}
    filled = fill_in(words, "/s{postgresql}", {"postgresql": "/run/pg"})
    assert filled["command"] == ["check", "-h/run/pg {mariadb}", "/s{postgresql}"]
    nested = {"module": "x", "args": {"argv": ["check", "{folder}"], "query": {"in": "{folder}/b"}}}
    assert fill_in(nested, "/s", {})["args"] == {"argv": ["check", "/s"], "query": {"in": "/s/b"}}


def packed(*entries: Entry) -> str:
    file = io.BytesIO()
    writer = ManifestWriter(file, About("sha256", "web", "data"))
    for entry in entries:
        writer.add(entry, bytes(32) if entry.type == REGULAR else b"")
    writer.finish({"entries": len(entries)})
    return base64.b64encode(file.getvalue()).decode()


def entry(path: bytes, kind: str = REGULAR) -> Entry:
    return Entry(path, kind, 0o644, 0, 0, 5 if kind == REGULAR else 0, 1, 1, 1, 1, 1, 0, 8)


CHOICE = {
    "snapshot": "2026-01-01T000000Z", "files": 1, "bytes": 5, "files_total": 9, "bytes_total": 50, "is_cut": False,
    "manifest": packed(entry(b"", DIRECTORY), entry(b"a*\\", DIRECTORY), entry(b"a*\\/[b]"), entry(b"c\\d")),
}  # fmt: skip


def test_just_the_chosen_files_are_transferred():
    chosen = parse_choice(CHOICE)
    filters = Filters.parse(chosen.rules)
    assert (chosen.snapshot, chosen.files, chosen.bytes_total) == ("2026-01-01T000000Z", 1, 50)
    sent = {
        path: filters.allows(path, is_dir)
        for path, is_dir in [
            (b"a*\\", True),
            (b"a*\\/[b]", False),
            (b"a*\\/b", False),
            (b"ax\\", True),
            (b"c\\d", False),
        ]
    }
    assert sent == {b"a*\\": True, b"a*\\/[b]": True, b"a*\\/b": False, b"ax\\": False, b"c\\d": True}


@pytest.mark.parametrize(
    "wrong",
    [
        {"snapshot": "../2026-01-01T000000Z"},
        {"snapshot": "aside-2026-01-01T000000Z"},
        {"files": -1},
        {"bytes": True},
        {"bytes_total": 1 << 70},
        {"is_cut": 1},
        {"manifest": "no base64"},
        {"manifest": "\N{SNOWMAN}"},
        {"manifest": base64.b64encode(b"LHSNAP1\nx").decode()},
        {"manifest": packed(entry(b"", DIRECTORY), entry(b"\xff"))},
    ],
)
def test_other_answers_are_no_choice(wrong):
    with pytest.raises(WrongShape):
        parse_choice({**CHOICE, **wrong})


def test_answers_about_the_scratch_folder():
    assert parse_scratch({"room": 5, "entries": 6, "removed": ["a", "b"]}) == (5, 6, 2)
    for wrong in ({"room": -1}, {"entries": "6"}, {"removed": 1}, {"room": None}):
        with pytest.raises(WrongShape):
            parse_scratch({"room": 5, "entries": 6, "removed": [], **wrong})
    assert find_damage({"problems": [], "problems_total": 0}) == ""
    problem = {"path": "a\x1b", "detail": "its contents differ", "intact_in": []}
    told = find_damage({"problems": [problem], "problems_total": 8})
    assert "(8 problems): a\\x1b: its contents differ; and 3 more" in told


class Bench(Transfers):
    """The hosts of a drill, the answers to its steps, and how its transfer ends."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "look": {"room": 100, "entries": 9, "removed": []},
            "make": {"room": 100, "entries": 9, "removed": ["longhaul-drill-old"]},
            "choose": CHOICE,
            "compare": {"entries": 3, "problems": [], "problems_total": 0},
            "add": {},
            "remove": {"removed": True},
            "start": {"state": "serving", "alive": True, "progress": {"files_done": 1}},
            "poll": {"state": "serving", "alive": True},
            "stop": {"state": "finished", "alive": False},
            "clear": {},
        }
        self.transfers = [{"phases": {"transfer": 2.5}, "duration": 4.0}]
        self.asked: list[tuple[str, str, Any]] = []
        self.job: Any = None
        self.said: list[str] = []
        self.open = 0

    def runner(self, name: str) -> Any:
        self.open += 1
        ask = functools.partial(self._answer, name)
        return SimpleNamespace(name=name, run=lambda *steps: [ask(step) for step in steps], close=self._close)

    def _close(self) -> None:
        self.open -= 1

    def _answer(self, name: str, step: Any) -> Any:
        act = step.get("act") or {"choose_share": "choose"}.get(step["do"], step["do"])
        self.asked.append((name, act, step))
        if isinstance(self.answers[act], Exception):
            raise self.answers[act]
        return self.answers[act]

    def transfer(self, job: Any, _hosts: object) -> Any:
        self.job = job
        return self

    def begin(self) -> Any:
        return self

    def practise(self, check: bool = False, **options: Any) -> tuple[DrillRecord, str]:
        """Make a drill without a validation, or predict it; return its record, and why it failed."""
        job = {**JOB, "repository": HERE, "bwlimit": "5M", "consistent": CONSISTENT}
        (run,) = make_runs([{**job, "drill": {"into": INTO, **options}}], {"all": ["web"]})
        settings: Any = run["drill"]
        said: list[str] = []
        one = RestoreDrill(run, settings, ["/srv/data"], self.runner, self.transfer, (HostFailed,), said.append)
        record = one.new_record(AT, None)
        failure = ""
        try:
            for step in (one.predict,) if check else (one.restore, one.remove):
                live_to_end(step(record), [])
        except JobStopped as stopped:
            failure = str(stopped)
        assert self.open == 0
        self.said = said
        return record, failure

    @property
    def steps(self) -> list[tuple[str, str]]:
        return [(name, act) for name, act, _step in self.asked]


WHOLE = [("web", "make"), ("vault", "choose"), ("web", "compare"), ("web", "remove")]


def test_the_steps_of_a_drill():
    bench = Bench()
    record, failure = bench.practise()
    assert bench.said == ["web/data: removed 1 scratch folder of earlier drills"]
    assert not failure and bench.steps == WHOLE and record.restored and not record.kept and record.seconds == 2.5
    made, chosen, compared = (step for _name, _act, step in bench.asked[:3])
    assert record.path == f"/scratch/{made['name']}" and made["avoid"] == ["/srv/data"] and len(made["owner"]) == 32
    assert (chosen["room"], chosen["entries"], chosen["seed"]) == (100, 9, record.seed)
    assert compared["manifest"] == CHOICE["manifest"]
    assert (bench.job["src"], bench.job["dest"]) == (
        "/srv/backup/web/data/2026-01-01T000000Z/data/",
        f"{record.path}/data",
    )
    assert bench.job["bwlimit"] == "5M" and bench.job["filter"][-1] == "- *" and "delete" not in bench.job
    other = Bench()
    assert other.practise()[0].path != record.path, "nobody can guess it"


def test_dumps_are_loaded_into_servers_of_their_own():
    bench = Bench()
    record, failure = bench.practise(load=[LOAD, {"mariadb": {"user": "mysql"}}])
    load, end = ["add", "stop", "clear", "start"], ["poll", "stop", "clear"] * 2  # of both kinds, whatever is loaded
    acts = [*end, "make", "choose", "compare", *load, *load, *end, "remove", "remove", "remove"]
    assert not failure and [act for _name, act in bench.steps] == acts
    assert (record.databases, record.restored, record.kept) == (2, True, False)
    first, second = (step for _name, act, step in bench.asked if act == "start")
    asked = [parse_scratch_load(step["request"]["load"]) for step in (first, second)]
    assert [one.kind for one in asked] == ["postgresql", "mariadb"] and first["id"] != second["id"]
    assert asked[0].databases == ["shop"] and asked[0].folder == f"{record.path}/data/.longhaul-dumps/postgresql"
    assert (asked[1].databases, asked[1].user, asked[1].folder) == ([], "mysql", f"{record.path}/data/my/dumps")
    made = [step["name"] for _name, act, step in bench.asked if act in ("make", "add")]
    assert [step["name"] for _name, act, step in bench.asked if act == "remove"] == made[::-1]
    assert [f"/scratch/{name}" for name in made[1:]] == [one.place for one in asked]
    assert bench.asked[7][2]["always"] == [".longhaul-dumps/postgresql", "my/dumps"]
    assert tell_drill(replace(GOOD, databases=2, load_seconds=1.5)).count("says, 2 databases loaded in 1.5 s;") == 1
    bench.practise(check=True, load=[LOAD])
    assert bench.said[-1].endswith("which has room for 100 B, and would load the dumps of postgresql there")


@pytest.mark.parametrize(
    ("act", "answer", "words"),
    [
        ("add", {"refused": "it is full"}, "it is full. The restored files are kept in"),
        (
            "start",
            {"state": "failed", "alive": False, "failure": "role app\nis missing"},
            "the dumps of 2026-01-01T000000Z cannot be loaded on web: role app is missing. The restored files",
        ),
        ("start", HostFailed("no line", "web"), "no line"),
        ("stop", {"state": "failed", "alive": False, "failure": "it is\nkilled"}, "had not ended well: it is killed"),
        ("poll", {"state": "none", "alive": False}, "it was gone before"),
    ],
)
def test_a_drill_whose_dumps_cannot_be_loaded_fails(act, answer, words):
    bench = Bench()
    bench.answers[act] = answer
    record, failure = bench.practise(load=[LOAD])
    assert words in failure and record.restored == (act in ("stop", "poll")) and record.kept != record.restored
    assert record.restored or bench.steps[-3:] == [("web", "poll"), ("web", "stop"), ("web", "clear")]


def test_check_mode_looks_at_the_place_alone():
    bench = Bench()
    assert bench.practise(check=True)[1] == "" and bench.steps == [("web", "look")]
    assert bench.said == ["web/data: would practise a restore to web:/scratch, which has room for 100 B"]
    bench.answers["look"] = {"refused": "/scratch cannot be used for drills"}
    assert "/scratch cannot be used for drills" in bench.practise(check=True)[1]


@pytest.mark.parametrize(
    ("act", "answer", "words", "steps", "kept"),
    [
        ("make", {"refused": "it is in a repository"}, "it is in a repository", WHOLE[:1], False),
        ("choose", {"refused": "no room"}, "vault: no room", [*WHOLE[:2], WHOLE[3]], False),
        ("choose", {**CHOICE, "snapshot": "/etc"}, "cannot be read", [*WHOLE[:2], WHOLE[3]], False),
        ("transfer", HostFailed("no line", "web"), "no line", [*WHOLE[:2], WHOLE[3]], False),
        (
            "compare",
            {"entries": 1, "problems": [{"path": "a", "detail": "it is torn", "intact_in": []}], "problems_total": 1},
            "a: it is torn. Check the snapshots",
            WHOLE[:3],
            True,
        ),
        ("remove", {"refused": "a file system is mounted there"}, "is left there until", WHOLE, True),
    ],
)
def test_a_drill_that_fails_leaves_only_what_is_to_be_looked_at(act, answer, words, steps, kept):
    bench = Bench()
    if act == "transfer":
        bench.transfers = [answer]
    else:
        bench.answers[act] = answer
    record, failure = bench.practise()
    assert words in failure and bench.steps == steps and record.kept is kept
