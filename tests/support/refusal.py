# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a mistake must come to: one clear error, and two hosts as they were.

Many mistakes are made in one play, each a task whose failure is ignored, since to start ansible-playbook takes longer
than a refusal does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Iterator, NamedTuple

from ..testbed import Testbed
from . import leftovers
from .playbooks import Playbooks

LONGEST = 700  # characters of an error that a person still reads
Commands = Mapping[str, str]  # shell commands by host
NOTHING: Commands = MappingProxyType({})


class Mistake(NamedTuple):
    """A transfer that cannot work. ``words`` must all stand in the error: what was found, and what to type."""

    name: str
    words: tuple[str, ...]
    options: Mapping[str, Any]  # None leaves one out that otherwise has a value
    before: Commands = NOTHING
    after: Commands = NOTHING


def mistake(name: str, *words: str, before: Commands = NOTHING, after: Commands = NOTHING, **options: Any) -> Mistake:
    """Return a mistake; ``before`` and ``after`` make its circumstances and undo them."""
    return Mistake(name, words, options, before, after)


def small_tree(bed: Testbed) -> None:
    """Create a small source on alpha: 27 entries, 1 MiB."""
    source = bed.root("alpha") / "data/src"
    (source / "folder").mkdir(parents=True)
    (source / "file").write_bytes(os.urandom(1 << 20))
    for number in range(25):
        (source / "folder" / str(number)).write_text(f"content {number}")


def make_mistakes(bed: Testbed, playbooks: Playbooks, mistakes: Iterable[Mistake], **run_options: Any) -> None:
    """Make the mistakes one after the other; fails with all that is wrong with what came of them.

    That nothing was written or left is looked for after all of them together.
    """
    mistakes = list(mistakes)
    tasks = [task for one in mistakes for task in _tasks(one)]
    before = everything(bed)
    run = playbooks.run(tasks, hosts="beta", **run_options)
    after = everything(bed)
    found = [f"left: {host}: {line}" for host in bed.hosts for line in sorted(after[host] - before[host])[:8]]
    found += [f"gone: {host}: {line}" for host in bed.hosts for line in sorted(before[host] - after[host])]
    said = {one.task: one for one in run.results if one.status == "ignored"}
    for one in mistakes:
        if one.name not in said:
            found.append(f"{one.name}: it did not fail:\n{run.output[-1000:]}")
            continue
        print(f"{one.name}: {said[one.name].result.get('msg')}")
        found += _unclear(one, said[one.name].result)
    if "Traceback" in run.output:
        found.append(f"a traceback: {run.output}")
    assert not found, "\n".join(["", *found])


def _tasks(one: Mistake) -> Iterator[dict[str, Any]]:
    options = {"src_host": "alpha", "src": "/data/src/", "dest": "/data/dest", **one.options}
    options = {name: value for name, value in options.items() if value is not None}
    for host, command in one.before.items():
        yield {"ansible.builtin.raw": command, "delegate_to": host, "become": False}
    yield {"name": one.name, "longhaul.fleet.transfer": options, "ignore_errors": True, "ignore_unreachable": True}
    for host, command in one.after.items():
        yield {"ansible.builtin.raw": command, "delegate_to": host, "become": False}


def _unclear(one: Mistake, result: Mapping[str, Any]) -> list[str]:
    said = str(result.get("msg", ""))
    found = [f"{one.name}: {word!r} is missing in: {said}" for word in one.words if word.lower() not in said.lower()]
    if len(said) > LONGEST:
        found.append(f"{one.name}: {len(said)} characters: {said}")
    if result.get("changed"):
        found.append(f"{one.name}: it is said to have changed something")
    return found


def everything(bed: Testbed) -> dict[str, set[str]]:
    """Return what is on both hosts: processes, ports, keys, state, and every path below /data with its time."""
    found = {}
    for host in bed.hosts:
        data = bed.root(host) / "data"
        found[host] = leftovers.snapshot(bed, host) | {_line(path, data) for path in _paths(data)}
    return found


def _paths(folder: Path) -> Iterator[Path]:
    for path, names, files in os.walk(folder):
        yield from (Path(path, name) for name in (*names, *files))


def _line(path: Path, root: Path) -> str:
    status = path.lstat()
    time = "" if path == root else status.st_mtime_ns  # what was made there and went again has changed it
    return f"data: {path.relative_to(root)} {status.st_size} {status.st_mode:o} {time}"


def add_hosts(inventory: Path, hosts: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
    """Add inventory hosts that are another one but for some variables: name, then that one and the variables."""
    content = json.loads(inventory.read_text())
    known = content["all"]["hosts"]
    for name, (like, variables) in hosts.items():
        known[name] = {**known[like], **variables}
    inventory.write_text(json.dumps(content, indent=2))


def hide(host: str, path: str) -> dict[str, Commands]:
    """Take a program away from a host while a mistake is made."""
    return {"before": {host: f"mv {path} {path}.hidden"}, "after": {host: f"mv {path}.hidden {path}"}}


def replace(host: str, program: str, script: str) -> dict[str, Commands]:
    """Put a shell script in the place of a host's program while a mistake is made."""
    path = f"/usr/local/sbin/{program}"
    text = f"#!/bin/sh\n{script}\n"
    return {"before": {host: f"printf %s '{text}' >{path} && chmod 755 {path}"}, "after": {host: f"rm {path}"}}
