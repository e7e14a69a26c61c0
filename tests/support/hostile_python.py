#!/usr/bin/python3
# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A program for ``ansible_python_interpreter`` of a host whose root attacks other hosts and the control node.

It runs the real Python, and alters the JSON that a module prints. ``CONFIG`` on the host is a JSON object: ``modes``
(names in ``MODES``), ``after`` (the number of answers that stay honest first), ``canary`` (a folder) and ``facts`` (by
kind). Each answer that it altered is a line in ``LOG``.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import subprocess
import sys
import time
from typing import Any, Callable

REAL = "/usr/bin/python3"
CONFIG, COUNT, LOG = "/run/hostile-python.json", "/run/hostile-python.count", "/run/hostile-python.log"
ESCAPES = "\x1b]0;title\x07\x1b[2J\x1b[31mforged\u009b1A\u0085\rok: [gamma]\u202eexe.\u2066\x7f"
# The first is too deep for Python's own parser until 3.11, the second for each Python, the third for none.
DEPTHS = {"deep": 2_000, "abyss": 100_000, "nested": 300}
GIGANTIC = 96 << 20
SECONDS = 3600  # of silence

Answer = dict[str, Any]
Config = dict[str, Any]


def _template(config: Config, name: str) -> str:
    """Return a template that runs a command."""
    return "{{ lookup('ansible.builtin.pipe', 'touch " + f"{config['canary']}/template-{name}" + "') }}"


def with_facts(kind: str) -> Callable[[Answer, Config], Answer]:
    """Return what adds the facts of one kind."""

    def alter(answer: Answer, config: Config) -> Answer:
        return {**answer, "ansible_facts": {**answer.get("ansible_facts", {}), **config["facts"][kind]}}

    return alter


def stats(answer: Answer, config: Config) -> Answer:
    """Add custom statistics."""
    data = {"hostile_stats": 1, "longhaul_migrate_summary": {"failed": 0}, "longhaul_backup_summary": {"failed": 0}}
    return {**answer, "ansible_stats": {"data": data, "per_host": False, "aggregate": False}}


def warnings(answer: Answer, config: Config) -> Answer:
    """Add what Ansible prints at once."""
    old = {"msg": f"deprecated {ESCAPES}", "version": "9.9", "collection_name": ESCAPES}
    return {**answer, "warnings": [f"warning {ESCAPES}", ESCAPES], "deprecations": [old], "msg": f"said {ESCAPES}"}


def escapes(answer: Answer, config: Config) -> Answer:
    """Add escape sequences to keys and to texts that are no data of the collection's own protocol."""
    more = {f"key {ESCAPES}": f"value {ESCAPES}", "stdout": f"out {ESCAPES}", "stderr": f"err {ESCAPES}"}
    lines = {"stdout_lines": [ESCAPES], "stderr_lines": [ESCAPES], "exception": f"Traceback {ESCAPES}"}
    return {**answer, **more, **lines, "diff": [{"before": ESCAPES, "after": f"{ESCAPES}\n", "before_header": ESCAPES}]}


def failing(answer: Answer, config: Config) -> Answer:
    """Say that the module failed, in words with escape sequences."""
    return {"failed": True, "msg": f"failed {ESCAPES}", "exception": f"Traceback {ESCAPES}", "rc": 1}


def internal(answer: Answer, config: Config) -> Answer:
    """Add keys by which actions of ansible-core's own talk to it: new hosts, groups, handlers, delegated variables."""
    variables = {**config["facts"]["shell"], **config["facts"]["hooks"]}
    return {
        **answer,
        f"_ansible_{ESCAPES}": ESCAPES,
        "_ansible_verbose_always": True,
        "_ansible_item_label": ESCAPES,
        "_ansible_delegated_vars": {"ansible_host": ESCAPES, "ansible_delegated_host": ESCAPES, **variables},
        "_ansible_facts_cacheable": True,
        "ansible_facts_cacheable": True,
        "add_host": {"host_name": "beta", "groups": ["longhaul_backup"], "host_vars": variables},
        "add_group": "localhost",
        "ansible_notify": [ESCAPES],
        "results_file": f"{config['canary']}/results",
    }


def tags(answer: Answer, config: Config) -> Answer:
    """Add facts that claim to be templates of the control node's own (ansible-core 2.19 and later)."""
    trusted = {"__ansible_type": "TrustedAsTemplate"}
    text = {"__ansible_type": "_AnsibleTaggedStr", "value": _template(config, "tag"), "tags": [trusted]}
    return {**answer, "ansible_facts": dict.fromkeys(config["facts"]["hooks"], text), "msg": text}


def templates(answer: Answer, config: Config) -> Answer:
    """Put a template into every text, at all depths."""

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return value + _template(config, "value")
        if isinstance(value, list):
            return [put(one) for one in value]
        return {name: put(one) for name, one in value.items()} if isinstance(value, dict) else value

    found: Answer = put(answer)
    return found


def types(answer: Answer, config: Config) -> Answer:
    """Change the type of every value, at all depths."""

    def turn(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: turn(one) for name, one in value.items()}
        if isinstance(value, list):
            return [1, {}, None, *(turn(one) for one in value)]
        return {str: 7, int: "seven", bool: [None], float: {"a": 1}}.get(type(value), "null")

    found: Answer = turn(answer)
    return {**found, "results": [1, {}, [], None, {"snapshots": [1, {}]}], "ansible_facts": [1], "warnings": {"a": 1}}


def gigantic(answer: Answer, config: Config) -> Answer:
    """Add a text of many bytes, and a list of many items."""
    return {**answer, "msg": "x" * GIGANTIC, "more": list(range(1 << 20))}


DATA: dict[str, Callable[[Answer, Config], Answer]] = {
    **{f"facts_{kind}": with_facts(kind) for kind in ("hooks", "shell", "connection", "plugins", "variables")},
    **{mode.__name__: mode for mode in (stats, warnings, escapes, failing, internal, tags, templates, types, gigantic)},
}


def _deep(text: str, levels: int) -> str:
    """Nest what the collection's own module returns, and another member; the last of two equal names counts."""
    table = '{"a":' * levels + "1" + "}" * levels
    return f'{text[:-1]}, "results": {"[" * levels}{"]" * levels}, "deep": {table}, "ansible_facts": {table}}}'


TEXT: dict[str, Callable[[str], str]] = {
    **{name: functools.partial(_deep, levels=levels) for name, levels in DEPTHS.items()},
    "junk": lambda text: f"before {ESCAPES}\n\n{text}\nafter {ESCAPES}\n[1]\n",
    "list": lambda text: f"[{text}, 1]",
    "nothing": lambda text: "",
    "cut": lambda text: text[: len(text) // 2],
}
SILENCE = "silence"
MODES = (*DATA, *TEXT, SILENCE)


def alter(printed: bytes, config: Config) -> bytes:
    """Return what is printed instead; what is no answer of a module stays."""
    text = printed.decode("utf-8", "surrogateescape").strip()
    try:
        answer = json.loads(text)
    except ValueError:
        return printed
    if not isinstance(answer, dict):
        return printed
    modes: list[str] = config["modes"]
    for mode in modes:
        if mode in DATA:
            answer = DATA[mode](answer, config)
    text = json.dumps(answer)
    for mode in modes:
        if mode in TEXT:
            text = TEXT[mode](text)
    return f"\n{text}\n".encode("utf-8", "surrogateescape")


def _number() -> int:
    """Count the executions on this host, from 0."""
    with open(COUNT, "a+", encoding="ascii") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        opened.seek(0)
        number = int(opened.read() or 0)
        opened.truncate(0)
        opened.write(str(number + 1))
    return number


def main() -> int:
    """Run the real Python, and print its answer or another one."""
    with open(CONFIG, encoding="utf-8") as opened:
        config: Config = json.load(opened)
    if _number() < config["after"]:
        os.execv(REAL, [REAL, *sys.argv[1:]])
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(f"{','.join(config['modes'])} {' '.join(sys.argv[1:])}\n")
    if SILENCE in config["modes"]:
        time.sleep(SECONDS)
    ran = subprocess.run([REAL, *sys.argv[1:]], stdout=subprocess.PIPE, check=False)
    sys.stdout.buffer.write(alter(ran.stdout, config))
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main())
