# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every option of rsyncd.conf: its name, kind and place. Private to the collection. Source: rsyncd.conf(5) of 3.5.0.

An option's key is its name in snake case: ``read only`` is ``read_only``, ``pre-xfer exec`` is ``pre_xfer_exec``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Tuple, Union

BOOL, INT, TEXT, PATH, WORD, WORDS, NAMES = "bool", "int", "text", "path", "word", "words", "names"
"""What a value is: ``text`` is free; ``path`` is absolute; ``word`` has no spaces; ``words`` are a list that is written
with spaces between; ``names`` are such a list whose elements may hold spaces (rsync then splits at commas alone)."""

DAEMON, MODULE = "daemon", "module"
"""Where an option counts: for the daemon as a whole, or for each module (with a default in the global part)."""


class RsyncdOption(NamedTuple):
    """One option of rsyncd.conf."""

    key: str
    name: str  # as it is written into the file
    kind: str
    scope: str
    choices: tuple[str, ...] = ()


_FACILITIES = (
    "auth authpriv cron daemon ftp kern lpr mail news security syslog user uucp "
    "local0 local1 local2 local3 local4 local5 local6 local7"
)
DIGESTS = ("sha512", "sha256", "sha1", "md5", "md4")

_TABLE = {
    DAEMON: {
        BOOL: "proxy protocol",
        INT: "port, listen backlog",
        PATH: "motd file, pid file, daemon chroot",
        WORD: "address, daemon uid",
        WORDS: "socket options, proxy protocol hosts, daemon gid",
    },
    MODULE: {
        BOOL: """use chroot, numeric ids, munge symlinks, insecure links, read only, write only, open noatime, list,
            fake super, strict modes, reverse lookup, forward lookup, ignore errors, ignore nonreadable,
            transfer logging""",
        INT: "max connections, max verbosity, timeout",
        TEXT: """comment, name converter, log format, syslog tag, filter, early exec, pre-xfer exec, post-xfer exec,
            log file""",
        PATH: "path, lock file, secrets file, exclude from, include from, temp dir",
        WORD: "uid, charset, incoming chmod, outgoing chmod, syslog facility, auth digest",
        WORDS: "hosts allow, hosts deny, exclude, include, refuse options, dont compress",
        NAMES: "auth users, gid",
    },
}
_CHOICES = {"syslog_facility": tuple(_FACILITIES.split()), "auth_digest": DIGESTS}


def _key(name: str) -> str:
    return name.replace(" ", "_").replace("-", "_")


OPTIONS: dict[str, RsyncdOption] = {
    _key(name): RsyncdOption(_key(name), name, kind, scope, _CHOICES.get(_key(name), ()))
    for scope, kinds in _TABLE.items()
    for kind, names in kinds.items()
    for name in (word.strip() for word in " ".join(names.split()).split(","))
}
"""Key → option, all of them."""

OF_THE_DAEMON = frozenset(option.key for option in OPTIONS.values() if option.scope == DAEMON)
OF_A_MODULE = frozenset(option.key for option in OPTIONS.values() if option.scope == MODULE)
NOT_SHARED = frozenset(["path", "comment"])
"""Options of a module that make no sense as a default for all."""

READ_AT_START = OF_THE_DAEMON | {"log_file", "syslog_facility", "syslog_tag"}
"""Options that a running daemon does not reread for each connection: a change needs a restart."""

Value = Union[bool, int, str, Tuple[str, ...]]
"""What an option is in Python: a list is a tuple."""

if TYPE_CHECKING:
    from typing import TypedDict

    class Values(TypedDict, total=False):
        """Options of the daemon or of a module in their own types, by key; the table has more that no code reads."""

        # what a module has beside rsync's options
        name: str
        state: str
        create_path: bool
        path_mode: str
        # of the daemon
        proxy_protocol: bool
        port: int
        listen_backlog: int
        motd_file: str
        pid_file: str
        daemon_chroot: str
        address: str
        daemon_uid: str
        # of a module
        use_chroot: bool
        munge_symlinks: bool
        insecure_links: bool
        read_only: bool
        write_only: bool
        fake_super: bool
        strict_modes: bool
        reverse_lookup: bool
        max_connections: int
        max_verbosity: int
        timeout: int
        comment: str
        log_format: str
        syslog_tag: str
        filter: str
        early_exec: str
        pre_xfer_exec: str
        post_xfer_exec: str
        log_file: str
        path: str
        lock_file: str
        secrets_file: str
        exclude_from: str
        include_from: str
        uid: str
        auth_digest: str
        hosts_allow: tuple[str, ...]
        hosts_deny: tuple[str, ...]
        exclude: tuple[str, ...]
        include: tuple[str, ...]
        refuse_options: tuple[str, ...]
        auth_users: tuple[str, ...]
        gid: tuple[str, ...]

else:  # a host makes no class that only a type checker reads
    Values = dict
