# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading what OpenSSH's programs print of their configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Sequence, cast

if TYPE_CHECKING:
    from typing import TypedDict

    class SshdConfig(TypedDict, total=False):
        """What sshd -T or ssh -G prints, as far as it is looked at; all else is text."""

        port: list[int]
        hostkey: list[str]
        ciphers: list[str]
        macs: list[str]
        kexalgorithms: list[str]
        hostkeyalgorithms: list[str]
        authorizedkeysfile: list[str]  # patterns
        pubkeyauthentication: str
        permitrootlogin: str

else:
    SshdConfig = dict

# sshd -T prints a line for each value of these
_SEVERAL = frozenset(
    ("listenaddress", "hostkey", "allowusers", "denyusers", "allowgroups", "denygroups", "acceptenv", "setenv")
)


def split_list(text: str) -> list[str]:
    """Split what ``ssh -Q cipher`` prints (one a line), or a comma list, into names."""
    return [name for name in re.split(r"[\s,]+", text) if name]


def parse_sshd_config(text: str) -> SshdConfig:
    """Read what ``sshd -T`` (or ``ssh -G``) prints: lower-case keyword, space, value.

    Comma lists of algorithms become lists, ports and the options that may stand several times too, and
    ``authorizedkeysfile`` a list of patterns. Everything else stays text.
    """
    found: dict[str, Any] = {}
    for line in text.splitlines():
        key, _space, value = line.strip().partition(" ")
        key, value = key.lower(), value.strip()
        if not key or key.startswith("#"):
            continue
        if key == "port":
            found.setdefault(key, []).append(int(value))
        elif key in _SEVERAL:
            found.setdefault(key, []).append(value)
        elif key == "authorizedkeysfile":
            found[key] = value.split()
        elif key in ("ciphers", "macs") or key.endswith(("algorithms", "keytypes")):
            found[key] = split_list(value)
        else:
            found[key] = value
    return cast(SshdConfig, found)


def authorized_keys_path(patterns: Sequence[str], user: str, home: str, uid: int) -> str | None:
    """Return the first file in which sshd looks for a user's keys; None if it looks in none.

    ``patterns`` is ``authorizedkeysfile`` of ``parse_sshd_config``. Tokens %h, %u, %U and %% as in sshd_config(5).
    """
    tokens = {"%h": home, "%u": user, "%U": str(uid), "%%": "%"}
    for pattern in patterns or [".ssh/authorized_keys"]:
        if pattern == "none":
            return None
        path = re.sub(r"%.", lambda token: tokens.get(token.group(), token.group()), pattern)
        return path if path.startswith("/") else f"{home.rstrip('/')}/{path}"
    return None
