# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the messages with which ssh fails."""

from __future__ import annotations

import re

# ssh's words (a group of the pattern fills {0}), and what they mean to who runs the transfer. First match wins: the
# reasons stand before what follows from them.
_WORDS = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for \S+ has changed",
        "the host key of the peer is not the one that it told through Ansible. Another machine answers at this "
        "address and port (a NAT, a stale DNS name, a second host with the address), or somebody is in between: "
        "nothing was sent. Check longhaul_address and the port, and compare 'ssh-keyscan' with the files "
        "/etc/ssh/ssh_host_*_key.pub on that host.",
    ),
    (
        r"No (\S+) host key is known for|Host key verification failed",
        "the peer showed a host key of a type that it did not tell through Ansible, so it cannot be trusted and "
        "nothing was sent. Make the .pub files of all its host keys readable, restart its sshd if its keys were "
        "replaced since it started, and run again.",
    ),
    (
        r"Load key .*: (.+)",
        "the one-time key cannot be used on this end ({0}). Where FIPS mode or a crypto policy forbids its type, name "
        "the method rsyncd.",
    ),
    (
        r"(?:Identity file .* not accessible|no such identity: .*): (.+?)\.?$",
        "the one-time key is not readable on this end ({0}), because its job ended. Run again.",
    ),
    (
        r"Too many authentication failures",
        "the peer's sshd cut the login short after other keys were tried. Remove IdentityFile from "
        "/etc/ssh/ssh_config for this host, or raise MaxAuthTries there.",
    ),
    (
        r"Permission denied \(([^)]*)\)",
        "the peer's sshd refused the one-time key (it accepts: {0}). Look on that host at 'sshd -T' for "
        "PubkeyAuthentication, PermitRootLogin, AllowUsers, AllowGroups, AuthenticationMethods and AuthorizedKeysFile, "
        "and at the sshd log for 'bad ownership or modes' or a from= address that a NAT has changed; or let the "
        "transfer start its own sshd by giving it ports that can be reached (port_range).",
    ),
    (
        r"Could not resolve hostname (\S+): (.+)",
        "this end does not know the name {0} ({1}). Set longhaul_address for the peer to an IP address.",
    ),
    (
        r"connect to (?:host|address) (\S+) port (\d+): Connection refused",
        "at {0} nothing listens on port {1}, or a firewall rejects it. Start sshd there, set the right port, open the "
        "firewall for this end's address, or let that host connect (connect: pull or push).",
    ),
    (
        r"connect to (?:host|address) (\S+) port (\d+): (?:Connection|Operation) timed out",
        "{0} did not answer on port {1}: the address is wrong, the host is down, or a firewall drops the packets. "
        "Open the port for this end's address, or let that host connect (connect: pull or push).",
    ),
    (
        r"connect to (?:host|address) (\S+) port (\d+): (No route to host|Network is unreachable|Permission denied)",
        "this end has no way to {0} ({2}): a missing route, a host that is down, or a firewall that rejects. Set "
        "longhaul_address for the peer to an address that this end can reach.",
    ),
    (
        r"no matching (cipher|MAC) found\. Their offer: (\S+)",
        "the two hosts share no {0}. The peer offers {1}. Name one of them that this end has too (ssh_ciphers; "
        "'ssh -Q cipher' lists them), or update the older OpenSSH.",
    ),
    (
        r"no matching (key exchange method|host key type) found\. Their offer: (\S+)",
        "the two hosts share no {0}. The peer offers {1}. Update the older OpenSSH, or allow one of these in "
        "/etc/ssh/ssh_config for this host.",
    ),
    (
        r"Unknown cipher type '([^']*)'",
        "this end's ssh does not have the cipher {0} (arcfour left OpenSSH with 7.6). Name one that 'ssh -Q cipher' "
        "lists on both ends, or leave ssh_ciphers out.",
    ),
    (
        r"(?:^|: |^(\S+) line \d+: )Bad SSH2 cipher spec '([^']*)'",
        "the client configuration on this end names a cipher that its ssh does not have ({1}), which breaks every ssh "
        "on this host. Correct the Ciphers line ({0}).",
    ),
    (
        r"^(\S+?):? line \d+: (Bad configuration option.*)",
        "ssh on this end cannot read its configuration ({0}: {1}). Correct it: every ssh on this host fails with it.",
    ),
    (
        r"Can't open user config file (\S+): (.+)",
        "ssh on this end cannot read {0} ({1}). Make it readable for the user that runs the transfer.",
    ),
    (
        r"Exceeded MaxStartups|Not allowed at this time",
        "the peer's sshd turns new connections away: too many logins at once, or a penalty for this address. "
        "Wait some minutes; then run fewer transfers to that host at once, or raise MaxStartups and exempt this end's "
        "address in PerSourcePenaltyExemptList there.",
    ),
    (
        r"(?:kex|ssh)_exchange_identification: (?:read: )?(Connection (?:reset by peer|closed by remote host))",
        "the peer closed the connection before it said who it is ({0}). So does an sshd that has too many logins "
        "at once (MaxStartups) or that punishes an address (PerSourcePenalties), a TCP wrapper or fail2ban. Wait some "
        "minutes, run fewer transfers to that host at once, and look at its sshd log.",
    ),
    (
        r"(banner exchange|kex_exchange_identification: banner line contains invalid characters)",
        "what listens at that address and port does not speak ssh (no greeting: {0}). Set the port of the sshd there.",
    ),
    (
        r"(?:Corrupted MAC on input|message authentication code incorrect|Bad packet length)",
        "data was damaged on the way, so ssh ended the connection. A network card, cable, driver offload or memory "
        "is faulty on the path: look at 'ethtool -S', and try with offloading off.",
    ),
    (
        r"Timeout, server (\S+) not responding",
        "the connection to {0} was lost: no answer for the whole timeout. Fix the network and run again; it goes on "
        "where it stopped.",
    ),
    (
        r"(Connection to \S+ closed by remote host|Connection reset by \S+|Connection closed by \S+|"
        r"client_loop: send disconnect: Broken pipe|packet_write_wait: .*|Connection to \S+ port \d+ timed out)",
        "the connection was lost ({0}). The peer's sshd or host went down, or the network did. Run again; it goes "
        "on where it stopped.",
    ),
)
_EXPLAINED = tuple((re.compile(pattern, re.MULTILINE), meaning) for pattern, meaning in _WORDS)


def unreachable(stderr: str) -> bool:
    """Return whether ssh says that nothing answered at all: then the other direction may be open."""
    return bool(re.search(r"connect to (?:host|address) \S+ port \d+: ", stderr))


def explain(stderr: str, rc: int) -> str | None:
    """Return what ssh's own words mean, why it matters and what to do; None if it said nothing known.

    ``stderr`` may hold other lines too: banners, rsync's own. ``rc`` is the exit code of what ran ssh; with 0 there is
    nothing to explain. The words are those of OpenSSH 7.6 to 10 in the C locale.
    """
    if rc == 0:
        return None
    for pattern, meaning in _EXPLAINED:
        found = pattern.search(stderr)
        if found:
            return meaning.format(*(group or "?" for group in found.groups()))
    return None
