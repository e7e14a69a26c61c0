# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driving end's command line of OpenSSH.

The client's *system-wide* configuration is read (``-F /etc/ssh/ssh_config``), the user's own is not. The system's
file is where a crypto policy lives (RHEL includes it there, in ``Match final all``), and ``-F none`` would leave the
policy out and so bring back what it bans. The user's file could add keys, commands or jump hosts. Whatever a
transfer depends on is given with ``-o``, and OpenSSH takes the first value that it meets.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from typing import Sequence

from ..._core.context import Peer

SYSTEM_CONFIG = "/etc/ssh/ssh_config"
HELLO = "longhaul hello"  # the command that every serving end answers, see hello_answer()
ALIVE_INTERVAL = 15  # seconds between questions whether the peer is still there
CONNECT_TIMEOUT = 20  # seconds
# ssh_config(5): keywords know no case, and an equals sign or a space follows. ProxyCommand and LocalCommand are ours.
_RUNS = re.compile(r"^[ \t]*(?:match\b.*\bexec\b|knownhostscommand\b(?![ \t=]+none\b))", re.IGNORECASE | re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*include[ \t=]+(.+)$", re.IGNORECASE | re.MULTILINE)


def system_config() -> str:
    """Name the configuration file that ssh should read: the system's, or ``none`` where there is no such file."""
    return SYSTEM_CONFIG if os.path.isfile(SYSTEM_CONFIG) else "none"


def runs_programs(path: str) -> bool:
    """Return whether a client configuration makes ssh run programs to decide something, in spite of our own options.

    Such a program may be setuid, or need other rights and files than ssh: what starts ssh must not give up any then.
    What cannot be read is taken for one that does.
    """
    return path != "none" and _runs_programs(path, set())


def _runs_programs(path: str, seen: set[str]) -> bool:
    if path in seen:
        return False
    seen.add(path)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            text = stream.read()
    except OSError:
        return True
    if _RUNS.search(text):
        return True
    try:
        patterns = shlex.split(" ".join(_INCLUDE.findall(text)))
    except ValueError:
        return True
    folder = os.path.dirname(SYSTEM_CONFIG)
    included = [name for pattern in patterns for name in glob.glob(os.path.join(folder, pattern))]
    return any(_runs_programs(name, seen) for name in included)


def alias(transfer_id: str) -> str:
    """Name the serving end's host key in known_hosts, whatever address it is reached at."""
    return f"longhaul-{transfer_id}"


def hello_answer(transfer_id: str) -> bytes:
    """Return what a serving end answers to ``HELLO``, to the byte."""
    return f"longhaul {transfer_id} ready\n".encode()


def common_options(
    peer: Peer,
    identity: str,
    known_hosts: str,
    ciphers: str = "",
    *,
    timeout: int = 90,
    config: str | None = None,
) -> list[str]:
    """Return the options that ssh, scp and sftp understand alike: ``-F``, ``-o`` and ``-c``.

    scp and sftp have ``-P`` and ``-l`` of their own, so user and port are ``-o``.

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
        ("LogLevel", "INFO"),  # failure.py lives on these messages
    )
    options = ["-F", config or system_config()]
    for name, value in pairs:
        options += ["-o", f"{name}={value}"]
    return options + (["-c", ciphers] if ciphers else [])


def _alive_options(timeout: int) -> list[tuple[str, str]]:
    """Have ssh give up after ``timeout`` seconds of silence, and ask at least three times before."""
    interval = max(1, min(ALIVE_INTERVAL, timeout // 3))
    return [("ServerAliveInterval", str(interval)), ("ServerAliveCountMax", str(-(-timeout // interval)))]


def ssh_command(
    peer: Peer,
    identity: str,
    known_hosts: str,
    ciphers: str = "",
    *,
    timeout: int = 90,
    config: str | None = None,
    extra: Sequence[str] = (),
) -> list[str]:
    """Return the argv of ssh up to, but without, the destination. The arguments are those of ``common_options``."""
    argv = ["ssh", "-T", "-x"]
    argv += common_options(peer, identity, known_hosts, ciphers, timeout=timeout, config=config)
    return argv + list(extra)


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
    """Return the text of a known_hosts file for the serving end's public keys (``type base64``, one each)."""
    return "".join(f"{alias(transfer_id)} {' '.join(key.split()[:2])}\n" for key in host_keys)
