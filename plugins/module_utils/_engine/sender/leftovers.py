# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remains of other transfers at a source, which it does not offer. Pure."""

from __future__ import annotations

import os
from typing import Sequence

from ..._core.context import staging_name
from ..._core.counted import counted
from ..._model.paths import escape

_NAMED = 3


def staging_left_out(paths: Sequence[bytes], transfer_id: str) -> list[str]:
    """Return a warning about the folders of other transfers that a source holds; the transfer's own is no news."""
    others = [path for path in paths if path != os.fsencode(staging_name(transfer_id))]
    if not others:
        return []
    named = ", ".join(escape(path) for path in others[:_NAMED]) + (", ..." if len(others) > _NAMED else "")
    return [
        f"{counted(len(others), 'entry of the source was', 'entries of the source were')} left out, because only a "
        f"transfer's own folder has such a name, and no destination takes it: {named}. An interrupted transfer into "
        "the source left what is in there: run that one again, or remove it"
    ]
