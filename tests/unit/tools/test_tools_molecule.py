# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What molecule says becomes results that hide nothing; and where the packages of an image come from."""

from __future__ import annotations

import pytest


@pytest.fixture(name="tools", scope="module")
def _tools(import_tool):
    return {name: import_tool(name) for name in ("images", "molecule")}


@pytest.mark.parametrize(
    "line, expected",
    [
        ("INFO     [rsyncd > converge] Executing", ("rsyncd", "converge", None)),
        ("INFO     [rsyncd > converge] Executed: Successful", ("rsyncd", "converge", "Successful")),
        ("ERROR    [rsyncd > create] Executed: Failed", ("rsyncd", "create", "Failed")),
        ("WARNING  [a > prepare] Executed: Missing playbook (x)", ("a", "prepare", "Missing playbook (x)")),
        ("INFO     [rsyncd > verify] Executing Testinfra tests found in ...", None),
        ("INFO     Sanity checks: 'docker'", None),
        ("ok: [rsyncd-debian12]", None),
    ],
)
def test_steps_are_told_from_the_rest(tools, line, expected):
    found = tools["molecule"].STEP.match(line)
    assert (found and (found["scenario"], found["step"], found["verdict"])) == expected


def step(tools, name: str, verdict: str = "Successful", said: tuple = ()):
    return tools["molecule"].Step(name, 1.5, verdict, list(said))


def test_each_step_is_a_result_and_one_that_comes_twice_has_a_number(tools):
    steps = [step(tools, name) for name in ("destroy", "create", "verify", "destroy")]
    cases = tools["molecule"].cases_of("rsyncd", steps)
    assert [case.name for case in cases] == ["rsyncd::destroy", "rsyncd::create", "rsyncd::verify", "rsyncd::destroy-2"]
    assert [case.failure for case in cases] == [None] * 4
    assert cases[0].seconds == 1.5


def test_a_step_that_failed_says_why(tools):
    said = ["TASK [x]", "fatal: [host]: FAILED! => {}", "[ERROR]: Task failed: no space", "PLAY RECAP"]
    steps = [step(tools, "converge", "Failed", said), step(tools, "destroy")]
    (failed, _destroy) = tools["molecule"].cases_of("rsyncd", steps)
    assert failed.failure == "Failed: [ERROR]: Task failed: no space"


def test_a_scenario_without_checks_has_failed(tools):
    cases = tools["molecule"].cases_of("rsyncd", [step(tools, "converge"), step(tools, "destroy")])
    assert cases[-1].failure == "the scenario verifies nothing"


@pytest.mark.parametrize("said, reason", [([], "it said nothing"), (["a", "b"], "b"), (["ERROR x", "b"], "ERROR x")])
def test_a_reason_is_found_always(tools, said, reason):
    assert tools["molecule"].reason(said) == reason


def test_a_scenario_that_does_not_exist_is_no_success(tools):
    with pytest.raises(ValueError, match="no such scenario: nonsense"):
        tools["molecule"].scenarios(["nonsense"])
    assert "ssh_client" in tools["molecule"].scenarios([])


OWN = "Debian|oldstable|http://mirror.example/debian/\nDebian|oldstable-updates|http://mirror.example/debian/\n"
SECURE = "Debian|oldstable-security|http://mirror.example/debian-security/\n"


@pytest.mark.parametrize(
    "listed, expected",
    [
        (OWN + SECURE, ("http://mirror.example/debian", "http://mirror.example/debian-security")),
        (SECURE + OWN, ("http://mirror.example/debian", "http://mirror.example/debian-security")),
        (OWN, ("http://mirror.example/debian", None)),
        ("Node Source|nodistro|https://deb.example/node\n" + OWN, ("http://mirror.example/debian", None)),
        ("Ubuntu|noble|http://ubuntu.example/ubuntu/\n", None),
        ("", None),
    ],
)
def test_the_mirror_is_the_one_that_apt_has(tools, listed, expected):
    images = tools["images"]
    assert images.pick_mirrors(listed) == (expected or (images.MIRROR, images.SECURITY))


@pytest.mark.parametrize("security, count", [(None, 2), ("http://mirror.example/security", 3)])
def test_sources(tools, security, count):
    lines = tools["images"].sources("trixie", "http://mirror.example/debian", security)
    assert len(lines) == count
    assert lines[0] == "deb http://mirror.example/debian trixie main"
    assert all(line.endswith(" main") for line in lines)
