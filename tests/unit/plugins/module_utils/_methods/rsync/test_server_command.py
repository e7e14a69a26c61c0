# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which commands of the peer are served, and as what: those that follow from the plan, and no others."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.subprocesses import environment
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.argv import Far, Run, build_argv
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.server_command import (
    CommandRefused,
    server_argv,
    user_variables,
)
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.user_options import KNOWN, REFUSED
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import ALL, settings

FOLDERS = {
    "/longhaul/tmp": b"/da\xffta/tmp",
    "/longhaul/partial": b"/da\xffta/partial",
    "/longhaul/link/0": b"/backup/old one",
    "/longhaul/link/1": b"/backup/2",
    "/longhaul/list/only": b"/job/only",
    "/longhaul/list/directories": b"/job/directories",
    "/longhaul/list/shard-0": b"/job/shard-0",
    "/longhaul/list/shard-1": b"/job/shard-1",
}
BUNDLE = "-logDtpAXHSre.iLsfxCIvu"
OWNERS = {"users": [[1001, 1002], [1002, 1001]], "groups": [[5, 6]]}
LINKED = {"link_dest": ["/backup/old one", "/backup/2"]}


def serve(command: str, side: str = "dest", **changes: object) -> list[bytes]:
    return server_argv(command, side, FOLDERS, settings(**changes))


@functools.lru_cache(maxsize=None)
def _sent(argv: tuple[str, ...]) -> str:
    """Return what the real rsync sends to a remote shell."""
    with tempfile.TemporaryDirectory() as folder:
        shell = Path(folder, "shell.py")
        said = Path(folder, "said")
        shell.write_text(f"import json, sys; open({str(said)!r}, 'w').write(json.dumps(sys.argv[2:]))")
        words = [word.replace("SHELL", f"{sys.executable} {shell}") for word in argv]
        subprocess.run(words, capture_output=True, check=False, env=environment(user_variables()))
        assert said.exists(), subprocess.run(words, capture_output=True, check=False).stderr
        return " ".join(json.loads(said.read_text()))


def sent(side: str, run: Run, **changes: object) -> str:
    """Return the command that an honest driving end asks the serving end (``side``) for."""
    other = {"source": "dest", "dest": "source"}[side]
    argv = build_argv(settings(**changes), other, b"/tmp", Far(address="peer:./", shell="SHELL"), run)
    return _sent(tuple(argv))


def runs(side: str, plan: dict, names: str) -> list[Run]:
    """Return the runs that make up a transfer, as rsync_passes makes them."""
    far = side == "source"
    delete = bool(plan.get("delete")) and plan.get("only") is None
    whole = Run(files_from=":/longhaul/list/only" if far else names) if plan.get("only") else Run()
    if plan.get("check"):
        return [Run(**dict(vars(whole), dry=True, delete=delete))]
    found = [whole]
    if plan.get("streams", 1) > 1 and plan.get("only") is None:
        folder = ":/longhaul/list/{}" if far else names
        found += [Run(files_from=folder.format("directories"), directories_only=True), Run(again=True)]
        found += [Run(files_from=folder.format("shard-1"), shares=shares) for shares in range(1, plan["streams"] + 1)]
    if delete:
        limit = plan.get("max_delete")
        found += [Run(delete=True, dry=True, again=True), Run(delete=True, max_delete=limit, again=True)]
    return found


PLANS = [
    {},
    {"preserve": []},
    *({"preserve": [word]} for word in ALL),
    *({"preserve": [other for other in ALL if other != word]} for word in ALL),
    {"preserve": ["specials"]},
    {"preserve": [*(word for word in ALL if word != "devices"), "specials"], "streams": 2, "delete": True},
    {"check": True},
    {"check": True, "delete": True, "max_delete": 7},
    {"delete": True},
    {"delete": True, "max_delete": 0},
    {"delete": True, "max_delete": 7, "streams": 2},
    {"streams": 2},
    {"streams": 2, "bwlimit": 10_000_000, **LINKED},
    {"only": "a file's name [1]"},
    {"only": "b", "check": True},
    {"only": "b", "delete": True, "streams": 4},
    {"checksum": True},
    {"numeric_ids": False},
    {"owner_map": OWNERS},
    {"owner_map": OWNERS, "numeric_ids": False},
    {"owner_map": OWNERS, "streams": 2, "delete": True},
    {"owner_map": OWNERS, "preserve": ["group", "acls"]},
    {"owner_map": {"groups": OWNERS["groups"]}, "only": "b"},
    {"one_file_system": True},
    {"partial": False},
    {"inplace": True},
    {"inplace": True, "preserve": ["times"]},
    {"delta": "none"},
    {"delta": "none", "inplace": True},
    {"timeout": 0},
    {"bwlimit": 5000},
    *(
        {"compress": {"algorithm": name, "level": level}}
        for name in ("zlib", "zlibx", "zstd", "lz4")
        for level in (None, 3)
    ),
    {"rules": ["- *.tmp", "P /keep"]},
    LINKED,
    {**LINKED, "delete": True, "max_delete": 3},
]
VALUES = {
    "--block-size": "4096",
    "--checksum-seed": "7",
    "--checksum-choice": "xxh64",
    "--compress-threads": "2",
    "--skip-compress": "gz/jpg",
    "--max-alloc": "2G",
    "--outbuf": "L",
    "--sockopts": "SO_SNDBUF=1048576",
    "--protocol": "31",
    "--max-size": "10M",
    "--min-size": "1.5KB-1",
    "--modify-window": "2",
    "--chmod": "D755,F644",
    "--chown": "root:daemon",
    "--usermap": "*:root",
    "--groupmap": "*:root",
    "--iconv": "utf8,iso88591",
}
USER = [
    f"{name}={VALUES[name]}" if rule.value else name
    for name, rule in sorted(KNOWN.items())
    if name.startswith("--") and rule.use != REFUSED and (not rule.value or name in VALUES)
]


@pytest.mark.parametrize("side", ["source", "dest"])
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_an_honest_end_is_served(plan, side, tmp_path):
    names = tmp_path / "names"
    names.write_bytes(b"./a\0")
    for run in runs(side, plan, str(names)):
        command = sent(side, run, **plan)
        served = serve(command, side, **plan)
        assert served[:2] == [b"rsync", b"--server"] and served[-2:] == [b".", b"./"], command
        assert not [word for word in served if b"/longhaul/" in word]


@pytest.mark.parametrize("side", ["source", "dest"])
@pytest.mark.parametrize("number, option", enumerate(USER))
def test_an_honest_end_is_served_with_each_option_of_the_user(number, option, side, tmp_path):
    names = tmp_path / "names"
    names.write_bytes(b"./a\0")
    plans = ({"delete": True}, {"streams": 2}, {"only": "a"}, {"preserve": []}, {"check": True})
    for plan in ({"preserve": ["specials"]}, plans[number % len(plans)]):
        plan = {**plan, "rsync_opts": [option]}
        for run in runs(side, plan, str(names)):
            serve(sent(side, run, **plan), side, **plan)


@pytest.mark.parametrize("side", ["source", "dest"])
@pytest.mark.parametrize("option", USER)
def test_an_option_of_nobody_is_refused(option, side):
    """The peer may not use options that the user did not set, even if the user could have set them."""
    honest, asked = (sent(side, Run(), rsync_opts=more, preserve=["times"]) for more in ([], [option]))
    if sorted(asked.split()) == sorted(honest.split()):
        return  # the server is told nothing of it
    if set(asked.split()) - set(honest.split()) <= {"-ltre.LsfxCIvu", "--sender"} or option.startswith("--no-"):
        return  # less than what was planned
    if option.startswith("--protocol"):
        return
    with pytest.raises(CommandRefused, match="plan"):
        serve(asked, side, preserve=["times"])


def test_tokens_become_own_folders():
    found = serve(
        f"rsync --server {BUNDLE} --partial-dir /longhaul/partial --temp-dir=/longhaul/tmp "
        "--link-dest /longhaul/link/0 --link-dest /longhaul/link/1 . ./",
        **LINKED,
    )
    assert found == [
        *(b"rsync", b"--server", BUNDLE.encode()),
        *(b"--partial-dir", b"/da\xffta/partial", b"--temp-dir", b"/da\xffta/tmp"),
        *(b"--link-dest", b"/backup/old one", b"--link-dest", b"/backup/2", b".", b"./"),
    ]


def test_a_sender_is_served_by_the_source_only():
    options = f"{BUNDLE.replace('r', 'dR')} --files-from /longhaul/list/only --from0"
    command = f"rsync --server --sender {options} . ./"
    assert serve(command, "source", only="x")[-5:] == [b"--files-from", b"/job/only", b"--from0", b".", b"./"]
    with pytest.raises(CommandRefused, match="dest"):
        serve(command, only="x")
    with pytest.raises(CommandRefused, match="source"):
        serve(f"rsync --server {BUNDLE} . ./", "source")


HARMLESS = {"preserve": ["times"], "partial": False}


@pytest.mark.parametrize("side", ["source", "dest"])
@pytest.mark.parametrize(
    "more",
    [
        *(f"-{letter}" for letter in "bqsnKLkogpDAXHSEUNuIcWyzxmOJCvdR"),
        *("-rr", "-ll", "-tt", "-XX", "-M--fake-super", "-@0", "-@-2", "-B700"),
        *("--delete", "--delete-before", "--delete-during", "--delete-delay", "--delete-after", "--delete-excluded"),
        *("--force", "--inplace", "--append", "--no-W", "--partial", "--delay-updates", "--ignore-errors"),
        *("--copy-unsafe-links", "--safe-links", "--super", "--fake-super", "--existing", "--ignore-existing"),
        *("--max-alloc=0", "--max-alloc=1G", "--max-delete=-1", "--max-delete=5", "--usermap=*:root", "--groupmap=*:0"),
        *("--temp-dir /longhaul/tmp", "--partial-dir /longhaul/partial", "--link-dest /longhaul/link/0"),
        *("--temp-dir /etc", "--temp-dir", "--partial-dir=/longhaul/tmp", "--backup-dir /x", "--compare-dest ./x"),
        *(
            "--copy-dest /longhaul/link/0",
            "--files-from=-",
            "--files-from /etc/shadow",
            "--files-from=/longhaul/list/only",
        ),
        *("--files-from /longhaul/list/shard-0", "--from0", "--no-implied-dirs", "--numeric-ids --numeric-idz"),
        *("--remove-source-files", "--remove-sent-files", "--write-devices", "--copy-devices", "--only-write-batch=X"),
        *(
            "--daemon",
            "--config=/x",
            "--log-file=/etc/passwd",
            "--rsync-path=sh",
            "--mkpath",
            "--iconv=utf8",
            "--sender",
        ),
        *(
            "--secluded-args",
            "--protect-args",
            "--debug=all",
            "--info=all4",
            "--msgs2stderr",
            "--size-only",
            "--specials",
        ),
        *("--compress-level=9", "--compress-choice=zstd", "--old-compress", "--bwlimit=1", "--timeout=1", "--no-r"),
        *(
            "--checksum-choice=none",
            "--checksum-seed=1",
            "--max-size=1",
            "--skip-compress=x",
            "--list-only",
            "--relative",
        ),
        *(
            "--insecure-links",
            "--confine-root=/",
            "--trust-sender",
            "-e 'sh -c id'",
            "-e.i/x",
            "'un closed",
            "../",
            "/etc ./",
        ),
    ],
)
def test_what_the_plan_has_not_is_refused(more, side):
    sender = "--sender " if side == "source" else ""
    command = f"rsync --server {sender}-ltre.iLsfxCIvu {{}} --numeric-ids --timeout=15 . ./"
    plain = serve(command.format(""), side, **HARMLESS)
    if more == "-n":  # a trial of what is planned does nothing
        return
    with pytest.raises(CommandRefused):
        serve(command.format(more), side, **HARMLESS)
    assert plain == serve(command.format(""), side, **HARMLESS)


@pytest.mark.parametrize(
    ("words", "plan"),
    [
        ("-ltre.iLsfxCIvu", {"check": True}),
        ("-ltre.iLsfxCIvu --delete-after --force", {"delete": True, "max_delete": 5}),
        ("-ltre.iLsfxCIvu --delete-after --force --max-delete=50", {"delete": True, "max_delete": 5}),
        ("-ltre.iLsfxCIvu", {"only": "a"}),
        ("-ltdRe.iLsfxCIvu --delete-after --no-implied-dirs", {"only": "a", "delete": True}),
        ("-lte.LsfxCIvu", {"only": "a"}),
        ("-ltdRe.LsfxCIvu --no-implied-dirs", {}),
        ("-ltre.iLsfxCIvu", {"rsync_opts": ["--existing"]}),
        ("-ltre.iLsfxCIvu", {"rsync_opts": ["--update"]}),
        ("-ltre.iLsfxCIvu --inplace --temp-dir /longhaul/tmp", {"inplace": True, "partial": True}),
        ("-ltre.iLsfxCIvu --inplace --link-dest /longhaul/link/0", {"inplace": True, **LINKED}),
        ("-ltre.iLsfxCIvu --inplace", {"inplace": True, **LINKED}),
        ("-ltrne.iLsfxCIvu --temp-dir /longhaul/tmp", {"check": True, "partial": True}),
        ("-lotre.iLsfxCIvu --numeric-ids", {"owner_map": OWNERS, "preserve": ["owner", "times"]}),
        ("-lotre.iLsfxCIvu --usermap=1001:0,1002:1001", {"owner_map": OWNERS, "preserve": ["owner", "times"]}),
    ],
)
def test_what_the_plan_has_may_not_be_left_out_or_stretched(words, plan):
    with pytest.raises(CommandRefused):
        serve(f"rsync --server {words} . ./", **{**HARMLESS, **plan})


STAGED = ("--temp-dir", "--partial-dir")
FOLDER_OPTIONS = (*STAGED, "--link-dest", "--compare-dest", "--copy-dest", "--backup-dir", "--files-from", "--log-file")
FOLDERS_OF_THE_PLAN = (
    "--temp-dir /longhaul/tmp --partial-dir=/longhaul/partial --link-dest /longhaul/link/0 --link-dest=/longhaul/link/1"
)


@pytest.mark.parametrize("form", ["{}={}", "{} {}", "{}='{}'", "{} '{}'"])
@pytest.mark.parametrize(
    ("option", "place"),
    [
        *((option, place) for option in FOLDER_OPTIONS for place in ("/etc", "/backup/2", "tmp", "../x", "")),
        *(
            (option, place)
            for option in STAGED
            for place in ("/longhaul/link/0", "/longhaul/tmp/", "/longhaul/tmp/../x")
        ),
        *(("--temp-dir", "/longhaul/partial"), ("--partial-dir", ".rsync-partial")),
        *(("--link-dest", "/longhaul/link/2"), ("--link-dest", "./")),
        *((option, "/longhaul/link/0") for option in FOLDER_OPTIONS if option != "--link-dest"),
        *((option, "/longhaul/tmp") for option in FOLDER_OPTIONS if option != "--temp-dir"),
        *((option, "/etc") for option in ("-T", "--tmp-dir", "--temp", "--partial", "--backup", "-b", "--suffix")),
    ],
)
def test_a_folder_of_another_kind_is_refused_though_the_plan_has_folders(option, place, form):
    """The plan leads to a folder each for staging and for older copies, which stand for themselves alone."""
    plan = {"preserve": ["times"], "partial": True, **LINKED}
    command = f"rsync --server -ltre.iLsfxCIvu --numeric-ids {{}}{FOLDERS_OF_THE_PLAN} . ./"
    assert serve(command.format(""), **plan)
    with pytest.raises(CommandRefused):
        serve(command.format(form.format(option, place) + " "), **plan)


@pytest.mark.parametrize("name", ["directories", "shard-0", "shard-2", "x", "../only", ""])
def test_a_source_sends_one_file_where_one_is_asked_for(name):
    command = "rsync --server --sender -ltdRe.LsfxCIvu --files-from /longhaul/list/{} --from0 --no-implied-dirs . ./"
    assert b"/job/only" in serve(command.format("only"), "source", only="a", **HARMLESS)
    with pytest.raises(CommandRefused):
        serve(command.format(name), "source", only="a", **HARMLESS)
    with pytest.raises(CommandRefused, match="list of names"):
        serve("rsync --server --sender -ltdRe.LsfxCIvu --from0 --no-implied-dirs . ./", "source", only="a", **HARMLESS)


@pytest.mark.parametrize("command", ["", "id", "rsync -a / /x", "/bin/rsync --server . ./", "rsync  --daemon . ./"])
def test_other_programs_are_refused(command):
    with pytest.raises(CommandRefused):
        serve(command)


@pytest.mark.parametrize("words", ["{} . /etc", "{} . ./ ../", "{} /etc ./", "{} --sender . ./"])
def test_other_roots_are_refused(words):
    with pytest.raises(CommandRefused):
        serve(f"rsync --server {words.format(BUNDLE)}")


def test_the_environment_decides_nothing(monkeypatch):
    monkeypatch.setenv("RSYNC_PROTECT_ARGS", "1")
    monkeypatch.setenv("RSYNC_PASSWORD", "x")
    monkeypatch.setenv("LC_MESSAGES", "de_DE")
    monkeypatch.setenv("HOME", "/home/somebody")
    found = environment(user_variables())
    assert (found["LC_ALL"], found["HOME"]) == ("C", "/home/somebody")
    assert not [name for name in found if name.startswith("RSYNC") or name == "LC_MESSAGES"]
