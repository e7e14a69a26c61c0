# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that several places ask of hosts, written in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.longhaul.fleet.plugins.module_utils._job.steps import (
        Clear,
        JobKey,
        KeepRecord,
        Poll,
        Step,
        Stop,
        Sync,
    )


def poll(folder: JobKey, seconds: float) -> Poll:
    """Return the step that waits so long for the end of a job."""
    return {"do": "poll", "until": [], "wait": seconds, **folder}


def stop(folder: JobKey, succeeded: bool = True) -> Stop:
    """Return the step that ends a job; where the transfer succeeded, the job drops partial files."""
    return {"do": "stop", "succeeded": succeeded, **folder}


def clear(folder: JobKey) -> Clear:
    """Return the step that removes what a job left in the state folder."""
    return {"do": "clear", **folder}


def sync(path: str) -> Sync:
    """Return the step that waits until the disk has a tree."""
    return {"do": "sync", "path": path}


def keep_record(identity: str, record: Mapping[str, object]) -> KeepRecord:
    """Return the step that keeps a record of a job at its destination; ``identity`` is that of its transfer."""
    return {"do": "keep_record", "id": identity, "record": record}


def end(folder: JobKey) -> list[Step]:
    """Return the steps that leave nothing of a job that has done its work."""
    return [stop(folder), clear(folder)]
