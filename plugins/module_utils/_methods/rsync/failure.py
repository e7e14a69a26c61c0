# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of failures of rsync, for the person who runs it.

The texts are those of rsync 3.2.7 and 3.5.0, seen side by side. The text decides, not the exit code: the same cause
gives different codes in the two directions. Where no text is known, the code does (rsync(1), EXIT VALUES).
"""

from __future__ import annotations

import re
from typing import NamedTuple

COMPLETE, PROTOCOL, PARTIAL, VANISHED = 0, 2, 23, 24
_NETWORK_CODES = {10, 12, 30, 35, 255}


class RsyncFailure(NamedTuple):
    """Reason for the failure of a whole run."""

    text: str
    transient: bool  # the network's doing: worth another connection


_READ_ONLY = (
    "the daemon's module is read-only for this user (`read only = yes` is the default, or `auth users` says :ro), so "
    "nothing can be written through it. Set `read only = no` in the module's part of rsyncd.conf"
)
_AUTH = (
    "the daemon refused the user or the password. Its log says which: `password mismatch`, `secret not found`, `no "
    "matching rule` (auth users), or a secrets file with the wrong owner or mode (0600, owned by the daemon's user)"
)

# (pattern in the output, what it means and what to do, whether another connection may help); the first match counts
_TEXTS = (
    (r"module is read only", _READ_ONLY, False),
    (
        r"module is write only",
        "the daemon's module is write-only, so nothing can be read from it. Set `write only = no` in rsyncd.conf",
        False,
    ),
    (
        r"@ERROR: Unknown module '(.*?)'",
        "the daemon has no module {0}, or hides it from this host. Name one that `rsync rsync://HOST:PORT/` lists, or "
        "add this host's address to the module's `hosts allow`",
        False,
    ),
    (
        r"@ERROR: access denied to (\S+) from (.*)",
        "the daemon does not let {1} use module {0}. Add that address to the module's `hosts allow` in rsyncd.conf",
        False,
    ),
    (
        r"@ERROR: chroot failed",
        "the daemon could not change its root into the module's path: the path is missing, or the daemon does not run "
        "as root. Make the folder, or set `use chroot = no`",
        False,
    ),
    (r"@ERROR: chdir failed", "the path of the daemon's module does not exist or cannot be entered. Make it", False),
    (r"@ERROR: no path setting", "the daemon's module has no `path`. Set it in rsyncd.conf", False),
    (
        r"@ERROR: invalid ([ug]id) (.*)",
        "the daemon's module names a user or group that does not exist there ({0} {1}; Debian's group is nogroup, "
        "FreeBSD's wheel). Correct `{0}` in rsyncd.conf, or use a number",
        False,
    ),
    (
        r"@ERROR: set([ug]id) failed",
        "the daemon does not run as root and cannot become the module's `{0}`. Run it as root, or remove the line",
        False,
    ),
    (r"@ERROR: auth failed on module", _AUTH, False),
    (
        r"@ERROR: max connections \((\d+)\) reached",
        "the daemon serves {0} connections at most, and they are taken. Raise `max connections`, lower streams, or "
        "wait for the others to end",
        False,
    ),
    (
        r"@ERROR: failed to open lock file",
        "the daemon cannot open its lock file. Correct `lock file` in rsyncd.conf",
        False,
    ),
    (
        r"@ERROR: daemon security issue",
        "the module's root holds a folder named rsyncd-munged, which the daemon takes for an attack. Remove it there",
        False,
    ),
    (
        r"server is configured to refuse (\S+)",
        "the daemon refuses the option {0} (`refuse options` in rsyncd.conf), which this transfer needs. Allow it",
        False,
    ),
    (
        r"pre-xfer exec returned failure",
        "the module's `pre-xfer exec` command failed, so the daemon turned the transfer away. See its log",
        False,
    ),
    (
        r"password file must (not be other-accessible|be owned by root)",
        "rsync refused the file with the daemon's password: it must {0}. This is a fault of longhaul.fleet: report it",
        False,
    ),
    (
        r'server sent "(.*?)"? rather than greeting',
        'another service than rsync\'s daemon answers at this port (it said "{0}"). Correct the port',
        False,
    ),
    (r"@ERROR: (.*)", "the daemon said: {0}", False),
    (
        r"The temp-dir does not exist: (.*)",
        "the folder for temporary files, {0}, is not there: something removed it during the transfer. Run it again",
        False,
    ),
    (
        r'"([^"\n]+)"[^"\n]*No space left on device',
        "the destination's disk is full: the file system of {0} there has no space or no inodes left (see df and df "
        "-i), so the transfer stopped; what has arrived is kept. Make room and run it again: it goes on where it "
        "stopped",
        False,
    ),
    (
        r"No space left on device",
        "the destination's disk is full (no space or no inodes left there: see df and df -i), so the transfer stopped; "
        "what has arrived is kept. Make room and run it again to resume",
        False,
    ),
    (
        r"Disk quota exceeded",
        "the destination's disk quota is used up; what has arrived is kept. Raise the quota and run it again",
        False,
    ),
    (
        r"Read-only file system",
        "the destination is on a read-only file system, or the daemon's unit makes it so (ProtectSystem). "
        "Remount it, or add a drop-in with ReadWritePaths to the unit",
        False,
    ),
    (
        r"Connection refused",
        "nothing listens there, or a firewall rejects it. Start the daemon, correct the port, open the firewall (name "
        "open ports with port_range), or let that host connect (connect: pull or push)",
        True,
    ),
    (
        r"No route to host",
        "there is no way to it: a firewall rejects the port, or the route is missing. Open the port, or let that host "
        "connect (connect: pull or push)",
        True,
    ),
    (
        r"timeout waiting for daemon connection",
        "it did not answer: a firewall drops the packets, or the host is down. Open the port (name open ports with "
        "port_range), or let that host connect (connect: pull or push)",
        True,
    ),
    (r"did not see server greeting", "the daemon hung up at once: its configuration is broken. See its log", False),
    (
        r"command not found|Failed to exec|No such file or directory.*rsync: remote",
        "rsync or ssh could not be started at one end. Install it there, or choose another method",
        False,
    ),
    (
        r"is your shell clean|protocol version mismatch",
        "the login shell of the peer prints text of its own, which rsync took for its protocol. Make the shell's "
        "start files silent for sessions without a terminal",
        False,
    ),
)

_CODES = {
    1: "rsync did not understand its arguments",
    2: "the two versions of rsync speak no common protocol. Update the older one",
    3: "rsync could not open what it was to read or write",
    4: "one end's rsync was built without something that is needed here, such as ACLs or extended attributes. "
    "Leave that out of preserve, or install a full build",
    5: "the daemon and rsync could not agree to start",
    10: "the connection between the hosts failed",
    11: "rsync could not read or write a file",
    12: "the connection between the hosts broke",
    13: "rsync could not write its messages",
    14: "rsync lost one of its own processes",
    20: "rsync was told to stop",
    22: "there was not enough memory for the list of files. Use streams, or transfer parts of the tree",
    25: "rsync stopped deleting at the limit",
    30: "nothing came from the peer for the whole timeout",
    35: "the daemon did not answer within the timeout",
    255: "the ssh connection broke",
}


def classify(code: int, output: str) -> RsyncFailure | None:
    """Return why a run with this exit code and these messages failed; None if it did not fail as a whole.

    Exit codes 23 (some paths failed: they are listed one by one) and 24 (some vanished) are none, unless the text
    names a cause that concerns the whole.
    """
    if code in (COMPLETE, VANISHED):
        return None
    for pattern, meaning, transient in _TEXTS:
        found = re.search(pattern, output)
        if found:
            return RsyncFailure(meaning.format(*found.groups()), transient)
    if code == PARTIAL:
        return None
    if code < 0:
        return RsyncFailure(
            f"rsync was ended by signal {-code}. What has arrived is kept: run the transfer again", True
        )
    meaning = _CODES.get(code, "rsync failed")
    said = next((line for line in reversed(output.splitlines()) if line.strip()), "it said nothing")
    return RsyncFailure(
        f"{meaning} (exit code {code}: {said}). Run the transfer again to resume",
        code in _NETWORK_CODES,
    )
