# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dumps of MariaDB and MySQL databases: each is one file of SQL, as its tables of InnoDB were at one moment."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Collection

from .._core.errors import TransferFailed
from .dump_folder import DumpFolder, file_name
from .made import MadeList
from .postgresql import choose
from .programs import ask_program, find_account, require_program, run_program
from .request import DumpLoad, MariadbSource

ENDING = ".sql"
_OF_THE_SERVER = ("information_schema", "performance_schema", "sys")  # the server itself makes these
_SIZES = (
    "SELECT s.schema_name, COALESCE(SUM(t.data_length), 0) FROM information_schema.schemata s "
    "LEFT JOIN information_schema.tables t ON t.table_schema = s.schema_name GROUP BY s.schema_name ORDER BY 1"
)
_COMPLETE = b"-- Dump completed"  # ends each dump
# How a dump is loaded. Clients before MariaDB 10.5.25 and those of MySQL do not have sandbox, and print a warning.
TOLD = r"^(ERROR|mariadb|mysql|nsenter)\b"  # lines of the client that have no data; others are statements of a dump
ONLY_SQL = ("--binary-mode", "--local-infile=0", "--loose-sandbox")
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0"}


def server_options(defaults_file: str, socket: str) -> list[str]:
    """Return the options by which the programs find the server. No password is among them."""
    # The file with the account must be named first.
    return [
        *([f"--defaults-file={defaults_file}"] if defaults_file else []),
        *([f"--socket={socket}"] if socket else []),
    ]


def parse_sizes(answer: bytes) -> dict[str, int]:
    """Return the databases of a server, with their sizes in bytes. Pure. Raises TransferFailed."""
    sizes: dict[str, int] = {}
    try:
        for line in answer.decode("utf-8", "surrogateescape").split("\n")[:-1]:
            name, size = line.split("\t")
            sizes[re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), name)] = int(size)
    except ValueError:
        raise TransferFailed("the list of databases of MariaDB cannot be read") from None
    return {name: size for name, size in sizes.items() if name.lower() not in _OF_THE_SERVER}


def list_databases(user: str, server: list[str]) -> dict[str, int]:
    """Return the databases of a server, with their sizes in bytes. Raises TransferFailed."""
    argv = [require_program("mariadb", "mysql"), *server, "--batch", "--skip-column-names", f"--execute={_SIZES}"]
    return parse_sizes(ask_program(argv, find_account(user), "asking MariaDB for its databases"))


def dump_mariadb(source: MariadbSource, made: MadeList) -> tuple[int, int]:
    """Dump databases; return how many, and their size in bytes. Raises TransferFailed."""
    account = find_account(source.user)
    dump = require_program("mariadb-dump", "mysqldump")
    server = server_options(source.defaults_file, source.socket)
    sizes = list_databases(source.user, server)
    names = choose(list(source.databases), sizes)
    with DumpFolder(source.place, made, account) as folder:
        folder.require_room(sum(sizes[name] for name in names), source.free_percent)
        for name in names:
            what = f"the dump of the MariaDB database {name}"
            fd = folder.create(file_name(name, ENDING))
            try:
                argv = [dump, *server, "--single-transaction", "--quick", "--routines", "--triggers", "--events"]
                argv += ["--hex-blob", "--default-character-set=utf8mb4", "--", name]
                run_program(argv, account, what, stdout=fd)
                size = os.fstat(fd).st_size
                if _COMPLETE not in os.pread(fd, 200, max(0, size - 200)):
                    raise TransferFailed(f"{what} failed: {os.path.basename(dump)} ended well, and its file has no end")
            finally:
                os.close(fd)
        return len(names), folder.publish()


class MariadbLoader:
    """Loads dumps of MariaDB, as its user of the system."""

    ending = ENDING

    def __init__(self, asked: DumpLoad) -> None:
        """Take what is loaded, and where the server is. Raises TransferFailed."""
        self._account, self._user = find_account(asked.user), asked.user
        self._server = server_options(asked.defaults_file, asked.socket)

    def names(self) -> Collection[str]:
        """Return the names of the databases that exist."""
        return list_databases(self._user, self._server)

    def create(self, name: str) -> None:
        """Create an empty database."""
        self._run([f"--execute=CREATE DATABASE {quoted(name)}"], f"creating the MariaDB database {name}")

    def drop(self, name: str) -> None:
        """Remove a database that was created here."""
        self._run([f"--execute=DROP DATABASE IF EXISTS {quoted(name)}"], f"removing the MariaDB database {name}")

    def load(self, dump: int, name: str) -> None:
        """Load an open dump into a database. The commands of the client in it, such as for a shell, are not run."""
        self._run([*ONLY_SQL, f"--database={name}"], f"loading the MariaDB database {name}", dump)

    def _run(self, options: list[str], what: str, stdin: int = subprocess.DEVNULL) -> None:
        argv = [require_program("mariadb", "mysql"), *self._server, "--batch", *options]
        run_program([*argv, "--default-character-set=utf8mb4"], self._account, what, stdin=stdin, told=TOLD)


def quoted(name: str) -> str:
    """Return a name as SQL has it. Pure."""
    return "`" + name.replace("`", "``") + "`"
