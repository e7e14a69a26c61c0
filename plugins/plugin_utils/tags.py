# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the tags of a run leave what would be a task with a tag of its own. Pure."""

from __future__ import annotations

from collections.abc import Collection


def is_wanted(tags: Collection[str], run: Collection[str], skip: Collection[str]) -> bool:
    """Return whether a task with ``tags`` would run, by --tags (``run``) and --skip-tags (``skip``), as in Ansible."""
    own = set(tags)
    wanted = bool(own & set(run)) or not set(run).isdisjoint({"all", "tagged"})
    return wanted and not own & set(skip) and not set(skip) & {"all", "tagged"}
