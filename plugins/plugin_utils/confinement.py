# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the hosts say that their own parts of a transfer had given up. Pure."""

from __future__ import annotations

from typing import Iterable

from ansible_collections.longhaul.fleet.plugins.module_utils._core.confinement.plan import MEASURES
from ansible_collections.longhaul.fleet.plugins.module_utils._core.context import Peer
from ansible_collections.longhaul.fleet.plugins.module_utils._core.outcome import Outcome
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.confinement import CHROOT, CONFINE_ROOT

_KNOWN = (*MEASURES, CHROOT, CONFINE_ROOT)


def confinement_of(driver: str, outcome: Outcome | None, ready: Peer) -> dict[str, list[str]]:
    """Return what was in force on each side: each says it of itself, and a word that means nothing here is left out.

    ``ready`` is what the serving end said when it was.
    """
    server = "dest" if driver == "source" else "source"
    rsync = [CHROOT] if ready.get("chroot") else [ready.get("confined", "")]
    return {
        driver: _known(outcome.confinement if outcome is not None else ()),
        server: _known([*ready.get("confinement", ()), *rsync]),
    }


def _known(words: Iterable[str]) -> list[str]:
    said = set(words)
    return [word for word in _KNOWN if word in said]
