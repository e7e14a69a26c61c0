# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command line: ``python -m ansible_collections.longhaul.fleet.tests.soak differential 2000``.

``differential N`` runs random cases, ``pairwise`` the whole table, ``stateful N`` sequences with kills. ``--user`` does
the work as an ordinary user, ``--seed`` replays. ``scale`` runs what is large: ``--entries N`` empty files, a sparse
file of ``--size N`` bytes and a line that breaks ``--cuts N`` times; ``--only NAME`` runs one of them. ``causes N``
makes transfers slow in known ways N times each, and counts how often the result names the cause. ``predictions N``
compares what a benchmark predicts and recommends in N cases with transfers that really run; ``--busy`` beside other
work, ``--case TEXT`` picks. ``fleet N`` migrates N pairs, some of which cannot be, and kills the control node
``--kills`` times. ``hooks N`` kills N migrations with hooks, and runs them again. ``watch N`` waits for N transfers
that run for ``--minutes``. ``hostile`` attacks as a hostile host: its peer in a transfer, then others by what its
modules answer, with each version of ansible-core; ``--attack C1`` (``sftp``, ``backup``, ``deep``) picks, ``--show``
prints what was seen. ``filesystems`` transfers and backs up on all file systems that this machine can mount, and across
mounts; ``--ground tmpfs`` and ``--method stream`` pick. ``backups 30`` lives a month of daily backups with a second
copy, drills, damage and lost disks.
Needs root, since owners and devices are among what is compared.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from functools import partial

from . import (
    backup_month,
    causes,
    differential,
    file_systems,
    fleet,
    hooks,
    hostile,
    hostile_answers,
    machine,
    predictions,
    scale,
    scale_entries,
    scale_reconnects,
    scale_sparse,
    watch,
)
from .hosts import ORDINARY, ROOT


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what",
        choices=[
            "differential",
            "pairwise",
            "stateful",
            "scale",
            "hostile",
            "causes",
            "predictions",
            "recommendations",
            "fleet",
            "hooks",
            "watch",
            "filesystems",
            "backups",
        ],
    )
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--only", choices=["entries", "sparse", "reconnects"])
    parser.add_argument("--entries", type=int, default=scale_entries.ENTRIES)
    parser.add_argument("--size", type=int, default=scale_sparse.SIZE)
    parser.add_argument("--cuts", type=int, default=scale_reconnects.CUTS)
    parser.add_argument("--kills", type=int, default=fleet.KILLS)
    parser.add_argument("--minutes", type=float, default=watch.MINUTES)
    parser.add_argument("--attack", action="append", default=[])
    parser.add_argument("--ground", action="append", default=[])
    parser.add_argument("--method", action="append", default=[])
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if os.geteuid():
        print("needs root: owners and devices are among what is compared", file=sys.stderr)
        return 2
    if given.what == "scale":
        return scale.run(given.only, given.entries, given.size, given.cuts)
    if given.what == "fleet":
        fleet.run(given.count, given.kills, given.seed, print)
        return 0
    if given.what == "hooks":
        return hooks.run(given.count, given.seed, partial(print, flush=True))
    if given.what == "watch":
        watch.run(given.count, given.minutes, print)
        return 0
    if given.what == "backups":
        return backup_month.run(min(given.count, backup_month.DAYS), given.seed, partial(print, flush=True))
    if given.what == "filesystems":
        matrix = file_systems.run(given.ground, given.method, print)
        print("\n".join(matrix.lines()))
        return int(matrix.counts()["wrong"] > 0)
    if given.what == "causes":
        named, tried = causes.run(given.attack[0] if given.attack else None, min(given.count, causes.ROUNDS), print)
        print(f"causes: {named} of {tried} named")
        return int(named < tried * 9 // 10)
    if given.what in ("predictions", "recommendations"):
        compares, say = given.what == "recommendations", partial(print, flush=True)
        tally = predictions.run(given.case, given.count, compares, given.busy, say)
        print("\n".join(tally.lines()))
        return int(not tally.is_good(given.busy))
    if given.what == "hostile":
        return max(hostile.run(given.attack, given.show), hostile_answers.run(given.attack, given.show))
    user = ORDINARY if given.user else ROOT
    if given.what == "stateful":
        print(f"stateful, seed {given.seed}: {machine.run(given.count, given.seed, user)}")
        return 0
    if given.what == "pairwise":
        tally = differential.table(given.seed)
    else:
        tally = differential.rounds(given.count, given.seed, user=user)
    print(f"{given.what}, seed {given.seed}: {tally}")
    print("expected, but never met:", ", ".join(tally.never_matched()) or "none")
    return int(bool(tally.unexplained))


if __name__ == "__main__":
    sys.exit(main())
