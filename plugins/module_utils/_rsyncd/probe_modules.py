# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every module of a daemon is tried as a client would, and what fails is explained. Private to the collection.

What is written into a module is a folder of its own with a random name, and it is removed.
"""

from __future__ import annotations

import fnmatch
import os
import secrets
import shutil
import tempfile
import time
from typing import Any, Mapping, NamedTuple, Sequence

from .._core.rsync_vulnerabilities import open_vulnerabilities, version_of
from .._core.subprocesses import run
from . import access, identity
from .check import may_write, plain_users, varies, write_as_root
from .conf import Conf, Module, effective, load_from_disk, read_text, typed
from .diagnose import ERROR, NOTE, WARNING, ModuleEnvironment, ModuleFinding, diagnose, mount_of
from .local_client import ClientResult, Daemon, RsyncClient
from .options import Values

_PREFIX = ".longhaul-diagnose-"
_STRANGER = 54321  # a user that files are said to belong to, to see whether owners are kept
_TARGET = "/etc/longhaul-diagnose"  # of a symlink that is absolute
_CAP_MKNOD = 27  # capability.h
_LOG_TAIL = 1 << 16
_SYSLOGS = ("/var/log/daemon.log", "/var/log/syslog", "/var/log/messages")
_LOG_PATIENCE = 1.0  # seconds until the daemon has written why it refused
_BEHIND_PROXY = (
    "`proxy protocol` lets only a proxy connect, so the modules were tried by a private daemon with their other options"
)
_TURNED_AWAY = frozenset(["hosts_allow", "unknown_module", "connections_full"])


class DiagnosisRequest(NamedTuple):
    """Options of a diagnosis."""

    config: str
    modules: Sequence[str]  # none: all
    clients: Sequence[str]  # addresses
    options: Sequence[str]  # of rsync
    logins: Mapping[str, str]  # user → password, in place of those in the secrets file
    unit: str
    pid: int  # of the daemon; 0 where it is not known
    rsync: str
    nsenter: str
    journalctl: str
    version: str  # what rsync --version says
    changelog: str  # of the package


class Diagnosis:
    """Tries, and collects findings."""

    def __init__(self, request: DiagnosisRequest) -> None:
        self._request = request
        self.findings: list[ModuleFinding] = []
        self.modules: list[dict[str, Any]] = []

    def make(self) -> None:
        """Find everything out. Raise OSError if rsyncd.conf cannot be read."""
        request = self._request
        conf = load_from_disk(request.config)
        for hole in open_vulnerabilities(version_of(request.version), request.changelog):
            self._find(
                "", "old_version", WARNING, f"the installed rsync has a known hole: {hole.text}. Update the package"
            )
        for path in conf.missing:
            self._find("", "missing_include", WARNING, f"{request.config} includes {path}, which is not there")
        unknown = [name for name in request.modules if conf.module(name) is None]
        for name in unknown:
            self._find(name, "unknown_module", ERROR, f"module {name}: {request.config} has no such module")
        wanted = [conf.module(name) for name in request.modules if name not in unknown] or conf.modules
        address = conf.start.get("address", "") or "127.0.0.1"
        port = conf.start.get("port", "873")
        behind_proxy = bool(typed(conf.start).get("proxy_protocol"))
        daemon = Daemon(address, int(port) if port.isdigit() else 873, request.pid, behind_proxy)
        client = RsyncClient(request.rsync, daemon, request.nsenter)
        listed = client.listing()
        if behind_proxy:
            self._find("", "behind_proxy", NOTE, _BEHIND_PROXY)
        if listed.code:
            around = ModuleEnvironment("", request.config, "", "", unit=request.unit)
            said = diagnose(listed.said, around)
            self._find("", said.code, ERROR, said.text.replace("module : ", "the daemon: ", 1))
        for module in wanted:
            if module is not None:
                trial = _ModuleTrial(request, conf, module, client, asks_daemon=not (listed.code or behind_proxy))
                trial.make()
                self.findings += trial.findings
                self.modules.append(trial.result)

    def _find(self, module: str, code: str, severity: str, text: str) -> None:
        self.findings.append(ModuleFinding(module, code, severity, text))


class _ModuleTrial:
    """One module."""

    def __init__(
        self, request: DiagnosisRequest, conf: Conf, module: Module, client: RsyncClient, asks_daemon: bool
    ) -> None:
        self._request, self._conf, self._module, self._client = request, conf, module, client
        self._private = not asks_daemon
        self._values = effective(module)
        self.findings: list[ModuleFinding] = []
        self.result: dict[str, Any] = {"name": module.name, "path": self._values.get("path", "")}
        self._login: tuple[str, str] | None = ("", "")

    def make(self) -> None:
        """Try in the order of a client's life: get in, read, write."""
        values = self._values
        if len(self._module.files) > 1:
            files = " and ".join(self._module.files)
            self._find("two_modules", ERROR, f"it is written in {files}, and rsync mixes both. Rename one")
        self._check_clients()
        if write_as_root(values):
            self._find("writes_as_root", WARNING, write_as_root(values))
        self._login = choose_login(values, self._request.logins)
        self.result.update(read=None, write=None, private=self._private)
        if self._login is None:
            self._find("no_login", NOTE, "no user with a known password may use it, so it was not tried")
            return
        read = self._try(["--list-only", "--dirs", "{}"], "")
        if read.code and not values.get("write_only"):
            found = self._explain(read)
            if found.code in _TURNED_AWAY and not self._private:
                self._turned_away(found)
                if found.code == "connections_full":
                    self.findings.append(found)
                    return
                self._private = self.result["private"] = True
                read = self._try(["--list-only", "--dirs", "{}"], "")
        self.result["read"] = not read.code
        if read.code and not values.get("write_only"):
            self.findings.append(self._explain(read))
            return
        self._check_kept()
        access_of_login = plain_users(values).get(self._login[0], "")
        if access_of_login == "rw" or (access_of_login != "ro" and not values.get("read_only", True)):
            self._write()
        if not varies(str(values.get("path", ""))):
            self._try_options()

    def _turned_away(self, found: ModuleFinding) -> None:
        """The host itself is kept out: no fault, unless clients are; they were judged by their addresses."""
        if found.code == "connections_full":
            return
        allow, deny = self._values.get("hosts_allow", ()), self._values.get("hosts_deny", ())
        if allow or deny:
            self._find(
                "hosts_allow",
                NOTE,
                f"`hosts allow` or `hosts deny` keeps this host itself ({self._own_address()}) out, so the module was "
                "tried by a private daemon with its other options",
            )
        else:
            self.findings.append(found)

    def _own_address(self) -> str:
        return self._conf.start.get("address", "") or "127.0.0.1"

    def _check_clients(self) -> None:
        allow, deny = self._values.get("hosts_allow", ()), self._values.get("hosts_deny", ())
        for address in self._request.clients:
            verdict = access.verdict(address, allow, deny)
            if verdict is False:
                rules = f"hosts allow = {' '.join(allow)}" if allow else f"hosts deny = {' '.join(deny)}"
                self._find("hosts_allow", ERROR, f"the client {address} cannot connect: `{rules}` keeps it out. Add it")
            elif verdict is None:
                self._find("hosts_allow", NOTE, f"whether {address} may connect depends on a lookup of names")

    def _check_kept(self) -> None:
        """Report what the configuration silently changes or loses."""
        values = self._values
        if not may_write(values):
            return
        munged = values.get("munge_symlinks")
        chrooted = values.get("use_chroot", True) and "/./" not in values.get("path", "")
        if munged is None and not chrooted:
            munged = True
        if munged:
            self._find(
                "munged_symlinks",
                WARNING,
                "symlinks are stored as /rsyncd-munged/..., which leads nowhere on this host (`munge symlinks`, the "
                "default without a plain chroot). Set use_chroot: true to preserve them",
            )
        elif not chrooted:
            self._find(
                "rewritten_symlinks",
                WARNING,
                "absolute symlinks, and those that lead out of the module, are rewritten when they arrive (no chroot, "
                "and `munge symlinks = no`). Set use_chroot: true to preserve them",
            )

    def _write(self) -> None:
        """Send a folder with a file and a symlink, and look at what arrived."""
        place = _PREFIX + secrets.token_hex(4)
        real = os.path.join(str(self._values.get("path", "")).replace("/./", "/"), place)
        with tempfile.TemporaryDirectory() as folder:
            content = secrets.token_bytes(64)
            with open(os.path.join(folder, "file"), "wb") as stream:
                stream.write(content)
            os.symlink(_TARGET, os.path.join(folder, "link"))
            if os.geteuid() == 0:
                os.chown(os.path.join(folder, "file"), _STRANGER, _STRANGER)
            os.chmod(folder, 0o755)
            try:
                sent = self._try(["-rlptog", "--numeric-ids", f"{folder}/", "{}"], f"{place}/")
                arrived = _content(os.path.join(real, "file")) == content if not varies(real) else not sent.code
                self.result["write"] = arrived
                if not arrived:
                    self.findings.append(self._explain(sent))
                elif not varies(real):
                    self._check_arrived(real)
            finally:
                if not varies(real):
                    shutil.rmtree(real, ignore_errors=True)

    def _check_arrived(self, real: str) -> None:
        found = os.lstat(os.path.join(real, "file"))
        if os.geteuid() == 0 and found.st_uid != _STRANGER and not self._values.get("fake_super"):
            self._find(
                "ownership_lost",
                WARNING,
                f"owners are not kept: what arrives belongs to {self._user()}, without an error. Set uid: root (or "
                "fake_super) where they matter",
            )
        if self._is_root() and not self._values.get("fake_super") and not self._may_make_devices():
            self._find(
                "devices_lost",
                WARNING,
                f"device nodes cannot be made: {self._request.unit} takes the right away (PrivateDevices). Open it in "
                "a drop-in where they matter",
            )

    def _try_options(self) -> None:
        """Ask for a dry run with the options of clients, into a folder that is not there."""
        options = list(self._request.options)
        if not options or self.result["write"] is not True:
            return
        with tempfile.TemporaryDirectory() as folder:
            ran = self._try(["--dry-run", *options, f"{folder}/", "{}"], f"{_PREFIX}{secrets.token_hex(4)}/")
        if ran.code:
            found = self._explain(ran)
            self.findings.append(found)
            self.result["options"] = False
        else:
            self.result["options"] = True

    def _try(self, arguments: list[str], place: str) -> ClientResult:
        logs, begun = {} if self._private else self._log_ends(), int(time.time())
        ran = self._client.run(arguments, place, self._module, self._login or ("", ""), self._private)
        if ran.code and not self._private:
            if "auth failed" in ran.said:
                time.sleep(_LOG_PATIENCE)
            ran = ran._replace(log="".join(_since(path, end) for path, end in logs.items()) + self._journal(begun))
        return ran

    def _log_ends(self) -> dict[str, int]:
        """Return the logs of daemon and module, and how long they are."""
        paths = {self._conf.start.get("log_file", ""), str(self._values.get("log_file", ""))}
        if not self._conf.start.get("log_file"):
            paths.update(_SYSLOGS)
        return {path: os.path.getsize(path) for path in paths if path and os.path.isfile(path)}

    def _journal(self, begun: int) -> str:
        """Return what the daemon wrote into systemd's journal since then (seconds since 1970): refused logins are there
        where the daemon as a whole has no log file, whatever file the module has."""
        if self._conf.start.get("log_file") or not self._request.journalctl:
            return ""
        tag = self._conf.start.get("syslog_tag", "rsyncd")
        argv = [self._request.journalctl, "--quiet", "--no-pager", "--output=cat", f"--identifier={tag}"]
        ran = run([*argv, f"--since=@{begun}"])
        return ran.stdout.decode(errors="replace")[-_LOG_TAIL:]

    def _explain(self, ran: ClientResult) -> ModuleFinding:
        return diagnose(ran.said, self._around(ran.log))

    def _around(self, log: str) -> ModuleEnvironment:
        path = os.path.normpath(str(self._values.get("path", "/")).replace("/./", "/"))
        pid, blocked, place, hidden, here, there = self._request.pid, "", "", False, ("", False), ("", False)
        if not varies(path) and os.path.isdir(path):
            place = identity.describe(path)
            try:
                ids = identity.find_ids(self._user(), self._values.get("gid", ()))
                if not identity.enters(ids, path):
                    blocked = f"{path} ({place})"
                here = mount_of(read_text("/proc/self/mountinfo"), path)
                there = mount_of(read_text(f"/proc/{pid}/mountinfo"), path) if pid else here
                hidden = bool(pid) and not os.path.isdir(f"/proc/{pid}/root{path}")
            except (OSError, identity.UnknownAccount):
                pass  # the client's own words are explained by themselves then
        return ModuleEnvironment(
            name=self._module.name,
            config=self._module.files[0] if self._module.files else self._request.config,
            path=path,
            user=self._user(),
            login=self._login[0] if self._login else "",
            log=log,
            blocked=blocked,
            place=place,
            read_only_mount=here[0] if here[1] else "",
            read_only_view=there[0] if there[1] and not here[1] else "",
            hidden=hidden,
            unit=self._request.unit,
            client_addresses=self._own_address(),
        )

    def _user(self) -> str:
        return str(self._values.get("uid", "nobody" if os.geteuid() == 0 else os.geteuid()))

    def _is_root(self) -> bool:
        return self._user() in identity.ROOT

    def _may_make_devices(self) -> bool:
        if not self._request.pid:
            return True
        try:
            status = read_text(f"/proc/{self._request.pid}/status")
        except OSError:
            return True
        bounds = next((line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:")), "f" * 16)
        return bool(int(bounds, 16) >> _CAP_MKNOD & 1)

    def _find(self, code: str, severity: str, text: str) -> None:
        self.findings.append(ModuleFinding(self._module.name, code, severity, f"module {self._module.name}: {text}"))


def choose_login(values: Values, logins: Mapping[str, str]) -> tuple[str, str] | None:
    """Return user and password with which a module is tried, a writer before a reader; None if none is known."""
    if "auth_users" not in values:
        return ("", "")
    known = {**_secrets_of(str(values.get("secrets_file", ""))), **logins}
    users = plain_users(values)
    ranks = {"rw": 0, "": 1, "ro": 2}
    for user in sorted(users, key=lambda user: ranks.get(users[user], 3)):
        if user in known:
            return (user, known[user])
    for rule in values["auth_users"]:
        pattern, _colon, access_given = rule.partition(":")
        if access_given != "deny" and not pattern.startswith("@"):
            for user in known:
                if not user.startswith("@") and fnmatch.fnmatchcase(user, pattern):
                    return (user, known[user])
    # Nobody has a password: a try with any still shows what the daemon says about it.
    return next(((user, "none") for user in users), None)


def _secrets_of(path: str) -> dict[str, str]:
    try:
        lines = read_text(path).splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines if ":" in line and not line.startswith("#"))
    return {user: password for user, _colon, password in reversed(list(pairs))}


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read(1 << 10)
    except OSError:
        return None


def _since(path: str, end: int) -> str:
    try:
        with open(path, "rb") as stream:
            stream.seek(end)
            return stream.read(_LOG_TAIL).decode(errors="replace")
    except OSError:
        return ""
