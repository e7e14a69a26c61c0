# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SQLite databases are copied while they are written, and the copy is one moment of them."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent import sqlite
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.made import MadeList
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.request import DumpPlace, SqliteSource
from ansible_collections.longhaul.fleet.plugins.module_utils._consistent.sqlite import copy_sqlite
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed


@contextlib.contextmanager
def written(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """Yield a database in which a thread moves amounts from one table to another, whose sum never changes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, timeout=30, check_same_thread=False)
    database.execute(f"PRAGMA journal_mode={mode}")
    database.execute("PRAGMA synchronous=OFF")
    for table in ("a", "b"):
        database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, amount INTEGER, text TEXT)")
        database.executemany(f"INSERT INTO {table} VALUES (?, 100, ?)", [(n, "x" * 900) for n in range(1500)])
    database.commit()
    ended, begun = threading.Event(), threading.Event()

    def write() -> None:
        number = 0
        while not ended.is_set():
            number = (number + 7) % 1500
            for change in ("a SET amount = amount - 1", "b SET amount = amount + 1"):
                database.execute(f"UPDATE {change} WHERE id = ?", (number,))
            database.commit()
            begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert begun.wait(30)
        yield database
    finally:
        ended.set()
        thread.join()
        database.close()


def copy(root: Path, *files: str, work: Path) -> tuple[Path, MadeList]:
    into, made = root / "dumps", MadeList(str(work / "made"))
    assert copy_sqlite(SqliteSource(DumpPlace(str(root), str(into), False), files), made)[0] == len(files)
    return into, made


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_copy_is_one_moment_of_a_database_in_use(tmp_path, mode):
    root = tmp_path / "src"
    with written(root / "sub/app.db", mode):
        into, made = copy(root, "sub/app.db", work=tmp_path)
    (file,) = [one for one in into.iterdir() if not one.name.startswith(".")]
    assert file.name == "sub%2Fapp.db" and file.stat().st_uid == (root / "sub/app.db").stat().st_uid
    assert file.stat().st_mode & 0o777 == 0o600
    with contextlib.closing(sqlite3.connect(file)) as database:
        rows = [database.execute(f"SELECT count(*), sum(amount) FROM {table}").fetchone() for table in ("a", "b")]
        assert rows[0][0] == rows[1][0] == 1500 and rows[0][1] + rows[1][1] == 300_000 and rows[1][1] > 150_000
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    made.undo()
    assert sorted(os.listdir(root)) == ["sub"]


@pytest.mark.parametrize(("open_to_all", "mode"), [("src", 0o777), ("src/sub", 0o777), ("src/sub", 0o1777)])
def test_a_database_that_others_can_exchange_is_not_copied(tmp_path, open_to_all, mode):
    """They could lead the copy to another database of its owner by a link."""
    (tmp_path / "src/sub").mkdir(parents=True)
    (tmp_path / "dumps").mkdir()
    with contextlib.closing(sqlite3.connect(tmp_path / "src/sub/app.db")) as database:
        database.execute("CREATE TABLE t (x)")
    (tmp_path / open_to_all).chmod(mode)
    made = MadeList(str(tmp_path / "made"))
    source = SqliteSource(DumpPlace(str(tmp_path), str(tmp_path / "dumps"), False), ["src/sub/app.db"])
    with pytest.raises(TransferFailed, match=f"{open_to_all} is writable for all users: a link .*chmod go-w"):
        copy_sqlite(source, made)
    assert made.undo() == "" and os.listdir(tmp_path / "dumps") == []


def test_another_database_than_the_one_found_is_not_copied(tmp_path, monkeypatch):
    root = tmp_path / "src"
    root.mkdir()
    for name in ("app.db", "other.db"):
        with contextlib.closing(sqlite3.connect(root / name)) as database:
            database.execute("CREATE TABLE t (x)")
    run = sqlite.run_program

    def exchange(*arguments: Any, **options: Any) -> None:
        os.replace(root / "other.db", root / "app.db")
        run(*arguments, **options)

    monkeypatch.setattr(sqlite, "run_program", exchange)
    with pytest.raises(TransferFailed, match="copy of the SQLite database .*app.db failed: it was exchanged"):
        copy(root, "app.db", work=tmp_path)


def test_what_is_no_database_fails_and_leaves_nothing(tmp_path):
    root = tmp_path / "src"
    root.mkdir()
    (root / "text.db").write_text("no database" * 100)
    made = MadeList(str(tmp_path / "made"))
    source = SqliteSource(DumpPlace(str(root), str(root / "dumps"), False), ["text.db"])
    with pytest.raises(TransferFailed, match="copy of the SQLite database .*text.db failed: .*not a database"):
        copy_sqlite(source, made)
    made.undo()
    assert os.listdir(root) == ["text.db"]
