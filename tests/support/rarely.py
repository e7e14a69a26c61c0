# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variants of a test that ``make test`` leaves to ``make integration-long``."""

from __future__ import annotations

from typing import Any

import pytest


def rarely(*variants: Any) -> list[Any]:
    """Return variants for ``pytest.mark.parametrize``, marked as long; a tuple has a value for each argument."""
    return [
        pytest.param(*(variant if isinstance(variant, tuple) else (variant,)), marks=pytest.mark.long)
        for variant in variants
    ]


# For tests that let several methods wait side by side: these are in make test, the others in make integration-long.
PAIRS = [pytest.param(("stream", "rsync"), id="first"), *rarely((("rsyncd", "tar_nc"),), (("scp", "sftp"),))]
