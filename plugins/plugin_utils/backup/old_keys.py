# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked about jobs of backup whose keys may have the names that they had before."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup import job_problems
from ansible_collections.longhaul.fleet.plugins.plugin_utils.backup import jobs as jobs_of_backup
from ansible_collections.longhaul.fleet.plugins.plugin_utils.old_names import renamed_key

T = TypeVar("T")


def _taking_old_keys(answer: Callable[..., T]) -> Callable[..., T]:
    @functools.wraps(answer)
    def ask(jobs: Any, *arguments: Any, **named: Any) -> T:
        renamed = functools.partial(renamed_key, old="check_share", new="check_subset")
        return answer([renamed(job) for job in jobs] if isinstance(jobs, list) else jobs, *arguments, **named)

    return ask


find_problems = _taking_old_keys(job_problems.find_problems)
make_runs = _taking_old_keys(jobs_of_backup.make_runs)
