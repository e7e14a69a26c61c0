# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the driving end calls OpenSSH, and which cipher it asks for. Private to the collection.

The client's *system-wide* configuration is read (``-F /etc/ssh/ssh_config``), the user's own is not. The system's
file is where a crypto policy lives (RHEL includes it there, in ``Match final all``), and ``-F none`` would leave the
policy out and so bring back what it bans. The user's file could add keys, commands or jump hosts. Whatever a
transfer depends on is given with ``-o``, and OpenSSH takes the first value that it meets.
"""

from __future__ import annotations

import os
import re
from typing import Any, Sequence

from .._job.context import TransferFailed

SYSTEM_CONFIG = "/etc/ssh/ssh_config"
HELLO = "longhaul hello"  # the command that every serving end answers, see hello_answer()
ALIVE_INTERVAL = 15  # seconds between questions whether the other end is still there
CONNECT_TIMEOUT = 20  # seconds

# From facts measured per GiB of CPU: with AES instructions 0.96 s for GCM, 1.39 for chacha20, 1.57 and more for CTR;
# without them chacha20 runs twice as fast as CTR and three times as fast as GCM.
_RANK_AES = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
)
_RANK_NO_AES = (
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
)
_LEGACY = re.compile(r"^(arcfour.*|.*-cbc|.*-cbc@.*|blowfish.*|cast128.*|3des.*|none)$")


def system_config() -> str:
    """Name the configuration file that ssh shall read: the system's, or ``none`` where there is no such file."""
    return SYSTEM_CONFIG if os.path.isfile(SYSTEM_CONFIG) else "none"


def alias(transfer_id: str) -> str:
    """Name the serving end's host key in known_hosts, whatever address it is reached at."""
    return f"longhaul-{transfer_id}"


def hello_answer(transfer_id: str) -> bytes:
    """Give what a serving end answers to ``HELLO``, to the byte."""
    return f"longhaul {transfer_id} ready\n".encode()


def common_options(
    peer: dict[str, Any], identity: str, known_hosts: str, *, timeout: int = 90, config: str | None = None
) -> list[str]:
    """Give the options that ssh, scp and sftp understand alike: ``-F`` and ``-o``.

    ``peer`` is the driving end's ``Context.peer``: ``alias``, ``user``, ``port`` (see ``SshServer.ready``).
    ``identity`` and ``known_hosts`` are paths. ``timeout``: seconds of silence after which ssh gives up (90 when 0).
    ``config``: the client configuration to read; by default the system's. Every option is known since OpenSSH 7.6.
    """
    pairs = (
        ("User", peer["user"]),
        ("Port", str(peer["port"])),
        ("HostKeyAlias", peer["alias"]),
        ("UserKnownHostsFile", _file_value(known_hosts)),
        ("GlobalKnownHostsFile", "/dev/null"),
        ("StrictHostKeyChecking", "yes"),
        ("UpdateHostKeys", "no"),
        ("VerifyHostKeyDNS", "no"),
        ("CheckHostIP", "no"),
        ("IdentityFile", _file_value(identity)),  # -i would fall back to the user's own keys where it is missing
        ("IdentitiesOnly", "yes"),
        ("IdentityAgent", "none"),
        ("PreferredAuthentications", "publickey"),
        ("PubkeyAuthentication", "yes"),
        ("BatchMode", "yes"),
        ("AddressFamily", "any"),
        ("ProxyCommand", "none"),  # set first, it keeps a configured ProxyJump from applying too
        ("ControlMaster", "no"),  # one connection, one core: bulk data is never multiplexed
        ("ControlPath", "none"),
        ("ForwardAgent", "no"),
        ("ForwardX11", "no"),
        ("ClearAllForwardings", "yes"),
        ("PermitLocalCommand", "no"),
        ("Compression", "no"),
        ("IPQoS", "none"),  # the default for bulk data is CS1, which networks treat worse than best effort
        ("ConnectTimeout", str(CONNECT_TIMEOUT)),
        *_alive_options(timeout or 90),
        ("LogLevel", "INFO"),  # explain() lives on these messages
    )
    options = ["-F", config or system_config()]
    for name, value in pairs:
        options += ["-o", f"{name}={value}"]
    return options


def _alive_options(timeout: int) -> list[tuple[str, str]]:
    """Have ssh give up after ``timeout`` seconds of silence, and ask at least three times before."""
    interval = max(1, min(ALIVE_INTERVAL, timeout // 3))
    return [("ServerAliveInterval", str(interval)), ("ServerAliveCountMax", str(-(-timeout // interval)))]


def ssh_command(
    peer: dict[str, Any],
    identity: str,
    known_hosts: str,
    ciphers: str = "",
    *,
    timeout: int = 90,
    config: str | None = None,
    extra: Sequence[str] = (),
) -> list[str]:
    """Give the argv of ssh up to, but without, the destination. The arguments are those of ``common_options``."""
    argv = ["ssh", "-T", "-x"]
    argv += common_options(peer, identity, known_hosts, timeout=timeout, config=config)
    argv += ["-c", ciphers] if ciphers else []
    return argv + list(extra)


def scp_options(
    peer: dict[str, Any],
    identity: str,
    known_hosts: str,
    ciphers: str = "",
    *,
    timeout: int = 90,
    config: str | None = None,
) -> list[str]:
    """Give the options for scp and for sftp (which has ``-P`` and ``-l`` of its own, so user and port are ``-o``)."""
    options = common_options(peer, identity, known_hosts, timeout=timeout, config=config)
    return options + (["-c", ciphers] if ciphers else [])


def ssh_host(address: str) -> str:
    """Write an address or name as ssh wants its destination: an IPv6 address bare. Raises ValueError."""
    host = address[1:-1] if address.startswith("[") and address.endswith("]") else address
    if not host or host.startswith("-") or re.search(r"[\s@/\x00-\x1f\x7f]", host):
        raise ValueError(f"{address!r} is no address or name of a host")
    return host


def bracketed_host(address: str) -> str:
    """Write an address or name as rsync, scp and sftp want it before the colon: an IPv6 address in brackets."""
    host = ssh_host(address)
    return f"[{host}]" if ":" in host else host


def rsync_shell(argv: Sequence[str]) -> str:
    """Join an argv for rsync's ``-e``, which splits at spaces and knows quotes (doubled inside quotes), no backslash.

    Source: rsync(1), option ``--rsh``.
    """
    return " ".join("'" + word.replace("'", "''") + "'" if _needs_quotes(word) else word for word in argv)


def _needs_quotes(word: str) -> bool:
    return not word or bool(re.search(r"[\s'\"]", word))


def _file_value(path: str) -> str:
    """Write a path as the value of an option that expands ``%`` and splits at spaces."""
    path = path.replace("%", "%%")
    return f'"{path}"' if " " in path else path


def known_hosts_lines(transfer_id: str, host_keys: Sequence[str]) -> str:
    """Give the text of a known_hosts file for the serving end's public keys (``type base64``, one each)."""
    return "".join(f"{alias(transfer_id)} {' '.join(key.split()[:2])}\n" for key in host_keys)


def split_list(text: str) -> list[str]:
    """Split what ``ssh -Q cipher`` prints (one a line), or a comma list, into names."""
    return [name for name in re.split(r"[\s,]+", text) if name]


def source_offer(effective: Sequence[str], supported: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Give the ciphers that the client may ask for.

    ``effective`` is the ``ciphers`` line of ``ssh -G`` with the system's configuration, so within its crypto policy.
    What is merely compiled in (``supported``, from ``ssh -Q cipher``) counts only where the user named it.
    """
    return list(effective) + [name for name in supported if name in wanted and name not in effective]


def choose_ciphers(
    source: Sequence[str], dest: Sequence[str] | None, aes: bool, wanted: Sequence[str] = ()
) -> tuple[str, str]:
    """Choose the ciphers for ``-c``, fastest first, and say why.

    ``source`` is what the connecting end offers (``source_offer``), ``dest`` what the serving sshd offers (``ciphers``
    of ``sshd -T``), None where it is not known. ``aes``: both processors have AES instructions. ``wanted``: names from
    the user, in order of preference; only such a name brings in a legacy cipher (arcfour, CBC, 3DES). The list is a
    selection and another order of ``source``, so nothing that a policy bans comes back.
    Raises TransferFailed where no cipher is left.
    """
    both = [name for name in source if dest is None or name in dest]
    if wanted:
        chosen = [name for name in wanted if name in both]
        if not chosen:
            raise TransferFailed(
                f"Neither end may use a cipher that the other refuses: of {', '.join(wanted)} none is offered by both. "
                f"{_offers(source, dest)} Name one that both offer, or leave the option out."
            )
        missing = [name for name in wanted if name not in both]
        reason = f"named by the user: {chosen[0]}"
        return ",".join(chosen), reason + (f" (not offered by both ends: {', '.join(missing)})" if missing else "")
    rank = _RANK_AES if aes else _RANK_NO_AES
    modern = [name for name in both if not _LEGACY.match(name)]
    chosen = [name for name in rank if name in modern] + [name for name in modern if name not in rank]
    if not chosen:
        legacy = [name for name in both if _LEGACY.match(name)]
        hint = f"They share only {', '.join(legacy)}, broken ciphers that are used when named. " if legacy else ""
        raise TransferFailed(
            f"The two ends share no cipher that is safe to use. {_offers(source, dest)} {hint}"
            "Update OpenSSH on the older end, or name in ssh_ciphers one that both offer."
        )
    having = "both processors have AES instructions" if aes else "a processor lacks AES instructions"
    known = "" if dest is not None else "; what the serving end offers is not known"
    return ",".join(chosen), f"{chosen[0]}: the fastest that is offered, {having}{known}"


def _offers(source: Sequence[str], dest: Sequence[str] | None) -> str:
    theirs = "is not known" if dest is None else f"offers {', '.join(dest) or 'none'}"
    return f"The connecting end offers {', '.join(source) or 'none'}; the serving end {theirs}."


# sshd -T prints a line for each value of these
_SEVERAL = frozenset(
    ("listenaddress", "hostkey", "allowusers", "denyusers", "allowgroups", "denygroups", "acceptenv", "setenv")
)


def parse_sshd_config(text: str) -> dict[str, Any]:
    """Read what ``sshd -T`` (or ``ssh -G``) prints: lower-case keyword, space, value.

    Comma lists of algorithms become lists, ports and the options that may stand several times too; ``subsystem``
    becomes name → command, and ``authorizedkeysfile`` a list of patterns. Everything else stays text.
    """
    found: dict[str, Any] = {}
    for line in text.splitlines():
        key, _space, value = line.strip().partition(" ")
        key, value = key.lower(), value.strip()
        if not key or key.startswith("#"):
            continue
        if key == "subsystem":
            name, _space, command = value.partition(" ")
            found.setdefault(key, {})[name] = command.strip()
        elif key == "port":
            found.setdefault(key, []).append(int(value))
        elif key in _SEVERAL:
            found.setdefault(key, []).append(value)
        elif key == "authorizedkeysfile":
            found[key] = value.split()
        elif key in ("ciphers", "macs") or key.endswith(("algorithms", "keytypes")):
            found[key] = split_list(value)
        else:
            found[key] = value
    return found


def authorized_keys_path(patterns: Sequence[str], user: str, home: str, uid: int) -> str | None:
    """Give the first file in which sshd looks for a user's keys; None where it looks in none.

    ``patterns`` is ``authorizedkeysfile`` of ``parse_sshd_config``. Tokens %h, %u, %U and %% as in sshd_config(5).
    """
    tokens = {"%h": home, "%u": user, "%U": str(uid), "%%": "%"}
    for pattern in patterns or [".ssh/authorized_keys"]:
        if pattern == "none":
            return None
        path = re.sub(r"%.", lambda token: tokens.get(token.group(), token.group()), pattern)
        return path if path.startswith("/") else f"{home.rstrip('/')}/{path}"
    return None


# ssh's words (a group of the pattern fills {0}), and what they mean to who runs the transfer. First match wins: the
# reasons stand before what follows from them.
_WORDS = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for \S+ has changed",
        "the host key of the other end is not the one that it told through Ansible. Another machine answers at this "
        "address and port (a NAT, a stale DNS name, a second host with the address), or somebody is in between: "
        "nothing was sent. Check longhaul_address and the port, and compare 'ssh-keyscan' with the files "
        "/etc/ssh/ssh_host_*_key.pub on that host.",
    ),
    (
        r"No (\S+) host key is known for|Host key verification failed",
        "the other end showed a host key of a type that it did not tell through Ansible, so it cannot be trusted and "
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
        "the other end's sshd cut the login short after other keys were tried. Remove IdentityFile from "
        "/etc/ssh/ssh_config for this host, or raise MaxAuthTries there.",
    ),
    (
        r"Permission denied \(([^)]*)\)",
        "the other end's sshd refused the one-time key (it accepts: {0}). Look on that host at 'sshd -T' for "
        "PubkeyAuthentication, PermitRootLogin, AllowUsers, AllowGroups, AuthenticationMethods and AuthorizedKeysFile, "
        "and at the sshd log for 'bad ownership or modes' or a from= address that a NAT has changed; or let the "
        "transfer start its own sshd by giving it ports that can be reached (port_range).",
    ),
    (
        r"Could not resolve hostname (\S+): (.+)",
        "this end does not know the name {0} ({1}). Set longhaul_address for the other end to an IP address.",
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
        "longhaul_address for the other end to an address that this end can reach.",
    ),
    (
        r"no matching (cipher|MAC) found\. Their offer: (\S+)",
        "the two ends share no {0}. The other end offers {1}. Name one of them that this end has too (ssh_ciphers; "
        "'ssh -Q cipher' lists them), or update the older OpenSSH.",
    ),
    (
        r"no matching (key exchange method|host key type) found\. Their offer: (\S+)",
        "the two ends share no {0}. The other end offers {1}. Update the older OpenSSH, or allow one of these in "
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
        "the other end's sshd turns new connections away: too many logins at once, or a penalty for this address. "
        "Wait some minutes; then run fewer transfers to that host at once, or raise MaxStartups and exempt this end's "
        "address in PerSourcePenaltyExemptList there.",
    ),
    (
        r"(?:kex|ssh)_exchange_identification: (?:read: )?(Connection (?:reset by peer|closed by remote host))",
        "the other end closed the connection before it said who it is ({0}). So does an sshd that has too many logins "
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
        "the connection to {0} was lost: no answer for the whole timeout. Mend the network and run again; it goes on "
        "where it stopped.",
    ),
    (
        r"(Connection to \S+ closed by remote host|Connection reset by \S+|Connection closed by \S+|"
        r"client_loop: send disconnect: Broken pipe|packet_write_wait: .*|Connection to \S+ port \d+ timed out)",
        "the connection was lost ({0}). The other end's sshd or host went down, or the network did. Run again; it goes "
        "on where it stopped.",
    ),
)
_EXPLAINED = tuple((re.compile(pattern, re.MULTILINE), meaning) for pattern, meaning in _WORDS)


def unreachable(stderr: str) -> bool:
    """Whether ssh says that nothing answered at all: then the other direction may be open."""
    return bool(re.search(r"connect to (?:host|address) \S+ port \d+: ", stderr))


def explain(stderr: str, rc: int) -> str | None:
    """Say what ssh's own words mean, why it matters and what to do; None where it said nothing known.

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
