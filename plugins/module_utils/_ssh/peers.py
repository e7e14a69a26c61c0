# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The peers of the role ssh_client, completed from the inventory and checked before any host is asked."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

NAME = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*\Z")
PATTERN = re.compile(r"[A-Za-z0-9_.:*?%][A-Za-z0-9_.:*?%-]*\Z")
KEYWORD = re.compile(r"[A-Za-z][A-Za-z0-9]*\Z")
NOBODYS = ("longhaul.invalid", "host", "192.0.2.1")  # a pattern that matches them all matches nearly everything
BLOCKS = ("host", "match", "include")
# What the role writes itself, and from which of its variables.
OWN = {
    "ciphers": "ssh_client_ciphers",
    "compression": "ssh_client_compression",
    "forwardx11": "ssh_client_forward_x11",
    "requesttty": "ssh_client_terminal",
    "ipqos": "ssh_client_ipqos",
    "serveraliveinterval": "ssh_client_alive_interval",
}


class InventoryHost(TypedDict):
    """Variables of a host in the inventory."""

    address: str  # empty: nothing
    port: int  # 0: nothing
    aes: bool | None  # whether it is quick at AES, as far as it has told


class SshPeer(TypedDict):
    """A peer of an ssh client, with what the inventory knows of it."""

    name: str
    address: str
    port: int  # 0: as ssh is configured
    patterns: list[str]
    options: dict[str, str]  # as ssh_config takes them
    legacy: bool


class Peers(TypedDict):
    """The peers of an ssh client, and what is wrong with them."""

    peers: list[SshPeer]
    problems: list[str]


def complete_peers(
    peers: Sequence[Mapping[str, Any]],
    inventory: Mapping[str, InventoryHost],
    own_name: str,
    legacy: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Peers:
    """Return the peers of an ssh client, with what the inventory knows of each by its name, and the problems."""
    problems: list[str] = []
    completed: list[SshPeer] = []
    names = [str(peer.get("name") or "") for peer in peers]
    for number, peer in enumerate(peers, 1):
        name = names[number - 1]
        called = f"peer {name}" if name else f"peer number {number}"
        if names.index(name) != number - 1:
            problems.append(f"{called} is there twice. Write all that counts for it into one entry.")
            continue
        wanted = {**(options or {}), **(peer.get("options") or {})}
        one = _complete(peer, name, inventory.get(name), name in legacy)
        problems += [f"{called}: {problem}" for problem in _problems_of_one(one, wanted)]
        one["options"] = {str(keyword): _text(value) for keyword, value in wanted.items()}
        if name != own_name:
            completed.append(one)
    for name in legacy:
        if name not in names:
            problems.append(
                f"ssh_client_legacy_peers names {name}, which is not the name of a peer in ssh_client_peers. "
                "Old algorithms are allowed for peers by name, so a name that matches none is a mistake."
            )
    return {"peers": completed, "problems": problems}


def _complete(peer: Mapping[str, Any], name: str, known: InventoryHost | None, legacy: bool) -> SshPeer:
    """Add what the inventory knows. What stands in the peer itself counts more. Its options are not among it yet."""
    address = peer.get("address") or (known["address"] if known else "")
    patterns = peer.get("patterns") or [name, *([address] if address else [])]
    return {
        "name": name,
        "address": str(address),
        "port": int(peer.get("port") or (known["port"] if known else 0)),
        "patterns": list(dict.fromkeys(str(pattern) for pattern in patterns)),
        "options": {},
        "legacy": legacy,
    }


def _problems_of_one(peer: SshPeer, options: Mapping[str, Any]) -> list[str]:
    problems = []
    for what, text in (("name", peer["name"]), ("address", peer["address"])):
        if not NAME.match(text) and (text or what == "name"):
            return [f"the {what} {text!r} is no host name or address."]
    if not 0 <= peer["port"] < 65536:
        problems.append(f"the port {peer['port']} is not from 1 to 65535.")
    for pattern in peer["patterns"]:
        if not PATTERN.match(pattern):
            problems.append(f"the pattern {pattern!r} is none that can stand after Host: no spaces, commas or '!'.")
        elif all(fnmatch.fnmatchcase(nobody, pattern) for nobody in NOBODYS):
            problems.append(
                f"the pattern {pattern!r} matches every host, so it would change every ssh on the machine. "
                "Name the peers, or a part of their names."
            )
    for keyword, value in options.items():
        problems += _problems_of_option(str(keyword), value)
    return problems


def _problems_of_option(keyword: str, value: Any) -> list[str]:
    if not KEYWORD.match(keyword):
        return [f"the option {keyword!r} is no keyword of ssh_config."]
    if keyword.lower() in BLOCKS:
        return [f"the option {keyword} would end the block of the peers, and what follows would count for others."]
    if keyword.lower() in OWN:
        return [f"the option {keyword} is written from {OWN[keyword.lower()]}. Set that."]
    if isinstance(value, (list, dict)) or value is None or re.search(r"[\r\n]", str(value)) or not str(value).strip():
        return [f"the option {keyword} needs one value on one line, not {value!r}."]
    return []


def _text(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
