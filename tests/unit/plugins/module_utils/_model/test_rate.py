# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rates as people write them."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._model.rate import parse_rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [("0", 0), ("800k", 819200), ("50M", 52428800), ("1.5GiB", 1610612736), ("20 MB/s", 20971520), ("7", 7)],
)
def test_rates_are_read(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "fast", "-5M", "5X", "5 M M"])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="no rate"):
        parse_rate(text)
