# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure the collection's transfers beside the raw programs: ``make bench``.

Two testbed hosts on this machine share its processors and move files from memory to memory, so the ratios count and not
the absolute figures. docs/benchmarks.md says what is measured and how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.tests.bench import (
    backup_tools,
    cases,
    disk,
    image_backup,
    long_line,
    machine,
    memory,
    page,
)
from ansible_collections.longhaul.fleet.tests.bench.ours import Ours
from ansible_collections.longhaul.fleet.tests.bench.peers import FETCHED, Peers
from ansible_collections.longhaul.fleet.tests.bench.stage import Options, Stage
from ansible_collections.longhaul.fleet.tests.support import earlier_commit
from ansible_collections.longhaul.fleet.tests.testbed import Testbed, why_not

REPOSITORY = Path(__file__).resolve().parents[2]
REPORT, PAGE = REPOSITORY / ".build/bench.json", REPOSITORY / "docs/benchmarks.md"
QUICK = {"mib": 32, "files": 500, "repeat": 1}
RATED = ("large", "sparse", "gigabit")  # parts in which all the bytes of the large files move


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the command line; ends the program where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help=f"parts, with commas, of: {', '.join(cases.PARTS)}")
    parser.add_argument("--tools", help="names of tools, with commas, as the tables show them; default: all")
    parser.add_argument("--mib", type=int, help="size of the large files together (2048)")
    parser.add_argument("--files", type=int, help="number of small files (50000)")
    parser.add_argument("--repeat", type=int, help="runs of each tool, of which the median counts (3)")
    parser.add_argument("--entries", type=int, default=0, help="also measure a tree of so many entries (1000000)")
    parser.add_argument("--quick", action="store_true", help=f"a small run, as if with {QUICK}")
    parser.add_argument(
        "--against",
        metavar="COMMIT",
        help="measure the collection alone, and beside it the collection at this commit, in git's words",
    )
    parser.add_argument("--add", action="store_true", help="keep the other parts of the last report, if there is one")
    parser.add_argument("--out", type=Path, default=REPORT, help="where the report goes, as JSON")
    parser.add_argument("--page", action="store_true", help="put the tables into docs/benchmarks.md, too")
    parser.add_argument("--show", action="store_true", help="measure nothing; show the last report again")
    given = parser.parse_args(argv)
    given.parts = given.only.split(",") if given.only else [p for p in cases.PARTS if p != "entries" or given.entries]
    unknown = sorted(set(given.parts) - set(cases.PARTS))
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(cases.PARTS)}")
    if "entries" in given.parts and not given.entries:
        parser.error("the part entries needs --entries, for example --entries 1000000")
    return given


def options_of(given: argparse.Namespace) -> Options:
    """Return what to measure: the arguments, else those of --quick, else the defaults."""
    said = {name: getattr(given, name) for name in QUICK if getattr(given, name) is not None}
    only = frozenset(given.tools.split(",")) if given.tools else frozenset()
    return Options(**{**(QUICK if given.quick else {}), **said}, entries=given.entries, only=only)


def measure(given: argparse.Namespace, options: Options, last: dict[str, Any]) -> dict[str, Any]:
    """Measure the parts, and give the report; it is written after each part, so that an interrupted run leaves it.

    ``last`` is a report that this one adds to, or empty.
    """
    begun = time.monotonic()
    described = machine.describe(FETCHED)
    if last:
        page.refuse_others(last, described, asdict(options))

    def say(line: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} {line}", flush=True)

    room = f"{4 * options.mib + 8192}m"
    with memory.kept(3 * options.large), Testbed(data_size=room) as bed, tempfile.TemporaryDirectory() as folder:
        ours = Ours(bed, Path(folder) / "today")
        earlier = _earlier(given.against, bed, Path(folder))
        stage = Stage(bed, options, Peers(bed), ours, say, earlier)
        try:
            for name in given.parts:
                say(f"{name}: {cases.PARTS[name].about}")
                cases.PARTS[name].measure(stage)
                stage.clear()
                report = report_of(described, options, stage)
                report = page.joined(last, report) if last else report
                given.out.parent.mkdir(parents=True, exist_ok=True)
                given.out.write_text(json.dumps(report, indent=2) + "\n")
        finally:
            for version in (ours, earlier):
                if version:
                    version.end()
    return report


def _earlier(commit: str | None, bed: Testbed, folder: Path) -> Ours | None:
    if not commit:
        return None
    reason = earlier_commit.why_not(commit)
    if reason:
        raise SystemExit(f"--against {commit}: {reason}")
    return Ours(bed, folder / "earlier", earlier_commit.unpack(folder / "collections", commit))


def report_of(described: dict[str, Any], options: Options, stage: Stage) -> dict[str, Any]:
    """Return the report of what was measured so far."""
    titles = {**{name: part.about for name, part in cases.PARTS.items()}, "prune": "one of those snapshots removed"}
    titles.update({**image_backup.TITLES, **long_line.TITLES, **disk.TITLES, **backup_tools.TITLES})
    sizes = {**dict.fromkeys(RATED, options.large), **long_line.SIZES, "text": options.large // 4}
    sizes.update({name: options.large for name in disk.TITLES if name.endswith("large")})
    said = {**asdict(options), "only": sorted(options.only)}
    return page.as_json(described, said, titles, sizes, stage.figures, stage.notes)


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says; the exit code is 1 where a tool failed or nothing was measured."""
    given = parse(sys.argv[1:] if argv is None else argv)
    reason = None if given.show else why_not()
    if reason:
        print(reason, file=sys.stderr)
        return 1
    if given.show and not given.out.exists():
        print(f"there is no report to show at {given.out}: measure first, without --show", file=sys.stderr)
        return 1
    last = json.loads(given.out.read_text()) if (given.show or given.add) and given.out.exists() else {}
    try:
        report = last if given.show else measure(given, options_of(given), last)
    except page.OtherReport as error:
        print(f"{error}: leave --add out, or name another file with --out", file=sys.stderr)
        return 1
    text = page.markdown(report)
    print(text)
    if given.page:
        PAGE.write_text(page.replace_figures(PAGE.read_text(), text))
        print(f"written into {os.path.relpath(PAGE)}")
    print(f"the report: {given.out}")
    figures = report["figures"]
    if not figures:
        print("nothing was measured: are the names of --tools as in the tables?", file=sys.stderr)
    return int(not figures or any(figure["failed"] for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
