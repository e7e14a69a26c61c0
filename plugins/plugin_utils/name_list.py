# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that a user gives for one run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def read_names(given: Any) -> list[str]:
    """Return names that come as a list, or as one text from ``-e backup_only=data,web1``."""
    parts = [given] if isinstance(given, str) or not isinstance(given, Sequence) else given
    return [name.strip() for part in parts for name in str(part).split(",") if name.strip()]
