# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of a restore, of which a test gives only those that matter."""

from __future__ import annotations

from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.restore_run import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.argument_spec import spec_from_documentation
from ansible_collections.longhaul.fleet.plugins.plugin_utils.jobs.restore.request import RestoreOptions


def make_options(**given: Any) -> RestoreOptions:
    """Return the options with the defaults of the action."""
    spec = spec_from_documentation(DOCUMENTATION)
    return RestoreOptions.parse({**{name: one.get("default") for name, one in spec.items()}, **given})
