# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain to an administrator why a module of an rsync daemon does not work. Private to the collection.

Pure. The texts are those of rsync 3.2.7 and 3.5.0, seen side by side; the text decides, not the exit code.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple

from .._core.mounts import is_on, parse_mounts

ERROR, WARNING, NOTE = "error", "warning", "note"


class ModuleFinding(NamedTuple):
    """An error, a warning (probably not meant) or a note on a module."""

    module: str  # empty for the daemon as a whole
    code: str
    severity: str
    text: str


class ModuleEnvironment(NamedTuple):
    """What is known about a module when a client's words are explained."""

    name: str
    config: str  # rsyncd.conf
    path: str
    user: str  # the module's
    login: str = ""  # who the client said it is
    log: str = ""  # what the daemon wrote into its log meanwhile
    blocked: str = ""  # the first directory that the user cannot pass, with owner and mode
    place: str = ""  # owner and mode of the module's directory
    read_only_mount: str = ""  # the mount point, where the host itself has it read-only
    read_only_view: str = ""  # the mount point, where only the daemon's view of the host has it read-only
    hidden: bool = False  # the path is there for the host, and not for the daemon
    unit: str = "rsync.service"
    client_addresses: str = ""  # where the trial came from


# (pattern in what client and log say, code); the first match counts
_TEXTS = (
    (r"module is read only", "read_only_conf"),
    (r"module is write only", "write_only"),
    (r"max connections \((-?\d+)\) reached", "connections_full"),
    (r"@ERROR: access denied", "hosts_allow"),
    (r"@ERROR: Unknown module", "unknown_module"),
    (r"@ERROR: auth failed", "auth_failed"),
    (r"@ERROR: (?:chroot|chdir) failed", "path_missing"),
    (r"@ERROR: no path setting", "no_path"),
    (r"@ERROR: invalid [ug]id (\S+)", "bad_user"),
    (r"@ERROR: set[ug]id failed", "not_root"),
    (r"@ERROR: failed to open lock file", "lock_file"),
    (r"daemon security issue", "munged_folder"),
    (r"configured to refuse (\S+)", "option_refused"),
    (r"pre-xfer exec|early exec", "hook_failed"),
    (r"daemon refused to receive|daemon has excluded", "filtered"),
    (r"No space left on device|Disk quota exceeded", "disk_full"),
    (r"symlink owned by an untrusted user", "foreign_symlink"),
    (r"Read-only file system", "read_only_file_system"),
    (
        r"(?:change_dir|cannot stat destination|link_stat|opendir) \S+ ?(?:\(in .*?\))? ?(?:failed)?:? ?"
        r"Permission denied",
        "cannot_enter",
    ),
    (r"Permission denied", "permissions"),
    (r"did not see server greeting|rather than greeting", "no_greeting"),
    (r"Connection refused|failed to connect|timeout waiting for daemon", "not_running"),
)
_LOG = (
    (r"password mismatch", "wrong_password"),
    (r"secret not found", "no_secret"),
    (r"no matching rule", "no_rule"),
    (r"denied by rule", "denied_by_rule"),
    (r"secrets file must|no secrets file|missing secret|secrets file", "secrets_file"),
    (r"digest", "auth_digest"),
)


def cause(said: str, around: ModuleEnvironment) -> tuple[str, str]:
    """Return the code of the cause, and the word that the message is about (a number, an option); empty if none."""
    for pattern, code in _TEXTS:
        found = re.search(pattern, said)
        if found:
            word = found.group(1) if found.groups() and found.group(1) else ""
            return _closer(code, around), word
    return "unknown", next((line for line in reversed(said.splitlines()) if line.strip()), "it said nothing")


def _closer(code: str, around: ModuleEnvironment) -> str:
    """Distinguish causes that a client cannot see."""
    if code == "auth_failed":
        return next((found for pattern, found in _LOG if re.search(pattern, around.log)), code)
    if code == "read_only_file_system":
        return "read_only_mount" if around.read_only_mount else "read_only_sandbox"
    if code == "path_missing" and around.hidden:
        return "hidden_by_sandbox"
    if code == "cannot_enter" and not around.blocked:
        return "permissions"
    if code == "permissions" and around.blocked:
        return "cannot_enter"
    return code


_WORDS: Mapping[str, str] = {
    "read_only_conf": (
        "rsyncd.conf makes it read-only ({config}: `read only`, or :ro in `auth users`). This is the first of "
        "three layers that can say so. Set read_only: false if clients must write"
    ),
    "permissions": (
        "its user {user} has no permission to write in {path} ({place}). This is the second of three read-only "
        "layers: the permissions of the files. Give {user} the right to write there, or set another uid"
    ),
    "read_only_mount": (
        "the file system at {mount} is mounted read-only on this host. This is the third of three read-only "
        "layers. Mount it for writing (`mount -o remount,rw {mount}`), and see why it was not: file systems turn "
        "read-only after errors"
    ),
    "read_only_sandbox": (
        "{unit} makes {path} read-only for the daemon (ProtectSystem, ProtectHome or ReadOnlyPaths; its view is "
        "mounted read-only at {view}), although it is writable on this host. This is the third of three read-only"
        " layers. Add a drop-in with ReadWritePaths={path}, and restart the daemon"
    ),
    "hidden_by_sandbox": (
        "{unit} hides {path} from the daemon (ProtectHome, PrivateTmp, InaccessiblePaths, or a mount that came "
        "after its start). Open it in a drop-in, and restart the daemon"
    ),
    "cannot_enter": (
        "its user {user} cannot pass {blocked}. Give {user} permission to enter that directory, or set another uid"
    ),
    "path_missing": (
        "its path {path} does not exist, or the daemon cannot chroot there because it does not run as root. Make "
        "the directory, mount it, or set use_chroot: false"
    ),
    "no_path": "it has no path in {config}. Give it one",
    "write_only": "it is write-only, so nothing can be read from it ({config}: `write only`)",
    "connections_full": (
        "all of its {word} connections are taken (`max connections`, counted in `lock file`). Raise the number, "
        "or wait; `ss -tn sport = :873` shows who holds them"
    ),
    "hosts_allow": (
        "`hosts allow` or `hosts deny` keeps {client} out. Add the address to hosts_allow if it must connect"
    ),
    "unknown_module": (
        "the daemon does not know it, or hides it from {client} (`list = no` and `hosts allow`). Where {config} "
        "was changed just now, the daemon may run with another file: see `systemctl cat {unit}`"
    ),
    "auth_failed": "the login of {login} failed, and the log does not say why",
    "wrong_password": "the password of {login} is not the one in the secrets file. Change one of them",
    "no_secret": "{login} has no password in the secrets file. Add a line for that user",
    "no_rule": "no rule of `auth users` is for {login}. Add the user there",
    "denied_by_rule": (
        "a rule of `auth users` denies {login}. Rules are tried in order, and the first that matches counts"
    ),
    "secrets_file": "the daemon refuses its secrets file: {log}. It must be there, belong to root, and have mode 0600",
    "auth_digest": "`auth digest` refuses the digest that was agreed on: {log}",
    "bad_user": (
        "its user or group {word} does not exist on this host (Debian's group is nogroup, FreeBSD's root group is"
        " wheel)"
    ),
    "not_root": "the daemon does not run as root, so it cannot become {user}. Run it as root, or leave uid and gid out",
    "lock_file": (
        "its lock file cannot be opened. Correct lock_file, and see whether {unit} lets the daemon write there"
    ),
    "munged_folder": (
        "{path} holds a folder named rsyncd-munged, which the daemon takes for an attack. Look what made it, remove it"
    ),
    "option_refused": "it refuses {word} (`refuse options`), which clients were said to use. Allow it, or do without",
    "hook_failed": (
        "its `early exec` or `pre-xfer exec` command failed, so the transfer was turned away. Run it by hand as root"
    ),
    "filtered": (
        "its own filter (`exclude`, `filter`) refuses names that begin with .longhaul-, so writing could not be tried"
    ),
    "disk_full": "there is no space (or quota, or inodes) left in {path}. See df and df -i",
    "foreign_symlink": (
        "a symlink on the way to its path or its secrets file belongs to another user, and rsync 3.5 does not "
        "follow it. Name the real path"
    ),
    "no_greeting": (
        "the daemon hangs up before it says anything: {config} is broken, or another program listens there. See its log"
    ),
    "not_running": "nothing that speaks rsync answers. Start it (`systemctl start {unit}`), and see its log",
    "unknown": "it does not work: {word}",
}
_NOTES = frozenset(["filtered"])


def diagnose(said: str, around: ModuleEnvironment) -> ModuleFinding:
    """Return why a client that should have got through did not. ``said`` is what it printed."""
    code, word = cause(said, around)
    log = next(
        (line.split("] ", 1)[-1] for line in around.log.splitlines() if "secret" in line or "digest" in line), ""
    )
    known: dict[str, Any] = dict(
        around._asdict(),
        word=word,
        log=log or "see its log",
        mount=around.read_only_mount,
        view=around.read_only_view or around.path,
        client=around.client_addresses or "the client",
        login=around.login or "the client",
    )
    severity = WARNING if code in _NOTES else ERROR
    return ModuleFinding(around.name, code, severity, f"module {around.name}: {_WORDS[code].format(**known)}")


def mount_of(mountinfo: str, path: str) -> tuple[str, bool]:
    """Return the mount point that a path is on, and whether it is read-only there."""
    best, read_only = "", False
    for mount in parse_mounts(mountinfo):
        if is_on(path, mount.point) and len(mount.point) >= len(best):  # a later one on the same point covers it
            best, read_only = mount.point, "ro" in mount.options
    return best, read_only
