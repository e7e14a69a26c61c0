# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How far the two hosts of a transfer are trusted, by the control node's word alone. Pure.

With full trust neither host is expected to attack the other. With none, root on either may, so that only the methods
run for which tests show that it does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..common.refusal import Refusal

FULL, NONE = "full", "none"
VARIABLE = "longhaul_trust"  # of a host, in the inventory
NO_PORT = (
    "No method that uses the port of ssh was tried, since trust is none: open a port between the hosts (port, "
    "port_range), or set trust: full if you trust root on both hosts"
)


class Offer(NamedTuple):
    """A method that runs between hosts that are not trusted, in both directions; each has an attack test."""

    method: str
    push: str  # on which condition the source may connect, if there is any
    pull: str  # ... the destination
    links: bool  # with link_dest, too


# What docs/security.md publishes, in these words. rsync_trust decides whether rsync can be confined.
OFFERS = (
    Offer("stream", "", "", True),
    Offer(
        "rsync",
        "where the destination's rsync can be confined (see above), without filter rules",
        "where the source's rsync can be confined, with one stream and without filter rules",
        False,
    ),
    Offer("sftp", "", "", False),
)
UNTRUSTING = tuple(offer.method for offer in OFFERS)
LINKING = tuple(offer.method for offer in OFFERS if offer.links)


def decide_trust(asked: str | None, hosts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the trust between two hosts: none if the task or the variable of either says so, else full.

    ``hosts`` has the variables of each by its name, which its facts have not set (see host_facts). Raises Refusal for
    a value that is neither.
    """
    said = {asked or FULL}
    for host, variables in hosts.items():
        level = str(variables.get(VARIABLE) or FULL)
        if level not in (FULL, NONE):
            raise Refusal(f"{VARIABLE} of {host} is {level}: give {FULL} or {NONE}")
        said.add(level)
    return NONE if NONE in said else FULL


def refuse_trusting_method(method: str, trust: str, links: bool = False) -> None:
    """Refuse a method that was named and whose hosts must trust each other, where they are not trusted.

    ``links``: files are linked to older copies (``link_dest``).
    """
    if trust != NONE or method == "auto":
        return
    if links and method in UNTRUSTING and method not in LINKING:
        raise Refusal(
            f"trust is none, and method {method} would have to reach the older copies (link_dest), so that one host "
            f"could change them: use method {' or '.join(LINKING)}, or set trust: full if you trust root on both hosts"
        )
    if method not in UNTRUSTING:
        raise Refusal(
            f"trust is none, and with method {method} one host could harm the other: use method "
            f"{', '.join(UNTRUSTING[:-1])} or {UNTRUSTING[-1]}, or set trust: full if you trust root on both hosts"
        )
