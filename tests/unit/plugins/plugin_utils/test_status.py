# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What counts as the status of a job."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.plugin_utils.status import parse_status


def test_a_status_is_read_as_it_is():
    said = {"state": "running", "alive": True, "progress": {"bytes_done": 5}, "of a later version": 1}
    assert parse_status(said) == said


@pytest.mark.parametrize("said", [{}, {"state": "running"}, {"alive": True}, {"state": 1, "alive": True}])
def test_what_is_no_status_is_refused(said):
    with pytest.raises(ValueError, match="no status of a job"):
        parse_status(said)
