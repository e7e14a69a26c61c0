# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option for TCP's congestion control."""

from __future__ import annotations

import re

AUTO = "auto"  # another than the host's where it pays
NONE = "none"  # the host's own
NAME = re.compile(r"[a-z][a-z0-9_-]{0,14}")  # as the kernel names them


def parse_congestion(text: str) -> str:
    """Return what was said: AUTO, NONE or the name of a congestion control. Raises ValueError."""
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name of a congestion control: use {AUTO}, {NONE} or a name such as bbr")
    return text
