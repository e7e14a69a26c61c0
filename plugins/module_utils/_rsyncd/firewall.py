# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that open a port, for each firewall. Private to the collection. Pure: argv and texts in and out.

Sources: firewall-cmd(1), ufw(8), libnftables-json(5), nft(8), pf.conf(5).
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from typing import Any, Mapping, NamedTuple, Sequence

COMMENT = "longhaul.fleet.rsyncd"
_CLOSING = frozenset(["drop", "reject", "jump", "goto"])


class FirewallRule(NamedTuple):
    """A rule: the query that exits with 0 if it is there, and the command that adds it."""

    query: tuple[str, ...]
    add: tuple[str, ...]


class Chain(NamedTuple):
    """A chain of nftables through which packets for this host come."""

    family: str
    table: str
    name: str
    closed: bool  # it turns something away
    ours: tuple[tuple[int, str], ...]  # handle and comment of rules that were added here before


def addresses(sources: Sequence[str]) -> list[str]:
    """Check and normalise; raises ValueError for what is no address and no network."""
    found = []
    for word in sources:
        try:
            found.append(str(ipaddress.ip_network(word, strict=False)))
        except ValueError:
            raise ValueError(f"{word!r} is no address and no network: a firewall knows no names") from None
    return sorted(set(found))


def firewalld(port: int, sources: Sequence[str]) -> list[FirewallRule]:
    """Return the queries and commands, for the running and for the permanent configuration."""
    asks = []
    for kept in ((), ("--permanent",)):
        if not sources:
            words = [f"port={port}/tcp"]
        else:
            words = [
                f'rich-rule=rule family="ipv{ipaddress.ip_network(source).version}" source address="{source}" '
                f'port port="{port}" protocol="tcp" accept'
                for source in sources
            ]
        asks += [
            FirewallRule(("firewall-cmd", *kept, f"--query-{word}"), ("firewall-cmd", *kept, f"--add-{word}"))
            for word in words
        ]
    return asks


def ufw(port: int, sources: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the arguments of ufw, a rule each. With ``--dry-run`` first they say whether it is there."""
    if not sources:
        return [("allow", f"{port}/tcp", "comment", COMMENT)]
    return [
        ("allow", "proto", "tcp", "from", source, "to", "any", "port", str(port), "comment", COMMENT)
        for source in sources
    ]


def ufw_has(dry_run: str) -> bool:
    """Return whether ``ufw --dry-run allow ...`` says that the rule is there."""
    return "Skipping" in dry_run and "rules" not in dry_run


def input_chains(ruleset: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Chain]:
    """Read ``nft --json list ruleset``: the base chains for packets to this host, but for those of other programs."""
    items = ruleset.get("nftables", [])
    rules: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for rule in (item["rule"] for item in items if "rule" in item):
        rules.setdefault((rule["family"], rule["table"], rule["chain"]), []).append(rule)
    found = []
    for chain in (item["chain"] for item in items if "chain" in item):
        if chain.get("hook") != "input" or chain.get("type") != "filter" or chain["table"] == "firewalld":
            continue
        if chain["family"] not in ("inet", "ip", "ip6"):
            continue
        own = rules.get((chain["family"], chain["table"], chain["name"]), [])
        closing = any(_CLOSING & set(expression) for rule in own for expression in rule.get("expr", []))
        ours = tuple((rule["handle"], rule["comment"]) for rule in own if rule.get("comment", "").startswith(COMMENT))
        closed = closing or chain.get("policy") == "drop"
        found.append(Chain(chain["family"], chain["table"], chain["name"], closed, ours))
    return found


def nft_rules(chain: Chain, port: int, sources: Sequence[str]) -> list[str]:
    """Return the rules for a chain, as nft reads them after ``insert rule``."""
    where = f"{chain.family} {chain.table} {chain.name}"
    if not sources:
        return [f'{where} tcp dport {port} accept comment "{COMMENT} {port} any"']
    rules = []
    for version, family in ((4, "ip"), (6, "ip6")):
        words = [source for source in sources if ipaddress.ip_network(source).version == version]
        if words and chain.family in ("inet", family):
            rules.append(
                f"{where} {family} saddr {{ {', '.join(words)} }} tcp dport {port} accept "
                f'comment "{COMMENT} {port} {_short(words)}"'
            )
    return rules


def _short(words: Sequence[str]) -> str:
    """Return a short digest of a set of addresses: nft allows 127 characters in a comment."""
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def comment_of(rule: str) -> str:
    """Return the comment of a rule that nft_rules made."""
    found = re.search(r'comment "([^"]*)"$', rule)
    return found.group(1) if found else ""


def nft_file(rules: Sequence[str]) -> str:
    """Write the file that is read after the ruleset."""
    return "".join(f"insert rule {rule}\n" for rule in rules)


def nft_main(text: str, file: str) -> str:
    """Return the ruleset's file with a line that reads ours, at its end: the tables are there by then."""
    line = f'include "{file}"'
    if re.search(rf"(?m)^\s*{re.escape(line)}\s*$", text):
        return text
    return text + ("" if text.endswith("\n") or not text else "\n") + line + "\n"


def pf_rules(port: int, sources: Sequence[str]) -> str:
    """Write the rules of pf's anchor."""
    origin = "any" if not sources else "{ " + ", ".join(sources) + " }"
    return f"pass in quick proto tcp from {origin} to any port {port}\n"


def pf_main(text: str, anchor: str, file: str) -> str:
    """Return pf.conf with the anchor, before the first rule that filters: a quick one would hide it."""
    if re.search(rf'(?m)^\s*anchor\s+"{re.escape(anchor)}"', text):
        return text
    lines = text.splitlines()
    first = next(
        (number for number, line in enumerate(lines) if re.match(r"\s*(block|pass|anchor|antispoof|match)\b", line)),
        len(lines),
    )
    lines[first:first] = [f'anchor "{anchor}"', f'load anchor "{anchor}" from "{file}"']
    return "\n".join(lines) + "\n"
