# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of a restore, of which a test gives only those that matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.job_options import role_options
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.request import RestoreOptions


def make_options(**given: Any) -> RestoreOptions:
    """Return the options with the defaults of the role; ``client`` is its variable restore_from."""
    return replace(RestoreOptions.parse(role_options("restore", {})), **given)
