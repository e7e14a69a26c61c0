# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The error for a task that cannot or must not be done as it was asked for."""

from __future__ import annotations

from typing import Any

from .host_text import harmless


class Refusal(Exception):
    """The transfer would be a mistake or cannot work. Says what was found, why it matters and what to type.

    ``details`` are for the task's result.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(harmless(message))
        self.details = details
