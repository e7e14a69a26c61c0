# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program that alters the answers of a hostile host alters them, and raw bytes of a terminal are found."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.tests.support import hostile_python
from ansible_collections.longhaul.fleet.tests.support.hostile_answers import (
    MIXED,
    RAW,
    ended_at_facts,
    make_facts,
)

ANSWER = {"changed": False, "rc": 0, "results": [{"state": "running"}], "stdout": "text"}
PRINTED = b"\n" + json.dumps(ANSWER).encode() + b"\n"


def config(*modes: str) -> dict[str, object]:
    return {"modes": modes, "after": 0, "canary": "/tmp/canary", "facts": make_facts("/tmp/canary")}


@pytest.mark.parametrize("mode", sorted({*hostile_python.DATA, "nested"} - {"failing", "types", "templates"}))
def test_what_a_module_returned_stays_where_a_mode_only_adds(mode):
    altered = json.loads(hostile_python.alter(PRINTED, config(mode)))
    assert altered != ANSWER and {name: altered[name] for name in ("changed", "rc")} == {"changed": False, "rc": 0}


@pytest.mark.parametrize("mode", ["failing", "types", "templates"])
def test_other_modes_alter_it(mode):
    assert json.loads(hostile_python.alter(PRINTED, config(mode)))["stdout" if mode != "failing" else "msg"] != "text"


@pytest.mark.parametrize("mode", ["junk", "nothing", "cut"])
def test_text_that_is_no_json(mode):
    with pytest.raises(ValueError):
        json.loads(hostile_python.alter(PRINTED, config(mode)))


def test_an_answer_that_is_too_deep_for_a_parser():
    with pytest.raises(RecursionError):
        json.loads(hostile_python.alter(PRINTED, config("abyss")))
    assert json.loads(hostile_python.alter(PRINTED, config("nested")))["deep"]["a"]["a"]


def test_what_is_no_answer_stays():
    for printed in (b"", b"Python 3.11.2\n", b"[1]\n", b"\xff{}"):
        assert hostile_python.alter(printed, config(*MIXED)) == printed


def test_facts_name_each_variable_of_each_role():
    facts = make_facts("/tmp/canary")
    hook = facts["hooks"]["migrate_after_cutover"][0]
    assert hook["command"] == ["/usr/bin/touch", "/tmp/canary/hook-migrate_after_cutover"]
    assert {"backup_after", "migrate_jobs", "rsyncd_modules"} <= set(facts["hooks"])
    assert {"__migrate_hook", "longhaul_state_dir", "nic_mode"} <= set(facts["variables"])
    assert "$(touch /tmp/canary/" in facts["shell"]["ansible_remote_tmp"]


@pytest.mark.parametrize("text", ["\x1b", "\x07", "\x9b", "\x85", "\r.", "\u202e", "\u2066", "\x7f"])
def test_raw_bytes_are_found(text):
    assert RAW.search(text.encode())


@pytest.mark.parametrize(("ok", "failed", "ended"), [(0, 1, True), (1, 1, False), (0, 0, False), (9, 0, False)])
def test_a_play_that_ended_before_any_task_of_a_role(ok, failed, ended):
    counts = f"changed=0    unreachable=0    failed={failed}    skipped=0    rescued=0    ignored=0"
    recap = f"PLAY RECAP ***\nalpha                      : ok={ok}    {counts}\nbeta : ok=0 {counts}\n"
    assert ended_at_facts(recap) is ended


def test_text_of_people_is_not_raw():
    assert not RAW.search("Größe: 3 GiB\n\ttab, emoji 🚚, 日本語\r\n".encode())
