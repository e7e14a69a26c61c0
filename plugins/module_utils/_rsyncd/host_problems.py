# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Problems of a host, found before anything is changed. Private to the collection."""

from __future__ import annotations

import os
import re
import stat
from typing import Mapping

from . import identity
from .check import may_write, varies
from .conf import Conf, load, read_text
from .options import OF_THE_DAEMON, OPTIONS, READ_AT_START, Values
from .render import MARK, file_name, is_ours, line, without_blocks


def path_problems(values: Values) -> list[str]:
    """Return what is wrong with a module's directory and its user. ``values`` are the effective ones, with defaults."""
    where, path = f"module {values['name']}", values["path"]
    try:
        user = "" if varies(values["uid"]) else values["uid"]
        ids = identity.find_ids(user, values.get("gid", ())) if user else None
    except identity.UnknownAccount as error:
        return [f"{where}: {error}"]
    if varies(path):  # differs from connection to connection
        return []
    if not os.path.lexists(path):
        if values["create_path"]:
            return []
        return [
            f"{where}: the path {path} does not exist on this host, so every connection would fail. Make it (or mount "
            "it), correct path, or set create_path: true"
        ]
    if not os.path.isdir(path):
        return [f"{where}: the path {path} is no directory. A module shows a directory: name one"]
    link = identity.foreign_symlink(path, ids.uid if ids else 0)
    if link:
        return [
            f"{where}: {link} on the way of its path is a symlink of another user ({_owner_of(link)}), which rsync 3.5 "
            f"does not follow. Write the real path, {os.path.realpath(path)}"
        ]
    if ids is None or os.geteuid() != 0 or identity.enters(ids, path):
        return []
    return [
        f"{where}: its user {ids.name} cannot enter {path} ({identity.describe(path)}), so it could neither read nor "
        f"write there. Give that directory permissions for {ids.name}, or set uid (root may read everything)"
    ]


def path_doubts(values: Values) -> list[str]:
    """Return warnings about what works only partly. ``values`` as for path_problems, which found nothing."""
    where, path, found = f"module {values['name']}", values["path"], []
    if varies(path) or varies(values["uid"]) or not os.path.isdir(path) or os.geteuid() != 0:
        return []
    ids = identity.find_ids(values["uid"], values.get("gid", ()))
    if may_write(values) and not identity.may_make_files(ids, path):
        found.append(
            f"{where}: clients may write, but its user {ids.name} has no permission to write into {path} "
            f"({identity.describe(path)})"
        )
    blocked = "" if values.get("use_chroot", True) else identity.first_blocked(ids, path)
    if blocked:
        found.append(
            f"{where}: without use_chroot its user {ids.name} depends on the daemon to pass {blocked} "
            f"({identity.describe(blocked)}); rsync before 3.5 fails in folders below {path}"
        )
    return found


def file_problems(values: Values, managed_secrets: str) -> list[str]:
    """Return what is wrong with the files that a module names, but for those that the role writes itself."""
    where, found = f"module {values['name']}", []
    for key, name, holds in (
        ("exclude_from", values.get("exclude_from", ""), "its patterns"),
        ("include_from", values.get("include_from", ""), "its patterns"),
    ):
        if name and not varies(name) and not os.path.isfile(name):
            found.append(f"{where}: {key} names {name}, and there is no such file with {holds}. Make it first")
    for key, path in (("log_file", values.get("log_file", "")), ("lock_file", values.get("lock_file", ""))):
        folder = os.path.dirname(path)
        if folder and not varies(folder) and not os.path.isdir(folder):
            found.append(f"{where}: {key} is in {folder}, which does not exist. Make it, or name another place")
    secrets = values.get("secrets_file", "")
    if "auth_users" in values and secrets and secrets != managed_secrets and not varies(secrets):
        found += [f"{where}: {text}" for text in secrets_problems(secrets, values.get("strict_modes", True))]
    return found


def rights_problems(values: Values, user: str, managed_secrets: str) -> list[str]:
    """Return what a daemon could not do for a module, since it runs as ``user`` (``daemon uid``), who is not root."""
    where, found = f"module {values['name']}: the daemon runs as {user} (daemon_uid), who", []
    if values["use_chroot"]:
        found.append(f"{where} cannot use chroot. Set use_chroot: false, or leave daemon_uid out")
    if values["uid"] != user or "gid" in values:
        found.append(f"{where} cannot become another user or group. Leave uid and gid out, or daemon_uid")
    if "auth_users" in values and values.get("secrets_file", "") == managed_secrets:
        found.append(f"{where} cannot read the passwords in {managed_secrets}. Leave daemon_uid out")
    return found


def managed_secrets_problems(path: str, include_folder: str) -> list[str]:
    """Return why the role could not write its secrets file. It creates ``include_folder`` itself; empty: no file."""
    folder = os.path.dirname(path)
    if not path or folder == include_folder or os.path.isdir(folder):
        return []
    return [f"rsyncd_secrets_file is in {folder}, which does not exist. Make it, or name another place"]


def secrets_problems(path: str, strict: bool) -> list[str]:
    """Return why rsync would not take a secrets file. ``strict`` is ``strict modes``. Its contents are not shown."""
    try:
        found = os.stat(path)
    except OSError as error:
        return [
            f"the secrets file {path} cannot be used ({error.strerror}), so every login would fail. Make it, or give "
            "rsyncd_secrets and leave secrets_file out"
        ]
    if strict and found.st_mode & (stat.S_IROTH | stat.S_IWOTH):
        return [
            f"the secrets file {path} has mode {found.st_mode & 0o7777:04o}: all users of this host can read the "
            "passwords, and rsync refuses every login. Change the passwords, and the mode to 0600"
        ]
    if strict and found.st_uid != os.geteuid():
        return [
            f"the secrets file {path} belongs to {identity.describe(path)}; rsync wants it to be root's. Change that"
        ]
    return []


def name_problems(names: list[str], conf: Conf, folder: str) -> list[str]:
    """Return modules of the same name that others defined. ``conf`` is the existing file; ``folder`` the drop-ins'."""
    found = []
    for name in names:
        own = os.path.join(folder, file_name(name))
        there = conf.module(name)
        for path in there.files if there else ():
            if path != own or not is_ours(read_text(path)):
                found.append(
                    f"module {name} is written in {path} already, and not by this role: the daemon would mix both. "
                    "Rename yours, or remove it there"
                )
        if os.path.exists(own) and not is_ours(read_text(own)) and not (there and own in there.files):
            found.append(f"{own} is there already, and not by this role. Rename the module, or move that file away")
    return found


def daemon_problems(daemon: Values, own: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the daemon's options. ``own`` are those in lines of rsyncd.conf that override ours.

    In a daemon with a root of its own, rsync would look there for what modules name.
    """
    found = []
    chroot = daemon.get("daemon_chroot") or own.get("daemon_chroot", "")
    if str(chroot).strip("/"):
        found.append(
            f"daemon_chroot is {chroot}, so rsync would look for the paths and files of all modules below it, and the "
            "role checks and writes them on the host itself. Leave it out: use_chroot confines each module to its path"
        )
    for key, value in daemon.items():
        wanted = line(key, value).partition("=")[2].strip()
        if key in OF_THE_DAEMON | READ_AT_START and key in own and own[key] != wanted:
            found.append(
                f"rsyncd.conf says `{OPTIONS[key].name} = {own[key]}` in a line of its own, which would win over "
                f"{wanted}. Remove that line, leave the option out, or set rsyncd_config_mode: whole"
            )
    return found


def starting_options(text: str) -> dict[str, str]:
    """Return the options for the daemon's start in rsyncd.conf's own lines (without the role's)."""
    return starting_options_of(without_blocks(text))


def starting_options_of(text: str) -> dict[str, str]:
    """Return the options for the daemon's start in all lines of rsyncd.conf."""
    return load("/", lambda _path: text, lambda _path: []).start


def is_whole(text: str) -> bool:
    """Return whether rsyncd.conf was written by the role as a whole."""
    return re.search(rf"^# {re.escape(MARK)}: the whole file$", text, re.MULTILINE) is not None


def _owner_of(link: str) -> str:
    return f"uid {os.lstat(link).st_uid}"
