# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words of a warning that another part of the collection recognises, and the words of a warning of Ansible."""

from __future__ import annotations

CHANGED_SINCE = "entries changed at the source after the transfer had begun"


def text_of_warning(warning: object) -> str:
    """Return the text of a warning in the result of a module: since ansible-core 2.19 some are objects."""
    said = getattr(getattr(warning, "event", None), "msg", warning)
    return str(said)
