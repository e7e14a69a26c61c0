# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The payload of each message, byte by byte, and what is refused."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.frames import FrameError
from ansible_collections.longhaul.fleet.plugins.module_utils._engine.wire.messages import (
    Ack,
    Begin,
    Bye,
    End,
    FailedMessage,
    Fetched,
    Fewer,
    Got,
    Hash,
    Hello,
    Ping,
    Raw,
    Ready,
    Scanned,
    Sent,
    Sums,
    Total,
    Want,
)

SHA = {"block": 4096, "sums": "AAAA", "algorithm": "blake2b"}

# What the versions that are in use send: these bytes stay.
PAYLOADS = [
    (Total(7, 1 << 40, 1 << 41), b'{"files":7,"bytes":1099511627776,"apparent":2199023255552}'),
    (Scanned(7, 0, False), b'{"clean":false,"files":7,"bytes":0}'),
    (Want(3, [0, 2], {2: 10}, {2: [[10, 20]]}), b'{"id":3,"index":[0,2],"have":{"2":10},"ranges":{"2":[[10,20]]}}'),
    (
        Want(3, [1], {}, {}, {1: SHA}),
        b'{"id":3,"index":[1],"have":{},"ranges":{},"sums":{"1":{"block":4096,"sums":"AAAA","algorithm":"blake2b"}}}',
    ),
    (Hash(3, [4]), b'{"id":3,"index":[4]}'),
    (Sums(3, {4: "ab", 5: ""}), b'{"id":3,"sums":{"4":"ab","5":""}}'),
    (Sent(3, {0: "vanished"}, {1: "ab"}, 12), b'{"id":3,"problems":{"0":"vanished"},"sums":{"1":"ab"},"bytes":12}'),
    (Ack(3, 9, {1: "why"}, 5), b'{"id":3,"accounted":9,"again":{"1":"why"},"matched":5}'),
    (Got(3, 1, [[0, 5]]), b'{"id":3,"index":1,"ranges":[[0,5]]}'),
    (Begin(3, tar=True), b'{"id":3,"tar":true}'),
    (End(3, 10, 77), b'{"id":3,"bytes":10,"crc":77}'),
    (Hello(1, "ab" * 8, False), b'{"version":1,"id":"abababababababab","check":false}'),
    (Ready(3), b'{"id":3}'),
    (Fetched(3), b'{"id":3}'),
    (Fewer([3, 2]), b'{"streams":[3,2]}'),
    (Raw(4), b'{"index":4}'),
    (FailedMessage("a\udcff"), b'{"reason":"a\\udcff"}'),
    (Ping(), b""),
    (Ping(works=True), b"w"),
    (Bye(), b""),
]


@pytest.mark.parametrize(("message", "payload"), PAYLOADS, ids=lambda value: type(value).__name__)
def test_each_message_has_the_bytes_it_always_had(message, payload):
    assert message.dump() == payload
    assert type(message).parse(payload).dump().replace(b',"sums":{}}', b"}") == payload


def test_messages_that_are_written_and_read_in_their_own_way():
    assert Begin(3).dump() == b'{"id":3}'
    assert Begin.parse(b'{"id":3}').tar is False
    assert FailedMessage.parse(b"{}").reason == "the peer failed"


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Want, b'{"id":1,"index":[5]}'),
        (Want, b'{"id":1,"index":[-1]}'),
        (Want, b'{"id":1,"index":[0],"have":{"5":0}}'),
        (Want, b'{"id":1,"index":[0],"ranges":{"5":[]}}'),
        (Want, b'{"id":1,"index":[0],"sums":{"5":{}}}'),
        (Hash, b'{"id":1,"index":[0,99]}'),
        (Sums, b'{"id":1,"sums":{"5":""}}'),
        (Sent, b'{"id":1,"problems":{"5":""},"bytes":0}'),
        (Sent, b'{"id":1,"sums":{"5":""},"bytes":0}'),
        (Ack, b'{"id":1,"accounted":0,"again":{"5":""},"matched":0}'),
    ],
)
def test_positions_outside_of_a_shard_are_refused(kind, payload):
    message = kind.parse(payload)
    with pytest.raises(FrameError, match="that its shard does not have"):
        message.check(5)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (Want, b'{"id":1,"index":"0"}'),
        (Want, b'{"id":1,"index":["0"]}'),
        (Want, b'{"id":1,"index":[true]}'),
        (Want, b'{"id":1,"index":[0],"have":{"0":"many"}}'),
        (Want, b'{"index":[0]}'),
        (Sums, b'{"id":1,"sums":{"-1":""}}'),
        (Sums, b'{"id":1,"sums":{"x":""}}'),
        (Sums, b'{"id":1,"sums":{"\\u00b2":""}}'),
        (Sums, b'{"id":1,"sums":{"%s":""}}' % (b"9" * 5000)),
        (Sums, b'{"id":1,"sums":[]}'),
        (Ack, b'{"id":1,"again":{},"matched":0}'),
        (Sent, b'{"id":1,"problems":{},"sums":{}}'),
        (Total, b'{"files":-1,"bytes":0}'),
        (Total, b'{"files":1,"bytes":9223372036854775808}'),
        (Got, b'{"id":1,"ranges":[]}'),
        (End, b'{"id":1,"bytes":1}'),
        (End, b"[]"),
        (End, b"{"),
    ],
)
def test_messages_that_no_end_sends_are_refused(kind, payload):
    with pytest.raises(FrameError):
        kind.parse(payload)
