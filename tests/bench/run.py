# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure every transfer method beside its raw peer: ``python -m tests.bench.run``, or ``make bench``.

Two testbed hosts on this machine share its processors and move files from memory to memory, so the ratios count and not
the absolute figures. The engine's figures are those of a whole task as a person waits for it (without the start of
ansible-playbook), its verification of sizes included; ``transfer`` is the phase in which the bytes moved.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.tests.bench.peers import Peers
from ansible_collections.longhaul.fleet.tests.support.hard_tree import make_big_files
from ansible_collections.longhaul.fleet.tests.support.playbooks import Playbooks
from ansible_collections.longhaul.fleet.tests.testbed import Testbed, why_not

REPOSITORY = Path(__file__).resolve().parents[2]
METHODS = {  # what a method is compared with
    "stream": "rsync -aHAX to a daemon",
    "rsync": "rsync -aHAX over ssh",
    "rsyncd": "rsync -aHAX to a daemon",
    "tar_nc": "tar | nc",
    "scp": "scp -rp",
    "sftp": "scp -rp",
}


def make_many_files(root: Path, count: int) -> None:
    """Make small files of 0 to 16 KiB, a hundred in a directory."""
    text = os.urandom(16384)
    for number in range(count):
        if number % 100 == 0:
            folder = root / f"{number // 100:05}"
            folder.mkdir(parents=True)
        (folder / f"{number:07}").write_bytes(text[: number * 37 % 16384])


def tree_size(root: Path) -> int:
    """Give the bytes in the files below a folder."""
    return sum(path.lstat().st_size for path in root.rglob("*") if path.is_file())


def engine(playbooks: Playbooks, method: str, tree: str, streams: int) -> dict[str, Any]:
    """Transfer a tree with our own task; give its result, with the seconds that the task took."""
    task = {
        "name": "Transfer",
        "longhaul.fleet.transfer": {
            "src": f"/data/{tree}/",
            "dest_host": "beta",
            "dest": "/data/out/",
            "method": method,
            "encryption": "auto",
            **({"streams": streams} if streams > 1 else {}),
        },
    }
    return playbooks.run([task], hosts="alpha", timeout=3600).expect_success().result("Transfer")


def measure(bed: Testbed, tree: str, methods: list[str], streams: list[int], folder: Path) -> list[dict[str, Any]]:
    """Run every peer and every method once over a tree, each into an empty destination."""
    size = tree_size(bed.root("alpha") / "data" / tree)
    rows: list[dict[str, Any]] = []

    def add(name: str, seconds: float, **more: Any) -> None:
        row = {"tree": tree, "name": name, "seconds": round(seconds, 2), "rate": size / seconds, **more}
        rows.append(row)
        print(f"{tree:6} {name:28} {seconds:8.2f} s {size / seconds / 1e6:8.0f} MB/s {_ratio(rows, row)}", flush=True)

    peers = Peers(bed)
    for name, run in peers.all().items():
        _empty(bed)
        add(name, run(tree))
    inventory = bed.inventory(folder / "inventory.yml")
    collections = next(path.parent.parent for path in Path(__file__).parents if path.name == "ansible_collections")
    playbooks = Playbooks(inventory, folder / tree, collections)
    for method in methods:
        for count in streams if method in ("stream", "rsync", "rsyncd", "tar_nc") else [1]:
            _empty(bed)
            name = f"transfer: {method}" + (f", {count} streams" if count > 1 else "")
            try:
                result = engine(playbooks, method, tree, count)
            except AssertionError as error:
                print(f"{tree:6} {name:28} failed:\n{error}", flush=True)
                rows.append({"tree": tree, "name": name, "failed": str(error)})
                continue
            add(name, result["duration"], peer=METHODS[method], phases=result.get("phases"))
    bed.exec("alpha", ["rm", "-rf", "/run/bench"])
    return rows


def _empty(bed: Testbed) -> None:
    bed.exec("beta", ["rm", "-rf", "/data/out"])
    bed.exec("beta", ["mkdir", "/data/out"])


def _ratio(rows: list[dict[str, Any]], row: dict[str, Any]) -> str:
    """Say how a method stands to its peer and to the wire."""
    rates = {one["name"]: one["rate"] for one in rows if "rate" in one}
    said = f"{row['rate'] / rates['iperf3']:5.0%} of the wire" if "iperf3" in rates else ""
    return said + (f", {row['rate'] / rates[row['peer']]:.2f} times {row['peer']}" if row.get("peer") in rates else "")


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=2048, help="size of the large files together")
    parser.add_argument("--files", type=int, default=50000, help="number of small files")
    parser.add_argument("--methods", default=",".join(METHODS), help="which, with commas; none: the peers alone")
    parser.add_argument("--streams", default="1,2", help="numbers of streams, with commas")
    parser.add_argument("--rate", help="hold the wire to a rate, for example 1gbit")
    given = parser.parse_args()
    reason = why_not()
    if reason:
        print(reason, file=sys.stderr)
        return 1
    methods = [name for name in given.methods.split(",") if name in METHODS]
    streams = [int(number) for number in given.streams.split(",")]
    rows: list[dict[str, Any]] = []
    with Testbed(data_size=f"{2 * given.mib + 4096}m") as bed, tempfile.TemporaryDirectory() as folder:
        if given.rate:
            bed.shape("alpha", given.rate)
        for tree in ("big", "many"):
            root = bed.root("alpha") / "data" / tree
            if tree == "big":
                make_big_files(root, given.mib << 20, 4)
            else:
                make_many_files(root, given.files)
            rows += measure(bed, tree, methods, streams, Path(folder))
            bed.empty_data("alpha")
    machine = {"processors": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    report = REPOSITORY / ".build/bench" / time.strftime("%Y%m%dT%H%M%S.json")
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps({"machine": machine, "rate": given.rate, "rows": rows}, indent=2))
    print(f"written to {report}")
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
