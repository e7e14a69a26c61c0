# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers of PostgreSQL and MariaDB on a testbed host, that listen at sockets alone, and one that writes to them."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import threading
import time
from typing import Iterator, NamedTuple

import pytest
from ansible_collections.longhaul.fleet.tests.testbed import Testbed

ROWS = 500  # of each of two tables, between which a writer moves amounts; the sum of all is always 200 * ROWS
TABLES = "".join(
    f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL);\n"
    + f"INSERT INTO {table} VALUES {', '.join(f'({number}, 100)' for number in range(ROWS))};\n"
    for table in ("debit", "credit")
)
SUMS = "SELECT count(*), sum(amount) FROM (SELECT * FROM debit UNION ALL SELECT * FROM credit) AS both_tables"
MOVED = "SELECT sum(amount) FROM credit"


class DatabaseServer(NamedTuple):
    """A server on a host, and the program that runs SQL there."""

    bed: Testbed
    host: str
    client: tuple[str, ...]  # takes the name of the database as the next argument
    socket: str

    def sql(self, database: str, statements: str) -> str:
        """Run statements, and return what they print, with tabs between columns."""
        return self.bed.exec(self.host, [*self.client, database], input=statements).stdout.strip()

    @contextlib.contextmanager
    def written(self, database: str) -> Iterator[None]:
        """Have a client move amounts between both tables, in one transaction after the other."""
        process = self.bed.popen(
            self.host, [*self.client, database], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        ended = False

        def write() -> None:
            number = 0
            with contextlib.suppress(BrokenPipeError):
                while not ended:
                    number = (number + 7) % ROWS
                    process.stdin.write(
                        f"BEGIN; UPDATE debit SET amount = amount - 1 WHERE id = {number};\n"
                        f"UPDATE credit SET amount = amount + 1 WHERE id = {number}; COMMIT;\n"
                    )
                    process.stdin.flush()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            until = time.monotonic() + 30
            while int(self.sql(database, MOVED)) == 100 * ROWS:
                assert time.monotonic() < until
            yield
        finally:
            ended = True
            thread.join()
            process.stdin.close()
            assert process.wait(60) == 0


def _start(bed: Testbed, host: str, argv: list[str], is_up: list[str]) -> subprocess.Popen[bytes]:
    with (bed.root(host) / "var/log/database.log").open("ab") as log:
        process = bed.popen(host, argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    until = time.monotonic() + 30
    while bed.exec(host, is_up, check=False).returncode:
        said = (bed.root(host) / "var/log/database.log").read_text(errors="replace")
        assert process.poll() is None and time.monotonic() < until, said
        time.sleep(0.05)
    return process


@contextlib.contextmanager
def postgresql(bed: Testbed, host: str, folder: str = "/data/postgresql") -> Iterator[DatabaseServer]:
    """Run a server of PostgreSQL with a new cluster, as the user postgres."""
    places = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not places:
        pytest.skip("cannot run here: PostgreSQL is not installed")
    programs = os.path.dirname(places[-1])
    bed.exec(host, ["install", "-d", "-o", "postgres", "-m", "755", folder])
    as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"]
    cluster = f"{folder}/cluster"
    made = ["--auth=peer", "--no-sync", "--no-instructions", "--no-locale", "--encoding=UTF8"]
    bed.exec(host, [*as_postgres, f"{programs}/initdb", *made, "-D", cluster])
    settings = [f"unix_socket_directories={folder}", "listen_addresses=", "fsync=off", "max_wal_senders=0"]
    settings += ["wal_level=minimal", "shared_buffers=16MB"]
    argv = [*as_postgres, f"{programs}/postgres", "-D", cluster, *(word for one in settings for word in ("-c", one))]
    client = (*as_postgres, f"{programs}/psql", "-XqAt", "-F\t", "-v", "ON_ERROR_STOP=1", "-h", folder)
    process = _start(bed, host, argv, [*client, "-c", "SELECT 1", "postgres"])
    try:
        yield DatabaseServer(bed, host, client, folder)
    finally:
        _end(bed, host, f"{cluster}/postmaster.pid", process, signal.SIGQUIT)


@contextlib.contextmanager
def mariadb(bed: Testbed, host: str, folder: str = "/data/mariadb") -> Iterator[DatabaseServer]:
    """Run a server of MariaDB with new tables, as root."""
    if not shutil.which("mariadbd", path="/usr/sbin:/usr/bin") or not shutil.which("mariadb-dump"):
        pytest.skip("cannot run here: MariaDB is not installed")
    bed.exec(host, ["install", "-d", "-m", "755", folder])
    data, socket = f"{folder}/data", f"{folder}/socket"
    own = ["--no-defaults", f"--datadir={data}", "--user=root"]
    fast = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"]
    bed.exec(host, ["mariadb-install-db", *own, *fast, "--skip-test-db", "--auth-root-authentication-method=socket"])
    argv = ["/usr/sbin/mariadbd", *own, *fast, f"--socket={socket}", "--skip-networking"]
    argv.append(f"--pid-file={folder}/pid")
    client = ("mariadb", "--no-defaults", f"--socket={socket}", "--batch", "--skip-column-names")
    process = _start(bed, host, argv, [*client, "-e", "SELECT 1", "mysql"])
    try:
        yield DatabaseServer(bed, host, client, socket)
    finally:
        _end(bed, host, f"{folder}/pid", process, signal.SIGKILL)


def _end(bed: Testbed, host: str, file: str, process: subprocess.Popen[bytes], number: int) -> None:
    """End a server by the number of its process on its host."""
    pid = int((bed.root(host) / file.lstrip("/")).read_text().split()[0])
    bed.kill(host, pid, number)
    process.wait(30)
