# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A destination that has no room. Private to the collection."""

from __future__ import annotations

import errno

from .._job.context import TransferFailed

FULL = (errno.ENOSPC, errno.EDQUOT)


def full(found: str) -> TransferFailed:
    """Give what ends a transfer whose destination has no room, where ``found`` says how that showed."""
    return TransferFailed(
        f"the destination's disk is full ({found}): there is no space or there are no inodes left (see df and df -i). "
        "Make room and run the transfer again; what is in place stays"
    )
