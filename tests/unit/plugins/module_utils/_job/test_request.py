# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests of jobs, as they are and as they must not be."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._job import request

TRANSFER = {"side": "dest", "part": "drive", "root": "/srv", "peer": {"address": "10.0.0.1", "port": 5000}}
WALK = {"side": "source", "root": "/srv", "rules": [], "only": None, "one_file_system": False}
DIGEST = {**WALK, "fields": ["size"], "special_files": [], "algorithm": "blake2b", "owner_map": None}


def test_requests_are_read_as_they_are():
    later = {"of a later version": 1}
    assert request.parse_transfer_request({**TRANSFER, **later}) == {**TRANSFER, **later}
    assert request.parse_census_request({**WALK, "preserve": ["owner"]})["preserve"] == ["owner"]
    assert request.parse_digest_request({**DIGEST, "content_of": ["a"]})["content_of"] == ["a"]


@pytest.mark.parametrize(
    "more",
    [
        {"root": None},
        {"peer": []},
        {"peer": {"port": "5000"}},
        {"peer": {"port": True}},
        {"peer": {"host_keys": "ssh-ed25519 AAAA"}},
        {"peer": {"cmd": [1]}},
        {"peer": {"patience": "5"}},
        {"serve": {"ports": ["80"]}},
        {"serve": {"allow": None}},
    ],
)
def test_what_a_job_cannot_work_by_is_refused_with_what_to_do(more):
    with pytest.raises(TransferFailed, match="request cannot be read: .*Run the task again"):
        request.parse_transfer_request({**TRANSFER, **more})


@pytest.mark.parametrize("more", [{"rules": ["a", 1]}, {"fields": None}, {"only": 5}, {"content_of": [1]}, {"root": 1}])
def test_no_tree_is_read_by_half_a_request(more):
    with pytest.raises(TransferFailed, match="request cannot be read"):
        request.parse_digest_request({**DIGEST, **more})
    with pytest.raises(TransferFailed, match="request cannot be read"):
        request.parse_census_request(DIGEST)


@pytest.mark.parametrize(
    "stored", [None, [], {"settings": 1}, {"settings": {"method": []}}, {"settings": {"check": 0}}]
)
def test_what_stands_in_a_damaged_file_is_left_out(stored):
    assert request.parse_request(stored) == {}


def test_what_is_right_in_a_damaged_file_is_kept():
    stored = {"root": "/srv", "part": 5, "settings": {"method": "stream"}, "peer": {"port": 1}}
    assert request.parse_request(stored) == {"root": "/srv", "settings": {"method": "stream"}, "peer": {"port": 1}}
