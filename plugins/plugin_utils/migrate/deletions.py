# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a migration would delete at the destination, and whether that was agreed to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import entries_text

NAMED = 5  # paths


def tell_deletions(predicted: Mapping[str, Any], job: Mapping[str, Any], first: bool, allowed: bool) -> dict[str, str]:
    """Return the sentences ``told``, what the next transfer would delete, and ``problem``, why it will not.

    Either may be empty.

    ``predicted`` is the result of the transfer in check mode, empty if it was not asked. ``first`` says that the
    first copy was not completed, so that the destination may hold things of its own, and ``allowed`` that it may delete
    those.
    """
    count = predicted.get("files_deleted", 0)
    if not count:
        return {"told": "", "problem": ""}
    named = list(predicted.get("deleted", []))[:NAMED]
    names = f": {', '.join(named)}" if named else ""
    more = f" and {count - len(named)} more" if named and count > len(named) else ""
    what = (
        f"the {'first copy' if first else 'next pass'} would delete {entries_text(count)} at "
        f"{job['dest_host']}:{job['dest']} that {job['src_host']}:{job['src']} does not have{names}{more}"
    )
    if not first or allowed or job.get("max_delete") is not None:
        return {"told": what, "problem": ""}
    return {"told": what, "problem": f"{what}. {how_to_agree(job['name'], count)}"}


def how_to_agree(name: str, count: int) -> str:
    """Return what to type where the deletions are meant, and what to do where they are not."""
    return (
        f"Look at them with --check --diff. Where they may go: {agreement(name)}, or max_delete: {count} in the job. "
        "Where they must stay: leave delete out, protect them by a filter, or choose another dest"
    )


def agreement(name: str) -> str:
    """Return what to type where the first copy of a job may delete what the destination has of its own."""
    return f"-e '{json.dumps({'migrate_allow_delete': [name]})}'"
