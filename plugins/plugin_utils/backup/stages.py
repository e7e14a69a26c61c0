# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far a backup can be, and what can happen there. Pure."""

from __future__ import annotations

from enum import Enum


class Stage(Enum):
    """How far a backup is. Reports name what failed by these words."""

    BEGIN = "begin"  # takes the claim, and begins the snapshot
    HOOKS_BEFORE = "hook before"
    TRANSFER = "transfer"
    FILLED = "filled"  # everything has arrived; the hooks after run
    FINISH = "finish"
    PRUNE = "prune"
    CHECK = "check"


class Event(Enum):
    """What happened at a stage."""

    ENTERED = "entered"  # nothing failed
    FAILED = "failed"  # a step of the stage failed
    LOST = "lost"  # a host was lost in the middle of a hook, which took this one out of the play


HOOKS_AFTER = "hook after"  # what failures of these hooks are named by; they do not change the stage
