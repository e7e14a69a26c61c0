# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Validate the requested configuration of an rsync daemon, and install it. Private to the collection.

rsync itself tries it before: it serves one connection over pipes, without a port (``rsync --server --daemon``, seen in
3.2.7 and 3.5.0), reads the whole configuration, writes into its log what it does not understand, and lists the modules.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from typing import AbstractSet, Any, Callable, Mapping, NamedTuple, cast

from .._core.subprocesses import run
from . import host_problems, identity
from .check import all_problems, daemon_values, doubts, module_values, same_name, varies
from .conf import Conf, effective, folder_names, load, load_from_disk, read_text
from .identity import ROOT
from .options import NOT_SHARED, OF_A_MODULE, OF_THE_DAEMON, READ_AT_START, Values
from .render import file_name, include_text, is_ours, module_text, redirected, whole_text

_GREETING = b"@RSYNCD: 31.0 sha512\n#list\n"
_TRIAL_PATIENCE = 30  # seconds
# What would turn the trial away, or lead it elsewhere, whatever else is right
_IN_THE_WAY = ("proxy protocol", "daemon chroot", "daemon uid", "daemon gid", "motd file")
_COMPLAINT = re.compile(
    r"adly formed|nknown parameter|Global parameter|invalid section|Failed\.|unable to|failed to open|nvalid "
    r"|unknown user|unknown group",
    re.IGNORECASE,
)
_STAMP = re.compile(r"^\d+/\d+/\d+ [\d:]+ \[\d+\] ")
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755


@dataclass(frozen=True)
class ConfigTrial:
    """Result of a trial of a configuration by rsync."""

    serves: bool  # it would talk to clients
    complaints: tuple[str, ...]

    def worse_than(self, other: ConfigTrial) -> tuple[str, ...]:
        """Return the complaints that another configuration does not cause."""
        return tuple(text for text in self.complaints if text not in other.complaints)


def read_trial(text: str, out: bytes) -> ConfigTrial:
    """Read a trial's log and output. Pure."""
    lines = [_STAMP.sub("", line).strip() for line in text.splitlines()]
    return ConfigTrial(b"@RSYNCD: EXIT" in out, tuple(dict.fromkeys(line for line in lines if _COMPLAINT.search(line))))


def try_files(rsync: str, config: str, folder: str, changes: Mapping[str, str | None], scratch: str) -> ConfigTrial:
    """Let rsync read what the configuration would be after ``changes`` (path → text, None: removed).

    ``config`` is rsyncd.conf, ``folder`` the directory of the drop-ins; both are copied below ``scratch``, and nothing
    else is written. Raises OSError if rsync cannot be started.
    """
    with tempfile.TemporaryDirectory(dir=scratch, prefix="rsyncd-") as place:
        copied = os.path.join(place, "d")
        os.mkdir(copied)
        for name in folder_names(folder) or []:
            path = os.path.join(folder, name)
            if name.endswith((".conf", ".inc")) and os.path.isfile(path) and path not in changes:
                _write(os.path.join(copied, name), read_text(path))
        for path, text in changes.items():
            if path != config and text is not None:
                _write(os.path.join(copied, os.path.basename(path)), text)
        main = changes.get(config)
        if main is None:
            main = read_text(config) if os.path.exists(config) else ""
        main = redirected(main, folder, copied)
        set_here = [name for name in _IN_THE_WAY if re.search(rf"(?mi)^\s*{name.replace(' ', '[ _]*')}\s*=", main)]
        cleared = [f"{name} = {'no' if name == 'proxy protocol' else ''}".rstrip() for name in set_here]
        _write(os.path.join(place, "rsyncd.conf"), "\n".join([main, "[global]", *cleared, ""]))
        return _ask(rsync, place)


def _ask(rsync: str, place: str) -> ConfigTrial:
    log = os.path.join(place, "log")
    argv = [rsync, "--server", "--daemon", f"--log-file={log}", f"--config={place}/rsyncd.conf", "."]
    ran = run(argv, given=_GREETING, timeout=_TRIAL_PATIENCE)
    said = read_text(log) if os.path.exists(log) else ""
    return read_trial(said.replace(f"{place}/d/", "") + "\n" + ran.stderr.decode(errors="replace"), ran.stdout)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write(text)


class ConfigRefusal(Exception):
    """Nothing was changed; the text says everything that stands in the way."""


class ConfigRequest(NamedTuple):
    """Requested configuration: the options of the module."""

    path: str
    include_dir: str
    mode: str
    modules: list[dict[str, Any]]
    options: dict[str, Any]
    defaults: dict[str, Any]
    user: str
    group: str
    users: list[str]
    secrets_file: str | None
    header: str


class ConfigResult(NamedTuple):
    """Results that the role needs next. Values are those of ``Values``, with lists for tuples."""

    modules: list[dict[str, object]]
    kept: list[dict[str, object]]
    daemon: dict[str, object]
    log_files: list[str]
    restart_needed: bool
    created: list[str]


class ConfigWriter:
    """What will be written, checked. Raise Refused if it cannot work; nothing is written before ``install``."""

    def __init__(self, wanted: ConfigRequest, rsync: str, scratch: str) -> None:
        self._wanted, self._rsync, self._scratch = wanted, rsync, scratch
        self._folder = wanted.include_dir.rstrip("/") or "/"
        self._managed = wanted.secrets_file or ""
        problems = all_problems(wanted.modules, {**wanted.defaults, **wanted.options}, wanted.users, self._managed)
        if problems:
            raise ConfigRefusal(_refusal("the configuration of the rsync daemon cannot be used", problems))
        self._before = read_text(wanted.path) if os.path.exists(wanted.path) else ""
        self._conf = load_from_disk(wanted.path) if self._before else Conf()
        goes = wanted.mode == "whole" or host_problems.is_whole(self._before)
        self._said = {} if goes else host_problems.starting_options(self._before)  # by others, and stays
        self.daemon, self._shared = self._split()
        daemon_uid = str(self.daemon.get("daemon_uid") or self._said.get("daemon_uid", ""))
        self._plain_user = "" if daemon_uid in ROOT else daemon_uid  # of a daemon without the rights of root
        given = [module_values(module)[0] for module in wanted.modules]
        self.modules = [self._effective(values) for values in given if values["state"] == "present"]
        self._absent = [values["name"] for values in given if values["state"] == "absent"]
        self.kept = self._find_kept({same_name(values["name"]) for values in given})
        self.warnings: list[str] = []
        self._check_host()
        self.changes = self._find_changes()
        self.missing = [values for values in self.modules if not varies(values["path"]) and _is_missing(values["path"])]
        self._try()

    @property
    def changed(self) -> bool:
        """Whether installing changes anything."""
        return bool(self.changes or self.missing)

    def result(self) -> ConfigResult:
        """Return what the role needs next."""
        logs = [values.get("log_file", "") for values in (*self.modules, *self.kept, self.daemon)]
        return ConfigResult(
            modules=[_plain(values) for values in self.modules],
            kept=[_plain(values) for values in self.kept],
            daemon=_plain(self.daemon),
            log_files=sorted({path for path in logs if path and not varies(path)}),
            restart_needed=self._restart_needed(),
            created=[values["path"] for values in self.missing],
        )

    def diff(self) -> list[dict[str, str]]:
        """Return what changes, as Ansible shows it."""
        return [
            {
                "before_header": path,
                "after_header": path,
                "before": read_text(path) if os.path.exists(path) else "",
                "after": text or "",
            }
            for path, text in self.changes.items()
        ]

    def install(self, move: Callable[[str, str], None]) -> None:
        """Put everything in place. ``move`` (from, to) replaces a file at one stroke.

        Modules come before the line that makes the daemon read them, so it never sees a half of the change.
        """
        for values in self.missing:
            self._make(values)
        for path in sorted(self.changes, key=lambda path: path == self._wanted.path):
            text = self.changes[path]
            if text is None:
                os.unlink(path)
                continue
            os.makedirs(os.path.dirname(path), _FOLDER_MODE, exist_ok=True)
            handle, fresh = tempfile.mkstemp(dir=self._scratch)
            with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as stream:
                stream.write(text)
            os.chmod(fresh, os.stat(path).st_mode & 0o7777 if os.path.exists(path) else _FILE_MODE)
            move(fresh, path)

    def _split(self) -> tuple[Values, Values]:
        """Return what goes into the global part, and the defaults that each module gets in its own file.

        Where others have modules, defaults stay out of the global part: they would change those.
        """
        wanted = self._wanted
        options = {key: value for key, value in wanted.options.items() if value is not None}
        unset = {key for key, value in wanted.options.items() if value is None}
        defaults = {key: value for key, value in wanted.defaults.items() if key not in unset and key not in options}
        asked, _none = daemon_values(options)
        offered, _none = daemon_values(defaults)
        both: Values = {**offered, **asked}
        shared = _only(both, OF_A_MODULE - NOT_SHARED)
        if wanted.mode == "whole":
            return both, shared
        daemon = _only(asked, OF_THE_DAEMON | READ_AT_START)
        if not self._others():
            if "reverse_lookup" in asked:  # counts for the first look at a client too, before it names a module
                daemon["reverse_lookup"] = asked["reverse_lookup"]
            daemon = {**_only(offered, offered.keys() - self._said), **daemon}
        else:
            daemon = {**_only(offered, OF_THE_DAEMON - set(self._said)), **daemon}
        return daemon, shared

    def _others(self) -> bool:
        """Return whether modules that are not the role's will be in the configuration, those beside ours included."""
        path = self._wanted.path
        text = include_text("" if host_problems.is_whole(self._before) else self._before, {}, self._folder)
        conf = load(path, lambda name: text if name == path else read_text(name), folder_names)
        return any(file == path or not is_ours(read_text(file)) for module in conf.modules for file in module.files)

    def _find_kept(self, named: set[str]) -> list[Values]:
        """Return the role's existing modules that stay: what they need must stay permitted, too."""
        return [
            effective(module)
            for module in self._conf.modules
            if same_name(module.name) not in named
            and "path" in module.options
            and all(is_ours(read_text(path)) for path in module.files)
        ]

    def _effective(self, values: Values) -> Values:
        """Return a module with all options of the role. They are explicit, so global options of others do not apply."""
        full: Values = {**self._shared, **values}
        full.setdefault("read_only", True)
        full.setdefault("use_chroot", not self._plain_user)
        if self._plain_user:
            full.setdefault("uid", self._plain_user)  # rsync sets no groups then, if none are named
        elif "uid" not in full:
            full["uid"] = self._wanted.user
            full.setdefault("gid", (self._wanted.group,))
        elif "gid" not in full:
            full["gid"] = ("0",) if full["uid"] in ROOT else ("*",)
        if "auth_users" in full and self._managed:
            full.setdefault("secrets_file", self._managed)
        return full

    def _check_host(self) -> None:
        wanted = self._wanted
        problems = host_problems.daemon_problems(self.daemon, self._said)
        conf = self._conf
        if wanted.mode == "whole":  # what stands in rsyncd.conf itself will be gone
            for module in conf.modules:
                module.files = [path for path in module.files if path != wanted.path]
        problems += host_problems.managed_secrets_problems(self._managed, self._folder)
        problems += host_problems.name_problems([values["name"] for values in self.modules], conf, self._folder)
        for values in self.modules:
            found = host_problems.path_problems(values) + host_problems.file_problems(values, self._managed)
            if self._plain_user:
                found += host_problems.rights_problems(values, self._plain_user, self._managed)
            problems += found
            self.warnings += doubts(values) + ([] if found else host_problems.path_doubts(values))
        if problems:
            raise ConfigRefusal(_refusal("this host is not ready for the rsync daemon as it is asked for", problems))

    def _find_changes(self) -> dict[str, str | None]:
        wanted, found = self._wanted, {}
        texts: dict[str, str | None] = {}
        for values in self.modules:
            texts[os.path.join(self._folder, file_name(values["name"]))] = module_text(values, {}, wanted.header)
        for name in self._absent:
            path = os.path.join(self._folder, file_name(name))
            if os.path.exists(path) and is_ours(read_text(path)):
                texts[path] = None
        if wanted.mode == "whole":
            texts[wanted.path] = whole_text(self.daemon, self._folder, wanted.header)
        else:
            existing = "" if host_problems.is_whole(self._before) else self._before
            texts[wanted.path] = include_text(existing, self.daemon, self._folder, wanted.header)
        for path, text in texts.items():
            there = read_text(path) if os.path.exists(path) else None
            if there != text:
                found[path] = text
        return found

    def _try(self) -> None:
        """Let rsync read the new configuration. Complaints that it has about the old one too are not ours."""
        if not self._rsync or not self.changes:
            return
        wanted = self._wanted
        try:
            before = ConfigTrial(True, ())
            if self._before:
                before = try_files(self._rsync, wanted.path, self._folder, {}, self._scratch)
            after = try_files(self._rsync, wanted.path, self._folder, self.changes, self._scratch)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigRefusal(
                f"rsync could not be run to try the new configuration: {error}. Nothing was changed"
            ) from error
        worse = after.worse_than(before)
        if worse or not after.serves:
            was_so = "" if before.serves else " It does not understand the one that is in place either: fix that first."
            said = "; ".join(worse or after.complaints) or "it would not talk to clients"
            raise ConfigRefusal(
                f"rsync does not understand the new configuration, so the old one was kept: {said}. An option that "
                f"this version of rsync does not know cannot be used with it.{was_so}"
            )
        self.warnings += [f"rsync says about lines of others in {wanted.path}: {text}" for text in before.complaints]

    def _restart_needed(self) -> bool:
        """Return whether what a daemon reads only at its start changes."""
        new = self.changes.get(self._wanted.path)
        if new is None:
            return False
        keys = OF_THE_DAEMON | READ_AT_START
        sides = [host_problems.starting_options_of(text) for text in (self._before, new)]
        return {k: v for k, v in sides[0].items() if k in keys} != {k: v for k, v in sides[1].items() if k in keys}

    def _make(self, values: Values) -> None:
        os.makedirs(values["path"], 0o755, exist_ok=True)
        ids = identity.find_ids(values["uid"], values.get("gid", ()))
        os.chmod(values["path"], int(values["path_mode"], 8))
        if os.geteuid() == 0:
            os.chown(values["path"], ids.uid, ids.gid)


def _is_missing(path: str) -> bool:
    return not os.path.lexists(path)


def _only(values: Values, keys: AbstractSet[str]) -> Values:
    return cast(Values, {key: value for key, value in values.items() if key in keys})


def _plain(values: Values) -> dict[str, object]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def _refusal(what: str, problems: list[str]) -> str:
    return "\n".join([f"{what}. Nothing was changed.", *(f"- {problem}" for problem in problems)])
