# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which commands of the peer are served, and as what: those that follow from the plan, and no others."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import CommandRefusal
from ansible_collections.longhaul.fleet.plugins.module_utils._core.subprocesses import environment
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.argv import RsyncRun
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.server_command import (
    server_argv,
    user_variables,
)
from ansible_collections.longhaul.fleet.tests.support.rsync_commands import (
    LINKED,
    OWNERS,
    PLANS,
    USER,
    mutated,
    options_of,
    parse,
    runs,
    sent,
    why_not,
)
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import settings
from hypothesis import given
from hypothesis import strategies as st

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


def serve(command: str, side: str = "dest", **changes: object) -> list[bytes]:
    return server_argv(command, side, FOLDERS, settings(**changes))


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
    honest, asked = (sent(side, RsyncRun(), rsync_opts=more, preserve=["times"]) for more in ([], [option]))
    if sorted(asked.split()) == sorted(honest.split()):
        return  # the server is told nothing of it
    if set(asked.split()) - set(honest.split()) <= {"-ltre.LsfxCIvu", "--sender"} or option.startswith("--no-"):
        return  # less than what was planned
    if option.startswith("--protocol"):
        return
    with pytest.raises(CommandRefusal, match="plan"):
        serve(asked, side, preserve=["times"])


ASKED = [*PLANS, *({"rsync_opts": [option]} for option in USER)]


@pytest.mark.parametrize("side", ["source", "dest"])
@pytest.mark.parametrize("plan", ASKED, ids=str)
def test_what_limits_a_server_may_not_be_left_out(plan, side, tmp_path):
    """Each word, and each letter, is left out alone: then the command is refused, or it asks for nothing more."""
    names = tmp_path / "names"
    names.write_bytes(b"./a\0")
    commands = [options_of(sent(side, run, **plan)) for run in runs(side, plan, str(names))]
    for options in commands:
        for place, word in enumerate(options):
            letters = range(1, len(word.partition("e")[0])) if word[1] != "-" else ()
            shorter = [word[:at] + word[at + 1 :] for at in letters]
            for left in ([], *([one] for one in shorter)):
                expect_no_more([*options[:place], *left, *options[place + 1 :]], commands, side, plan)


def expect_no_more(options, commands, side, plan) -> None:
    """A command with these options may be served only if an honest one of the plan asks for as much."""
    sender = ["--sender"] if side == "source" else []
    command = " ".join(["rsync", "--server", *sender, *options, ".", "./"])
    try:
        serve(command, side, **plan)
    except CommandRefusal:
        return
    asked = parse(options)
    reasons = [why_not(asked, parse(honest), side) for honest in commands]
    assert "" in reasons, (command, min(reasons, key=len))


@pytest.mark.parametrize("side", ["source", "dest"])
@given(data=st.data(), plan=st.sampled_from(ASKED), chance=st.randoms(use_true_random=False))
def test_a_command_that_is_served_asks_for_no_more_than_an_honest_one(side, data, plan, chance, tmp_path_factory):
    names = tmp_path_factory.getbasetemp() / "names"
    names.write_bytes(b"./a\0")
    commands = [options_of(sent(side, run, **plan)) for run in runs(side, plan, str(names))]
    expect_no_more(mutated(commands, chance), commands, side, plan)


def test_a_word_that_stands_there_twice_in_two_spellings_asks_for_no_more():
    plan = {"rsync_opts": ["--chown=root:daemon"]}
    honest = options_of(sent("dest", RsyncRun(), **plan))
    assert "--usermap=\\*:root" in honest
    expect_no_more(["--usermap=*:root", *honest], [honest], "dest", plan)


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
    with pytest.raises(CommandRefusal, match="dest"):
        serve(command, only="x")
    with pytest.raises(CommandRefusal, match="source"):
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
            "-",
            "''",
        ),
    ],
)
def test_what_the_plan_has_not_is_refused(more, side):
    sender = "--sender " if side == "source" else ""
    command = f"rsync --server {sender}-ltre.iLsfxCIvu {{}} --numeric-ids --timeout=15 . ./"
    plain = serve(command.format(""), side, **HARMLESS)
    if more == "-n":  # a trial of what is planned does nothing
        return
    with pytest.raises(CommandRefusal):
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
    with pytest.raises(CommandRefusal):
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
    with pytest.raises(CommandRefusal):
        serve(command.format(form.format(option, place) + " "), **plan)


@pytest.mark.parametrize("name", ["directories", "shard-0", "shard-2", "x", "../only", ""])
def test_a_source_sends_one_file_where_one_is_asked_for(name):
    command = "rsync --server --sender -ltdRe.LsfxCIvu --files-from /longhaul/list/{} --from0 --no-implied-dirs . ./"
    assert b"/job/only" in serve(command.format("only"), "source", only="a", **HARMLESS)
    with pytest.raises(CommandRefusal):
        serve(command.format(name), "source", only="a", **HARMLESS)
    with pytest.raises(CommandRefusal, match="list of names"):
        serve("rsync --server --sender -ltdRe.LsfxCIvu --from0 --no-implied-dirs . ./", "source", only="a", **HARMLESS)


@pytest.mark.parametrize("command", ["", "id", "rsync -a / /x", "/bin/rsync --server . ./", "rsync  --daemon . ./"])
def test_other_programs_are_refused(command):
    with pytest.raises(CommandRefusal):
        serve(command)


@pytest.mark.parametrize("words", ["{} . /etc", "{} . ./ ../", "{} /etc ./", "{} --sender . ./"])
def test_other_roots_are_refused(words):
    with pytest.raises(CommandRefusal):
        serve(f"rsync --server {words.format(BUNDLE)}")


def test_the_environment_decides_nothing(monkeypatch):
    monkeypatch.setenv("RSYNC_PROTECT_ARGS", "1")
    monkeypatch.setenv("RSYNC_PASSWORD", "x")
    monkeypatch.setenv("LC_MESSAGES", "de_DE")
    monkeypatch.setenv("HOME", "/home/somebody")
    found = environment(user_variables())
    assert (found["LC_ALL"], found["HOME"]) == ("C", "/home/somebody")
    assert not [name for name in found if name.startswith("RSYNC") or name == "LC_MESSAGES"]
