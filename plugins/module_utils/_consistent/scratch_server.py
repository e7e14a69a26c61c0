# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server of its own for a restore drill, into which dumps are loaded, and which is gone with all of them afterwards.

A dump is a program: it may have events, subscriptions and functions that run with the rights of who loads it, and its
databases go to replicas of a server in use. So no server in use ever sees one: this one has new, empty tables in the
scratch folder, a socket in a folder that only its user can enter, and a user that owns nothing else. It and the
programs that load run in namespaces: they reach no network, and whatever a dump starts ends with them.
"""

from __future__ import annotations

import contextlib
import glob
import os
import stat
import subprocess
import time
from typing import Mapping, Sequence

from .._core import subprocesses
from .._core.context import Progress
from .._core.disk_full import find_room, usable_room
from .._core.errors import TransferFailed
from .._tree.dirfd import Root
from .._tree.resolve import real_path
from . import mariadb, postgresql
from .dump_folder import name_in_file
from .namespace import Namespace
from .programs import Account, find_account, last_words, require_program, run_program
from .request import ScratchLoad

NOBODY = "nobody"
_WORK = "server"  # in the scratch folder
_SOCKET_MAX = 103  # bytes of the path of a socket: sun_path of BSD, without its end
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")  # Debian, PGDG, its own
_LOOK = 0.2  # seconds
_BEGINS = 120.0  # seconds for a server to begin
_PACKET = "--max-allowed-packet=1G"  # of one statement with a large value, in hexadecimal digits
_SYSTEM = "mysql"  # the database of MariaDB with its accounts, over which no dump goes


class ScratchServer:
    """A server with its tables in a scratch folder, from ``with`` to its end."""

    ending = ""  # of a dump

    def __init__(self, asked: ScratchLoad) -> None:
        """Take the folder of dumps, and the one for the server. Raises TransferFailed."""
        self._asked = asked
        self._account, self._own_account = find_account(asked.user or NOBODY), find_account(os.geteuid())
        self.folder = os.path.join(os.fsdecode(real_path(os.fsencode(asked.place))), _WORK)
        self._process: subprocess.Popen[bytes] | None = None
        self._namespace: Namespace | None = None
        self._log = -1

    @property
    def socket(self) -> str:
        """The path of its socket."""
        raise NotImplementedError

    def __enter__(self) -> ScratchServer:
        """Make empty tables, and start the server. Raises TransferFailed."""
        if len(os.fsencode(self.socket)) > _SOCKET_MAX:
            raise TransferFailed(
                f"the path of the server's socket, {self.socket}, is longer than {_SOCKET_MAX} bytes. Name a folder "
                "with a shorter path (into)"
            )
        _require_way(self.folder, self._account)
        try:
            os.mkdir(self.folder, 0o700)
            self._log = os.open(os.path.join(self.folder, "log"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.chown(self.folder, self._account.uid, self._account.gid)
        except OSError as error:
            raise TransferFailed(
                f"no folder can be made for a server in {self._asked.place}: {error.strerror}"
            ) from error
        try:
            self._namespace = Namespace()
            self._make()
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        """End the server, and remove all that it had."""
        self.close()

    def close(self) -> None:
        """End the server at once, since nobody needs its tables any more, and remove them. Raises TransferFailed."""
        namespace, self._namespace = self._namespace, None
        process, self._process = self._process, None
        if namespace is not None:
            namespace.close()
        if process is not None:
            process.wait()
        if self._log < 0:
            return
        os.close(self._log)
        self._log = -1
        try:
            with Root(real_path(os.fsencode(self._asked.place))) as root, contextlib.suppress(FileNotFoundError):
                root.remove(os.fsencode(_WORK))
        except OSError as error:
            raise TransferFailed(f"{self.folder} cannot be removed: {error.strerror or error}") from error

    def load(self, progress: Progress) -> None:
        """Load the dumps. Raises TransferFailed."""
        names = self._names()
        planned = plan_databases(names, self._asked.databases, self.ending)
        progress.files_total = len(planned)
        try:
            with Root(real_path(os.fsencode(self._asked.folder))) as root:
                self._prepare(root, names)
                for file, name in planned.items():
                    progress.current = file
                    dump = root.open_file(os.fsencode(file))
                    try:
                        self._load(dump, name)
                    finally:
                        os.close(dump)
                    progress.files_done += 1
        except OSError as error:
            raise TransferFailed(f"a dump in {self._asked.folder} cannot be read: {error.strerror}") from error

    def hold(self) -> None:
        """Keep the server for as long as it is asked for. Raises TransferFailed if it ends before."""
        end = time.monotonic() + self._asked.hold
        while time.monotonic() < end:
            self._look()
            time.sleep(_LOOK)

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(real_path(os.fsencode(self._asked.folder)).decode(errors="surrogateescape")))
        except OSError as error:
            raise TransferFailed(f"the dumps in {self._asked.folder} cannot be read: {error.strerror}") from error

    def _look(self) -> None:
        """Raise TransferFailed if the server has ended, or its file system has too little room."""
        room = find_room(self.folder)
        if usable_room(room.total, room.free) <= 0:
            raise TransferFailed(
                f"the file system of {self._asked.place} has {room.free} bytes free, and a drill leaves a tenth of it "
                "or 1 GiB, so the server was stopped. Make room there, or name another folder (into)"
            )
        if self._process is not None and self._process.poll() is not None:
            raise TransferFailed(f"the server for the dumps has ended: {last_words(self._log) or 'it said nothing'}")

    def _inside(self, argv: Sequence[str]) -> list[str]:
        if self._namespace is None:
            raise TransferFailed("the server for the dumps has ended")
        return [*self._namespace.enter(self._account), *argv]

    def _run(
        self,
        argv: Sequence[str],
        what: str,
        stdin: int = subprocess.DEVNULL,
        variables: Mapping[str, str] | None = None,
        told: str = "",
    ) -> None:
        """Run a program inside, as the user of the server."""
        given = {**self._account.variables, **(variables or {})}
        run_program(
            self._inside(argv), self._own_account, what, stdin=stdin, variables=given, look=self._look, told=told
        )

    def _start_program(self, argv: Sequence[str]) -> None:
        inside = self._inside(argv)
        try:
            self._process = subprocesses.start(
                inside,
                stdout=self._log,
                stderr=self._log,
                extra_environment=self._account.variables,
                new_session=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise TransferFailed(f"{argv[0]} cannot be run as {self._account.name}: {error}") from error
        end = time.monotonic() + _BEGINS
        while True:
            self._look()
            try:
                self._ask()
                return
            except TransferFailed:
                if time.monotonic() > end:
                    raise
            time.sleep(_LOOK)

    def _make(self) -> None:
        """Make empty tables."""
        raise NotImplementedError

    def _start(self) -> None:
        """Start the server, and wait until it answers."""
        raise NotImplementedError

    def _ask(self) -> None:
        """Raise TransferFailed if the server does not answer."""
        raise NotImplementedError

    def _prepare(self, root: Root, names: Sequence[str]) -> None:
        """Do what comes before the first dump."""

    def _load(self, dump: int, name: str) -> None:
        """Load an open dump into the database of this name."""
        raise NotImplementedError


class PostgresqlServer(ScratchServer):
    """A server of PostgreSQL. Its roles are those of the one that was dumped, if these were dumped, too."""

    ending = postgresql.ENDING

    @property
    def socket(self) -> str:
        """The path of its socket, in the folder that programs are told."""
        return os.path.join(self.folder, ".s.PGSQL.5432")

    def _make(self) -> None:
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync"]
        argv = [_postgresql_program("initdb"), *options, f"--pgdata={self.folder}/cluster"]
        self._run(argv, "making an empty cluster of PostgreSQL")
        self._has_roles = False

    def _start(self) -> None:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": self.folder,
            "unix_socket_permissions": "0700",
            "fsync": "off",
            "full_page_writes": "off",
            "wal_level": "minimal",
            "max_wal_senders": "0",
            "max_logical_replication_workers": "0",
        }
        argv = [_postgresql_program("postgres"), "-D", f"{self.folder}/cluster", "-p", "5432"]
        self._start_program([*argv, *(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))])

    @property
    def _variables(self) -> Mapping[str, str]:
        return {**postgresql.server_variables(self.folder, 5432, "postgres"), "PGUSER": "postgres"}

    def _ask(self) -> None:
        self._program("psql", ["--no-psqlrc", "--quiet", "--command=SELECT 1"], "asking the server of the drill")

    def _prepare(self, root: Root, names: Sequence[str]) -> None:
        self._has_roles = postgresql.GLOBALS in names
        if self._has_roles:
            roles = root.open_file(os.fsencode(postgresql.GLOBALS))
            try:  # what exists already, and tablespaces, are errors that do not count
                self._program("psql", ["--no-psqlrc", "--quiet"], "loading the roles of PostgreSQL", roles)
            finally:
                os.close(roles)

    def _load(self, dump: int, name: str) -> None:
        what = f"loading the PostgreSQL database {name}"
        if name != "postgres":
            self._program("createdb", ["--template=template0", "--", name], what)
        quoted = name.replace("\\", "\\\\").replace("'", "\\'")
        options = ["--exit-on-error", "--no-tablespaces", "--no-subscriptions"]
        options += [] if self._has_roles else ["--no-owner", "--no-privileges"]
        self._program("pg_restore", [*options, f"--dbname=dbname='{quoted}'"], what, dump)

    def _program(self, program: str, options: list[str], what: str, stdin: int = subprocess.DEVNULL) -> None:
        argv = [_postgresql_program(program), "--no-password", *options]
        self._run(argv, what, stdin, self._variables, postgresql.TOLD)


class MariadbServer(ScratchServer):
    """A server of MariaDB, in which no event runs."""

    ending = mariadb.ENDING

    @property
    def socket(self) -> str:
        """The path of its socket."""
        return os.path.join(self.folder, "socket")

    @property
    def _own(self) -> list[str]:
        fast = ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"]
        return ["--no-defaults", f"--datadir={self.folder}/data", f"--tmpdir={self.folder}", *fast]

    def _make(self) -> None:
        options = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        self._run([require_program("mariadb-install-db"), *self._own, *options], "making empty tables of MariaDB")

    def _start(self) -> None:
        argv = [require_program("mariadbd", "mysqld"), *self._own, f"--socket={self.socket}"]
        argv += [
            f"--pid-file={self.folder}/pid",
            "--skip-networking",
            "--skip-log-bin",
            "--event-scheduler=OFF",
            _PACKET,
        ]
        self._start_program(argv)

    def _ask(self) -> None:
        self._client(["--execute=SELECT 1"], "asking the server of the drill")

    def _load(self, dump: int, name: str) -> None:
        what = f"loading the MariaDB database {name}"
        self._client([f"--execute=CREATE DATABASE {mariadb.quoted(name)}"], what)
        self._client([*mariadb.ONLY_SQL, f"--database={name}"], what, dump)

    def _client(self, options: list[str], what: str, stdin: int = subprocess.DEVNULL) -> None:
        argv = [require_program("mariadb", "mysql"), "--no-defaults", f"--socket={self.socket}", "--user=root"]
        argv += ["--batch", _PACKET, *options, "--default-character-set=utf8mb4"]
        self._run(argv, what, stdin, told=mariadb.TOLD)


def scratch_server(asked: ScratchLoad) -> ScratchServer:
    """Return the server for a kind of dumps. Raises TransferFailed."""
    return PostgresqlServer(asked) if asked.kind == "postgresql" else MariadbServer(asked)


def plan_databases(names: Sequence[str], wanted: Sequence[str], ending: str) -> Mapping[str, str]:
    """Return the databases to load by the files of a folder of dumps with these names. Pure. Raises TransferFailed."""
    found = {name: name_in_file(name, ending) for name in names if name.endswith(ending) and not name.startswith(".")}
    missing = [one for one in wanted if one not in found.values()]
    if missing or not found:
        named = f"no dump of {missing[0]!r:.80}" if missing else "no dump"
        raise TransferFailed(
            f"there is {named} in what was restored. It has {', '.join(found.values())[:500] or 'none'}"
        )
    if ending == mariadb.ENDING:
        found = {file: f"{name}_loaded" if name == _SYSTEM else name for file, name in found.items()}
    return {file: name for file, name in found.items() if not wanted or name_in_file(file, ending) in wanted}


def _postgresql_program(name: str) -> str:
    """Return the path of a program of the newest server of PostgreSQL on this host. Raises TransferFailed."""
    found = [path for place in _PLACES for path in glob.glob(os.path.join(place, "postgres"))]
    beside = os.path.join(os.path.dirname(max(found, key=_version)), name) if found else ""
    return beside if os.path.exists(beside) else require_program(name)


def _version(path: str) -> list[int]:
    digits = "".join(letter if letter.isdigit() else " " for letter in path)
    return [int(number) for number in digits.split()]


def _require_way(path: str, account: Account) -> None:
    """Raise TransferFailed unless a user can enter all folders above a path."""
    folder = os.path.dirname(path)
    while True:
        found = os.stat(folder)
        bit = stat.S_IXUSR if found.st_uid == account.uid else stat.S_IXOTH
        if found.st_uid != account.uid and (found.st_gid == account.gid or found.st_gid in account.groups):
            bit = stat.S_IXGRP
        if account.uid != 0 and not found.st_mode & bit:
            raise TransferFailed(
                f"{account.name}, as which the server for the dumps runs, cannot enter {folder}. Let it (chmod o+x), "
                "name another folder (into), or another user"
            )
        if folder == "/":
            return
        folder = os.path.dirname(folder)
