# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dumps of PostgreSQL databases: each is one file for pg_restore, as the database was at one moment."""

from __future__ import annotations

import os
import subprocess
from typing import Collection, Mapping

from .._core.errors import TransferFailed
from .dump_folder import DumpFolder, file_name
from .made import MadeList
from .programs import Account, ask_program, find_account, require_program, run_program
from .request import DumpLoad, PostgresqlSource

ENDING, GLOBALS = ".dump", "globals.sql"
TOLD = r"(?i)(error|fatal|nsenter|could not)\b"  # lines of a loading program; those of a context have rows of tables
_SIGNATURE = b"PGDMP"  # begins each dump
_LOCK_WAIT = 600_000  # milliseconds for a table that another session has for itself
_SIZES = "SELECT datname, pg_database_size(oid) FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY 1"
_QUIET = ("--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1")
_FIELDS = ("--no-align", "--tuples-only", "--field-separator-zero", "--record-separator-zero")


def server_variables(socket: str, port: int, database: str) -> Mapping[str, str]:
    """Return the variables by which the programs find the server. A name in them is never read as options."""
    found = {"PGDATABASE": database, "PGCONNECT_TIMEOUT": "30"}
    return {**found, **({"PGHOST": socket} if socket else {}), **({"PGPORT": str(port)} if port else {})}


def parse_sizes(answer: bytes) -> dict[str, int]:
    """Return the databases of a server, with their sizes in bytes. Pure. Raises TransferFailed."""
    words = answer.rstrip(b"\n").split(b"\0")
    if words and not words[-1]:
        words.pop()
    try:
        return {os.fsdecode(name): int(size) for name, size in zip(words[::2], words[1::2])}
    except ValueError:
        raise TransferFailed("the list of databases of PostgreSQL cannot be read") from None


def choose(wanted: list[str], sizes: Mapping[str, int]) -> list[str]:
    """Return the databases to dump. Pure. Raises TransferFailed for one that is not there."""
    missing = [name for name in wanted if name not in sizes]
    if missing:
        raise TransferFailed(
            f"the server has no database {missing[0]!r:.80}. Correct databases; it has {', '.join(sizes)[:500]}"
        )
    return list(dict.fromkeys(wanted)) or list(sizes)


def list_databases(user: str, socket: str, port: int) -> dict[str, int]:
    """Return the databases of a server, with their sizes in bytes. Raises TransferFailed."""
    variables = {**server_variables(socket, port, "postgres"), "PGCLIENTENCODING": "UTF8"}
    argv = [require_program("psql"), *_QUIET, *_FIELDS, f"--command={_SIZES}"]
    return parse_sizes(ask_program(argv, find_account(user), "asking PostgreSQL for its databases", variables))


def dump_postgresql(source: PostgresqlSource, made: MadeList) -> tuple[int, int]:
    """Dump databases; return how many, and their size in bytes. Raises TransferFailed."""
    account = find_account(source.user)
    pg_dump = require_program("pg_dump")
    sizes = list_databases(source.user, source.socket, source.port)
    names = choose(list(source.databases), sizes)
    level = [f"--compress={source.compress}"] if source.compress >= 0 else []
    with DumpFolder(source.place, made, account) as folder:
        folder.require_room(sum(sizes[name] for name in names), source.free_percent)
        if source.globals:
            program = [require_program("pg_dumpall"), "--globals-only", "--no-password"]
            _dump(folder, GLOBALS, program, account, source, "postgres", b"")
        for name in names:
            argv = [pg_dump, "--format=custom", "--no-password", f"--lock-wait-timeout={_LOCK_WAIT}", *level]
            _dump(folder, file_name(name, ENDING), argv, account, source, name, _SIGNATURE)
        return len(names), folder.publish()


def _dump(
    folder: DumpFolder,
    file: str,
    argv: list[str],
    account: Account,
    source: PostgresqlSource,
    database: str,
    signature: bytes,
) -> None:
    what = f"the dump of the PostgreSQL database {database}" if signature else "the dump of the roles of PostgreSQL"
    fd = folder.create(file)
    try:
        variables = server_variables(source.socket, source.port, database)
        run_program(argv, account, what, stdout=fd, variables=variables)
        if not os.fstat(fd).st_size or os.pread(fd, len(signature), 0) != signature:
            raise TransferFailed(f"{what} failed: {os.path.basename(argv[0])} ended well, and its file holds no dump")
    finally:
        os.close(fd)


class PostgresqlLoader:
    """Loads dumps of PostgreSQL, as its user."""

    ending = ENDING

    def __init__(self, asked: DumpLoad) -> None:
        """Take what is loaded, and where the server is. Raises TransferFailed."""
        self._asked, self._account = asked, find_account(asked.user)

    def names(self) -> Collection[str]:
        """Return the names of the databases that exist."""
        return list_databases(self._asked.user, self._asked.socket, self._asked.port)

    def create(self, name: str) -> None:
        """Create an empty database."""
        self._run("createdb", ["--template=template0", "--", name], f"creating the PostgreSQL database {name}")

    def drop(self, name: str) -> None:
        """Remove a database that was created here."""
        self._run("dropdb", ["--if-exists", "--", name], f"removing the PostgreSQL database {name}")

    def load(self, dump: int, name: str) -> None:
        """Load an open dump into a database, in one transaction."""
        quoted = name.replace("\\", "\\\\").replace("'", "\\'")
        options = ["--exit-on-error", "--single-transaction", f"--dbname=dbname='{quoted}'"]
        options += ["--clean", "--if-exists"] if self._asked.over else []
        options += [] if self._asked.owners else ["--no-owner", "--no-privileges"]
        self._run("pg_restore", options, f"loading the PostgreSQL database {name}", dump)

    def _run(self, program: str, options: list[str], what: str, stdin: int = subprocess.DEVNULL) -> None:
        argv = [require_program(program), "--no-password", *options]
        variables = server_variables(self._asked.socket, self._asked.port, "postgres")
        run_program(argv, self._account, what, stdin=stdin, variables=variables, told=TOLD)
