# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure what a pair of hosts costs the control node: ``make fleet``.

Each pair is two testbed hosts of its own on this machine, reached by real ssh. Counted are the processor seconds of
ansible-playbook and everything that it starts (its workers, each ssh, also the masters that stay), without those of the
hosts, and without what the same play costs with a task that does nothing. Absolute seconds depend on the machine;
compare runs of the same one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.tests.bench import counters, data
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.control_node import adopt_orphans, used_here
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks, Run
from ansible_collections.longhaul.fleet.tests.testbed import Testbed, why_not

_EXECUTION = re.compile(r"longhaul on (\S+): ")  # what HostRunner says with -vvv
SOURCE = "longhaul_bench_source"  # the variable of a destination that names its source
NOTHING: list[dict[str, Any]] = [{"name": "Nothing", "ansible.builtin.meta": "noop"}]
TRANSFER: list[dict[str, Any]] = [
    {
        "name": "Transfer",
        "longhaul.fleet.transfer": {"src_host": f"{{{{ {SOURCE} }}}}", "src": "/data/tree/", "dest": "/data/out/"},
    }
]
HOOKS: dict[str, dict[str, Any]] = {  # what a hook of each kind runs
    "command": {"command": ["true"]},
    "module": {"module": "ansible.builtin.stat", "args": {"path": "/data"}},
    "tasks": {"tasks": "hook.yml"},
}
TASKS = "- name: Do nothing there\n  ansible.builtin.command: 'true'\n"
BACKUP, MIGRATE = "longhaul.fleet.backup", "longhaul.fleet.migrate"
REPOSITORY = "/data/backup"
PING: list[dict[str, Any]] = [
    {"name": "Ping", "ansible.builtin.ping": {}},
    {"name": "Ping the source", "ansible.builtin.ping": {}, "delegate_to": f"{{{{ {SOURCE} }}}}"},
]


class Cost(NamedTuple):
    """What a run cost: processor seconds of the control node and of all hosts, and seconds by the clock."""

    control: float
    hosts: float
    wall: float

    def of_each(self, pairs: int, before: Cost) -> Cost:
        """Return what a pair cost, without the run ``before`` that did nothing."""
        return Cost(*((mine - other) / pairs for mine, other in zip(self, before)))


class Fleet:
    """Pairs of hosts, and playbooks that run on them."""

    def __init__(self, bed: Testbed, folder: Path, variables: dict[str, Any], forks: int) -> None:
        """Take a testbed whose hosts are source and destination by turns; ``variables`` count for all of them."""
        self.bed, self.pairs, self._forks = bed, len(bed.hosts) // 2, forks
        self._folder, self._migrated = folder, 0
        inventory = bed.inventory(folder / "inventory.yml", extra=variables)
        written = json.loads(inventory.read_text(encoding="utf-8"))
        hosts = written["all"]["hosts"]
        for source, dest in zip(bed.hosts[::2], bed.hosts[1::2]):
            hosts[dest][SOURCE] = source
        written["all"]["children"] = {"dests": {"hosts": {name: {} for name in bed.hosts[1::2]}}}
        inventory.write_text(json.dumps(written), encoding="utf-8")
        (folder / HOOKS["tasks"]["tasks"]).write_text(TASKS, encoding="utf-8")
        self._playbooks = Playbooks(inventory, folder, collections_folder())

    def run(self, what: str | Sequence[dict[str, Any]], *options: str, **variables: Any) -> tuple[Cost, Run]:
        """Run a playbook, or tasks on all destinations; give what that cost, and what it printed and returned."""
        before, host_before = used_here(), counters.used_by_hosts(self.bed)
        begun = os.times().elapsed
        playbook = what if isinstance(what, str) else list(what)
        how = (f"--forks={self._forks}", *options)
        ended = self._playbooks.run(playbook, *how, hosts="dests", timeout=1800, **variables)
        wall = os.times().elapsed - begun
        ended.expect_success()
        return Cost(used_here() - before, counters.used_by_hosts(self.bed) - host_before, wall), ended

    def backup(self, *options: str, hook: str = "") -> tuple[Cost, Run]:
        """Back up the tree of each source to its destination, one client for each repository.

        With ``hook``, each source has one of this kind before the backup.
        """
        hooks = {"before": [{"host": "client", **HOOKS[hook]}]} if hook else {}
        jobs = [
            {
                "name": "tree",
                "host": source,
                "src": "/data/tree",
                "repository": {"host": dest, "path": REPOSITORY},
                **hooks,
            }
            for source, dest in zip(self.bed.hosts[::2], self.bed.hosts[1::2])
        ]
        return self.run(
            BACKUP, *options, backup_jobs=jobs, backup_defaults={"keep": {"last": 2}, "check_subset": "1/7"}
        )

    def migrate(self, *options: str, hook: str = "") -> tuple[Cost, Run]:
        """Move the tree of each source, from the preflight to the switch, as if it was never moved before.

        With ``hook``, the source and the destination of each job have one of this kind.
        """
        self._migrated += 1
        sides = {"before_cutover": "source", "after_cutover": "dest"} if hook else {}
        hooks = {when: [{"host": side, **HOOKS[hook]}] for when, side in sides.items()}
        jobs = [
            {
                "name": source,
                "src_host": source,
                "src": "/data/tree/",
                "dest_host": dest,
                "dest": f"/data/{self._migrated}",
                **hooks,
            }
            for source, dest in zip(self.bed.hosts[::2], self.bed.hosts[1::2])
        ]
        folder = str(self._folder / f"migrated-{self._migrated}")
        variables = {"migrate_phase": "cutover", "migrate_report_dir": folder}
        return self.run(MIGRATE, *options, migrate_jobs=jobs, **variables)


def executions(said: str) -> int:
    """Return how often the collection ran something on a host, by the output of a run with ``-vvv``."""
    return len(_EXECUTION.findall(said))


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure, and return the medians of each kind of run."""
    names = [f"{side}{number}" for number in range(given.pairs) for side in ("old", "new")]
    variables: dict[str, Any] = {} if given.pipelining is None else {"ansible_pipelining": given.pipelining == "yes"}
    with Testbed(names, data_size="512m") as bed, tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(bed, Path(folder), variables, given.forks)
        kinds: dict[str, Callable[[], tuple[Cost, Run]]] = {
            "ping x2": partial(fleet.run, PING),
            "transfer, first": partial(fleet.run, TRANSFER),
            "transfer, nothing to do": partial(fleet.run, TRANSFER),
            "backup, first": fleet.backup,
            "backup, nothing changed": fleet.backup,
            "backup, with a command hook": partial(fleet.backup, hook="command"),
            "migrate, preflight to verify": fleet.migrate,
            **{f"migrate, with two {hook} hooks": partial(fleet.migrate, hook=hook) for hook in given.hook},
        }
        kinds = {name: do for name, do in kinds.items() if name.startswith(given.only)}
        for source in names[::2]:
            data.make_small(bed.root(source) / "data/tree", given.files)
        fleet.run(PING)
        found: dict[str, list[Cost]] = {}
        for number in range(given.repeat):
            idle, _ran = fleet.run(NOTHING)
            found.setdefault("playbook alone", []).append(idle)
            for host in names[1::2]:
                bed.exec(host, ["rm", "-rf", "/data/out", REPOSITORY])
                bed.exec(host, ["mkdir", REPOSITORY])
            shutil.rmtree(Path(folder) / "longhaul-backup", ignore_errors=True)  # else the empty repository is refused
            for name, do in kinds.items():
                whole, ran = do()
                cost = whole.of_each(fleet.pairs, idle)
                found.setdefault(name, []).append(cost)
                lines = len(ran.output.splitlines()) / fleet.pairs
                say(f"run {number + 1}: {name}: {cost.control:.3f} s of the control node a pair, {lines:.1f} lines")
        counted: dict[str, float] = {}
        last = {
            "transfer": partial(fleet.run, TRANSFER),
            "backup": fleet.backup,
            "migrate": fleet.migrate,
            **{f"migrate with two {hook} hooks": partial(fleet.migrate, hook=hook) for hook in given.hook},
        }
        for name, run in last.items():
            if name.startswith(given.only):
                _cost, ran = run("-vvv")
                counted[name] = executions(ran.output) / fleet.pairs
    medians = {name: [statistics.median(one) for one in zip(*costs)] for name, costs in found.items()}
    return {
        "pairs": given.pairs,
        "forks": given.forks,
        "repeat": given.repeat,
        "executions": counted,
        "medians": medians,
    }


def table(report: dict[str, Any]) -> str:
    """Return the report as a table."""
    lines = ["| run | control node, CPU-s | hosts, CPU-s | wall, s |", "|---|---|---|---|"]
    lines += ["| {} | {:.3f} | {:.3f} | {:.2f} |".format(name, *cost) for name, cost in report["medians"].items()]
    counted = ", ".join(f"{count:.1f} of a {name}" for name, count in report["executions"].items())
    end = (
        f"{report['pairs']} pairs, {report['forks']} forks, median of {report['repeat']}; all but the first line: a "
        f"pair. Executions on the hosts of a pair, for transfer and backup where nothing changed: {counted}"
    )
    return "\n".join([*lines, "", end])


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        prog="make fleet", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--forks", type=int, default=5)
    parser.add_argument("--files", type=int, default=20, help="of each tree")
    parser.add_argument("--repeat", type=int, default=5, help="runs, of which the median counts")
    parser.add_argument(
        "--only", choices=["ping", "transfer", "backup", "migrate"], default="", help="measure one of these"
    )
    parser.add_argument(
        "--hook", choices=HOOKS, action="append", help="kinds of hooks for a migration; all, if there is none"
    )
    parser.add_argument("--pipelining", choices=["yes", "no"], help="set it for all hosts")
    parser.add_argument("--out", type=Path, help="where the report goes, too, as JSON")
    given = parser.parse_args(sys.argv[1:] if argv is None else argv)
    given.hook = given.hook or list(HOOKS)
    reason = why_not()
    if reason:
        print(reason, file=sys.stderr)
        return 1
    adopt_orphans()
    report = measure(given, lambda line: print(line, flush=True))
    print(table(report))
    if given.out:
        given.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
