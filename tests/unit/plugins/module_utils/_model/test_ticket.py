# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tickets: what is one, and what two of them mean together."""

from __future__ import annotations

import json

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.json_shape import WrongShape
from ansible_collections.longhaul.fleet.plugins.module_utils._model.ticket import (
    FREE,
    MAX_RATE,
    Ticket,
    combine,
    parse_ticket,
)
from hypothesis import given
from hypothesis import strategies as st

TICKETS = st.builds(Ticket, st.booleans(), st.booleans(), st.none() | st.integers(0, MAX_RATE))


@given(TICKETS)
def test_a_ticket_is_read_as_it_was_written(ticket):
    assert parse_ticket(json.loads(json.dumps(ticket.dump()))) == ticket


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "paused",
        {},
        {"paused": True},
        {"paused": 1, "cancelled": False},
        {"paused": True, "cancelled": "no"},
        {"paused": True, "cancelled": False, "rate": -1},
        {"paused": True, "cancelled": False, "rate": MAX_RATE + 1},
        {"paused": True, "cancelled": False, "rate": 1.5},
        {"paused": True, "cancelled": False, "rate": True},
        {"paused": True, "cancelled": False, "rate": "50M"},
        {"paused": True, "cancelled": False, "argv": ["sh"]},
    ],
)
def test_nonsense_is_refused(value):
    with pytest.raises(WrongShape):
        parse_ticket(value)


@given(TICKETS, TICKETS)
def test_either_end_pauses_or_ends_both_and_the_lower_limit_counts(here, there):
    both = combine(here, there)
    swapped = (there, here)
    assert both == combine(*swapped)
    assert both.paused == (here.paused or there.paused) and both.cancelled == (here.cancelled or there.cancelled)
    assert combine(here, FREE) == here
    given_rates = [ticket.rate for ticket in (here, there) if ticket.rate is not None]
    assert all(not rate or (both.rate and both.rate <= rate) for rate in given_rates)


@pytest.mark.parametrize(
    ("rates", "own", "limit"),
    [
        ((None, None), 7, 7),  # that of the transfer
        ((None, None), 0, 0),
        ((0, None), 7, 0),  # none any more
        ((5, None), 7, 5),
        ((9, None), 7, 9),  # a ticket may raise it
        ((5, 3), 7, 3),
        ((0, 3), 7, 3),
    ],
)
def test_the_limit_in_force(rates, own, limit):
    one, other = (Ticket(rate=rate) for rate in rates)
    assert combine(one, other).limit(own) == limit
