# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A parameter as it is written into rsyncd.conf. Source: rsyncd.conf(5)."""

from __future__ import annotations

import re

_SPACE = " \t\r\v\f"  # what isspace() takes for space in the C locale, but for the newline


def conf_line(name: str, value: str) -> str:
    """Return the line; raise ValueError if the value cannot stand in this format.

    A newline would begin another parameter, and rsync expands %VARIABLES% and cuts spaces and backslashes at the end.
    """
    if re.search(r"[\r\n\0]|%\w+%", value) or value != value.strip(_SPACE) or value.endswith("\\"):
        raise ValueError(f"{name} = {value!r} cannot be written into rsyncd.conf")
    return f"{name} = {value}"


def yes_or_no(value: bool) -> str:
    """Return a boolean in words."""
    return "yes" if value else "no"
