# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lease of a job is asked for with, by the tasks of the role that follow migrate_conduct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..fleet.controller import controller_id
from ..fleet.lease import Lease, Terms
from .record import record_id


def lease_of(asked: Mapping[str, Any], firm: bool | None = None) -> Lease:
    """Return the lease of a job that migrate_conduct has in this run; it is renewed, and never taken again.

    ``asked`` has ``job`` (its name), ``identity`` (its trees), the state ``folder``, ``who`` works on it, and for how
    many ``seconds`` the lease lives. Raises OSError and ValueError where the folder does not say who that is.
    """
    identity = asked["identity"]
    terms = Terms(
        job=str(asked["job"]),
        host=str(identity["dest_host"]),
        identity=record_id(identity),
        holder=controller_id(str(asked["folder"])),
        who=str(asked["who"]),
        life=float(asked["seconds"]),
    )
    return Lease(terms, firm, held=True)
