# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reports of a job for people, from the same templates as the role's tasks use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..fleet.render import render


def render_report(report: Mapping[str, Any]) -> str:
    """Return the report of a job in Markdown."""
    return render("migrate", "report.md.j2", __migrate_report=report)


def render_summary(report: Mapping[str, Any]) -> list[str]:
    """Return the lines about a job for the terminal."""
    return render("migrate", "summary.txt.j2", __migrate_report=report).splitlines()


def render_overall(reports: Sequence[Mapping[str, Any]], now: str, by: str) -> str:
    """Return the report on all jobs in Markdown."""
    return render("migrate", "overall.md.j2", __migrate_reports=list(reports), __migrate_now=now, __migrate_by=by)
