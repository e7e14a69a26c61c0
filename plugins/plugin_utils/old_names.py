# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables and keys of jobs that had another name before, and the warning about that name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display


def renamed_toggle(value: Any, old_value: Any, old: str, new: str) -> bool:
    """Return whether a toggle is on, and show a deprecation warning where its old name is set.

    ``value`` is that of the new name and is on by default, so a value that is on says nothing against the old name.
    ``old_value`` is None if the old name is not set. The toggle is off where either is.
    """
    if old_value is None:
        return bool(boolean(value))
    _warn("variable", old, new)
    return bool(boolean(value) and boolean(old_value))


def renamed_key(job: Any, old: str, new: str) -> Any:
    """Return a job with a key under its new name, and show a deprecation warning where it has the old one.

    Where a job has both, the new one counts. What is no dictionary is returned as it is.
    """
    if not isinstance(job, Mapping) or old not in job:
        return job
    _warn("key", old, new)
    return {new: job[old], **{key: value for key, value in job.items() if key != old}}


def _warn(what: str, old: str, new: str) -> None:
    Display().deprecated(
        f"The {what} {old} is called {new} now. Use {new}.", version="0.3.0", collection_name="longhaul.fleet"
    )
