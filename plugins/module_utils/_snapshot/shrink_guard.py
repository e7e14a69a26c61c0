# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a job lost suspiciously much since the snapshot before. Private to the collection.

Pure. What makes a source lose most of its files is seldom what somebody wanted: a file system that is not mounted, a
wrong filter, somebody else's program.
"""

from __future__ import annotations


def suspicion(gone: int, before: int, limit: float) -> str:
    """Return what is suspicious, or an empty string.

    ``before`` are the names of the snapshot before that are no directories, ``gone`` those of them that are not in the
    new one, ``limit`` the per cent of them that may be gone. 100 allows everything.
    """
    if not before or gone * 100 <= limit * before:
        return ""
    share = f"{gone * 100 / before:.1f} %"
    return f"{share} of the files of the snapshot before are gone ({gone} of {before}), and the limit is {limit:g} %"
