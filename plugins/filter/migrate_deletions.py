# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a migration would delete at the destination, and whether that was agreed to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

DOCUMENTATION = r"""
name: migrate_deletions
short_description: "Internal: say what a migration would delete"
version_added: 0.1.1
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Says what the next transfer of a migration job would delete, and what stands in the way of that.
  - Part of the role P(longhaul.fleet.migrate#role). What it takes and returns may change in any release.
positional: _input
options:
  _input:
    description: What the transfer predicted in check mode. Empty where it was not asked.
    type: dict
    required: true
  job:
    description: The job, with the options that count for all jobs applied.
    type: dict
    required: true
  first:
    description: Whether the first copy was not completed yet, so that the destination may hold things of its own.
    type: bool
    required: true
  allowed:
    description: Whether the first copy may delete what the destination has of its own.
    type: bool
    required: true
"""

EXAMPLES = r"""
- name: Show what would be deleted
  ansible.builtin.debug:
    msg: "{{ (prediction | longhaul.fleet.migrate_deletions(job=job, first=true, allowed=false)).told }}"
"""

RETURN = r"""
_value:
  description: The sentences C(told), what would be deleted, and C(problem), why it will not be. Either may be empty.
  type: dict
"""

NAMED = 5  # paths


def migrate_deletions(
    predicted: Mapping[str, Any], job: Mapping[str, Any], first: bool, allowed: bool
) -> dict[str, str]:
    """Return what is told, and the problem."""
    count = predicted.get("files_deleted", 0)
    if not count:
        return {"told": "", "problem": ""}
    named = list(predicted.get("deleted", []))[:NAMED]
    names = f": {', '.join(named)}" if named else ""
    more = f" and {count - len(named)} more" if named and count > len(named) else ""
    what = (
        f"the {'first copy' if first else 'next pass'} would delete {count} {'entry' if count == 1 else 'entries'} at "
        f"{job['dest_host']}:{job['dest']} that {job['src_host']}:{job['src']} does not have{names}{more}"
    )
    if not first or allowed or job.get("max_delete") is not None:
        return {"told": what, "problem": ""}
    return {"told": what, "problem": f"{what}. {how_to_agree(job['name'], count)}"}


def how_to_agree(name: str, count: int) -> str:
    """Say what to type where the deletions are meant, and what to do where they are not."""
    agreed = json.dumps({"migrate_allow_delete": [name]})
    return (
        f"Look at them with --check --diff. Where they may go: -e '{agreed}', or max_delete: {count} in the job. Where "
        "they must stay: leave delete out, protect them by a filter, or choose another dest"
    )


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Any]:
        """Return the filters by name."""
        return {"migrate_deletions": migrate_deletions}
