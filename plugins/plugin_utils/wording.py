# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words of a warning that another part of the collection recognises."""

from __future__ import annotations

CHANGED_SINCE = "changed at the source after the transfer had begun"
