# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An end of a transfer by stream that lies: ``lying_stream.py SIDE LIES ends.py REQUEST.json RESULT.json``.

It is the real end but for what it says: ``LIES`` is a list as JSON of ``[name, turn, choice, where]``, which means that
the message number ``turn`` of those that this lie concerns is falsified. So the whole conversation is spoken, the peer
has asked for what it gets, and one rule at a time is broken. ``choice`` picks a name or a value, ``where`` an entry.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any, Callable

COLLECTION = "ansible_collections.longhaul.fleet"
UNITS = f"{COLLECTION}.plugins.module_utils"
ID = b"0123456789abcdef"  # of another transfer
OWN = b"its-own-identity"  # as long as an id: that of this transfer takes its place
NAMES = (  # where nothing of a source may ever arrive, and what the tree and its older copy have
    *(b"../escaped", b"..", b"/escaped", b".", b"a/../../escaped", b"folder/../../escaped", b"x\0y"),
    *(b".longhaul-" + identity + below for identity in (ID, OWN) for below in (b"", b"/tmp", b"/partial/x")),
    *(b"", b"folder", b"folder/deep", b"same", b"same/below", b"changed", b"linked", b"link", b"link/escaped", b"new"),
    *(b"excluded.key", b"zzz", b"a" * 256, b"/".join([b"d"] * 600)),
)
TARGETS = (b"../outside", b"../older", b"/", b"../older/same", b".")
NUMBERS = (0, 1, 2, 3, -1, 2**31, 2**63)


def _pick(values: Any, choice: int) -> Any:
    return values[choice % len(values)]


def _entry(change: Callable[[Any, int], dict[str, Any]]) -> Callable[[Any, int, int], None]:
    """Return a lie about one entry of a shard."""

    def lie(shard: Any, choice: int, where: int) -> None:
        if shard.entries:
            place = where % len(shard.entries)
            entry = shard.entries[place]
            shard.entries[place] = entry._replace(**change(entry, choice))

    return lie


def _symlink(_entry: Any, choice: int) -> dict[str, Any]:
    target = _pick(TARGETS, choice)
    return {"type": "l", "target": target, "size": len(target), "mode": 0o777}


def _twice(shard: Any, choice: int, where: int) -> None:
    if shard.entries:
        one = shard.entries[where % len(shard.entries)]
        shard.entries.insert(choice % (len(shard.entries) + 1), one)


def _below_a_link(shard: Any, choice: int, where: int) -> None:
    """Make an entry a link that leads out, and put a file below it."""
    if shard.entries:
        place = where % len(shard.entries)
        link = shard.entries[place]._replace(**_symlink(None, choice))
        file = link._replace(path=link.path + b"/escaped", type="f", target=b"", size=0, mode=0o4755)
        shard.entries[place : place + 1] = [link, file]


def _attribute(name: str, *values: Any) -> Callable[[Any, int, int], None]:
    """Return a lie about a message as a whole."""

    def lie(message: Any, choice: int, _where: int) -> None:
        setattr(message, name, _pick(values, choice))

    return lie


# What each lie falsifies: a kind of message, and how.
OF_A_SOURCE: dict[str, tuple[str, Callable[[Any, int, int], None]]] = {
    "another name": ("Shard", _entry(lambda _entry, choice: {"path": _pick(NAMES, choice)})),
    "a link that leads out": ("Shard", _entry(_symlink)),
    "a file below a link": ("Shard", _below_a_link),
    "another type": ("Shard", _entry(lambda _entry, choice: {"type": _pick("fdlpsbc", choice), "rdev": 0x103})),
    "set-id": ("Shard", _entry(lambda _entry, choice: {"mode": 0o6777, "uid": _pick((0, 1234), choice)})),
    "another size": ("Shard", _entry(lambda _entry, choice: {"size": _pick((0, 1, 7, 400_000, 2**40), choice)})),
    "the time of another": ("Shard", _entry(lambda _entry, choice: {"mtime_ns": _pick((0, 10**18, -1), choice)})),
    "one file with another": ("Shard", _entry(lambda _entry, choice: {"dev": 1, "ino": choice % 3, "nlink": 2})),
    "attributes": ("Shard", _entry(lambda _entry, _choice: {"xattrs": ((b"user.evil", b"1"), (b"user.two", b"2"))})),
    "twice": ("Shard", _twice),
    "backwards": ("Shard", lambda shard, _choice, _where: shard.entries.reverse()),
    "nothing": ("Shard", lambda shard, _choice, _where: shard.entries.clear()),
    "again": ("Shard", _attribute("attempt", 2, 3, 4, 0)),
    "another shard": ("Shard", _attribute("id", *NUMBERS)),
    "not listed": ("Shard", _attribute("opaque", [0], [1], [0, 1, 2], [99])),
    "only tags": ("Shard", _attribute("tagged", [0], [1], [0, 1, 2], [99])),
    "clean": ("Scanned", _attribute("clean", True, False)),
    "another total": ("Scanned", _attribute("files", *NUMBERS)),
    "sent before": ("Sent", _attribute("id", *NUMBERS)),
    "problems": ("Sent", _attribute("problems", {0: "x"}, {1: "unstable"}, {99: "x"})),
    "other hashes": ("Sent", _attribute("sums", {0: "x"}, {1: "0" * 32}, {})),
    "hashes that fit": ("Sums", _attribute("sums", {0: "x"}, {1: ""}, {99: "x"})),
}
OF_A_DESTINATION: dict[str, tuple[str, Callable[[Any, int, int], None]]] = {
    "other files": ("Want", _attribute("indexes", [0], [0, 1], [99], [-1], [1, 1, 1])),
    "what is there": ("Want", _attribute("have", {0: 5}, {1: 2**63}, {1: -1}, {99: 1})),
    "other ranges": (
        "Want",
        _attribute("ranges", {1: [[0, 5]]}, {1: [[5, 0]]}, {1: [[0, 2**62]]}, {0: [[0, 1]]}, {1: [[-5, 5]]}),
    ),
    "other hashes of blocks": ("Want", _attribute("sums", {1: "x"}, {1: ["x"]}, {0: [1, 2]})),
    "hashes out of turn": ("BlockSums", _attribute("first", *NUMBERS, 128)),
    "hashes of another file": ("BlockSums", _attribute("index", *NUMBERS)),
    "hashes cut short": ("BlockSums", _attribute("sums", b"", b"short", bytes(8), bytes(1 << 19))),
    "another shard": ("Want", _attribute("id", *NUMBERS)),
    "done with": ("Ack", _attribute("id", *NUMBERS)),
    "again": ("Ack", _attribute("again", {0: "x"}, {1: "damaged"}, {99: "x"})),
    "counts": ("Ack", _attribute("accounted", *NUMBERS)),
    "matched": ("Ack", _attribute("matched", *NUMBERS)),
    "written": ("Got", _attribute("ranges", [[0, 5]], [[0, 2**62]], "x", [[5, 0]])),
}
LIES = {"source": OF_A_SOURCE, "dest": OF_A_DESTINATION}


def lie(side: str, lies: list[tuple[str, int, int, int]], identity: bytes) -> None:
    """Have this process falsify what its end says, on the way to the peer: the end itself does not know it.

    ``identity`` is that of the transfer.
    """
    frames = importlib.import_module(f"{UNITS}._engine.wire.frames")
    messages = importlib.import_module(f"{UNITS}._engine.wire.messages")
    honest = frames.FrameEncoder.parts
    turns: dict[int, int] = {}

    def parts(self: Any, kind: int, payload: Any) -> Any:
        turn = turns[kind] = turns.get(kind, -1) + 1
        for name, due, choice, where in lies:
            concerned, falsify = LIES[side][name]
            if due == turn and getattr(messages, concerned).kind == kind:
                message = getattr(messages, concerned).parse(payload)
                falsify(message, choice, where)
                payload = message.dump().replace(OWN, identity)
        return honest(self, kind, payload)

    frames.FrameEncoder.parts = parts


def main(side: str, lies: str, _ends: str, *arguments: str) -> int:
    """Lie, and be an end."""
    with open(arguments[0], encoding="utf-8") as request:
        identity = json.load(request)["settings"]["id"].encode()
    lie(side, json.loads(lies), identity)
    importlib.import_module(f"{COLLECTION}.tests.support.unconfined").unconfine()
    ends = importlib.import_module(f"{COLLECTION}.tests.unit.plugins.module_utils._engine.ends")
    return int(ends.main(*arguments))


if __name__ == "__main__":
    del sys.path[0]  # this folder
    sys.exit(main(*sys.argv[1:]))
