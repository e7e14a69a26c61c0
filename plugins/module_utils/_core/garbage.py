# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Have Python seldom look for unused objects that refer to each other in a cycle."""

from __future__ import annotations

import gc


def rest_from_garbage() -> None:
    """Look for cycles seldom from now on, and never again among what is there.

    What is imported stays, and entries come and go by the thousand and hold no cycles: looking for some costs time and
    finds nothing. As the first thing of a process it makes the imports cheaper.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
