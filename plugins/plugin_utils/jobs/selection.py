# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The jobs of a list that a run works on: by name, by tags, and by the hosts that the inventory has. Pure."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

_RUNNER = "AWX_ISOLATED_DATA_DIR"  # ansible-runner sets it, and AWX uses ansible-runner
MOST_PROBLEMS = 50  # that a refusal lists
_NAMED = 5  # hosts


def is_automated(variables: Mapping[str, object]) -> bool:
    """Whether AWX, an automation controller or ansible-runner started the run, by the variables of a task."""
    return any(name in variables for name in ("awx_job_id", "tower_job_id")) or bool(os.environ.get(_RUNNER))


def explain_missing(missing: Iterable[str], total: int, only: str, automated: bool = False) -> list[str]:
    """Return a sentence on hosts that the jobs name and the inventory lacks, if slicing may be why; else nothing.

    ``total`` is how many hosts the jobs name, and ``only`` the variable that chooses jobs. ``automated`` says whether
    AWX, an automation controller or ansible-runner started the run. Else one missing host is a slip of the pen. The
    controllers tell a run neither that it is a slice nor of how many, so that the missing hosts are all that shows it.
    """
    names = sorted(set(missing))
    if not names or (len(names) == 1 and not automated):
        return []
    named = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return [
        f"{len(names)} of the {total} hosts of the jobs are missing from the inventory of this run ({named}). If AWX "
        "or an automation controller runs it with job slicing, that is why: each slice has only a part of the "
        "inventory, and the two hosts of a job may be in different slices. Set the job slicing of the template to 1. "
        "To divide the work nevertheless, launch one job template for each part of the jobs, with the whole inventory "
        f"and its own list of names in {only}"
    ]


def at_most(problems: Sequence[str]) -> list[str]:
    """Return as many problems as a person reads, and how many more there are."""
    left = len(problems) - MOST_PROBLEMS
    return [*problems] if left <= 0 else [*problems[:MOST_PROBLEMS], f"and {left} more problems like these"]


def read_names(given: Any) -> list[str]:
    """Return names that come as a list, or as one text from ``-e backup_only=data,web1``."""
    parts = [given] if isinstance(given, str) or not isinstance(given, Sequence) else given
    return [name.strip() for part in parts for name in str(part).split(",") if name.strip()]


def is_wanted(tags: Collection[str], run: Collection[str], skip: Collection[str]) -> bool:
    """Return whether a task with ``tags`` would run, by --tags (``run``) and --skip-tags (``skip``), as in Ansible."""
    own = set(tags)
    wanted = bool(own & set(run)) or not set(run).isdisjoint({"all", "tagged"})
    return wanted and not own & set(skip) and not set(skip) & {"all", "tagged"}
