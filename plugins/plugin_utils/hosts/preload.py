# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Do once, in ansible-playbook's own process, what each task would otherwise do again.

Ansible runs each task in a worker that it forks, and imports the action of a task before that. So an action that calls
``prepare`` when it is imported has it done for all of its tasks.
"""

from __future__ import annotations

import contextlib
import importlib

from ..common.argument_spec import documented_options
from .engine_digest import engine_digest

_CERTIFICATES = (
    "cryptography.x509",
    "cryptography.hazmat.primitives.serialization",
    "cryptography.hazmat.primitives.asymmetric.ec",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
)


def prepare(documentation: str) -> None:
    """Know the engine, read the options of an action, and import what makes certificates where it is installed."""
    engine_digest()
    documented_options(documentation)
    for name in _CERTIFICATES:
        with contextlib.suppress(ImportError):  # ansible-core brings it; ansible-test imports plugins without it
            importlib.import_module(name)
