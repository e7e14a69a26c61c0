# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Load dumps that were restored into databases, new ones unless the user wants to load over those that exist."""

from __future__ import annotations

import contextlib
import os
from typing import Callable, Collection, Mapping, Sequence

from .._core.context import Progress
from .._core.errors import TransferFailed
from .._tree.dirfd import Root
from .._tree.resolve import real_path
from .dump_folder import file_name, name_in_file
from .mariadb import MariadbLoader
from .postgresql import PostgresqlLoader
from .request import DumpLoad

USUAL = ".longhaul-dumps"  # the folder of dumps in a backup, where the user has not named another one


def plan_loads(names: Sequence[str], asked: DumpLoad, ending: str, existing: Collection[str]) -> Mapping[str, str]:
    """Return the new database for each file of a folder of dumps with these names. Pure. Raises TransferFailed."""
    files = [name for name in names if name.endswith(ending) and not name.startswith(".")]
    if asked.databases:
        wanted = {file_name(name, ending): new for name, new in asked.databases.items()}
        missing = [name for name in wanted if name not in names]
        if missing:
            raise TransferFailed(
                f"there is no dump {missing[0]} in what was restored. Correct databases; it has "
                f"{', '.join(name_in_file(file, ending) for file in files)[:500] or 'none'}"
            )
    else:
        wanted = {file: name_in_file(file, ending) + asked.suffix for file in files}
    if not wanted:
        raise TransferFailed(f"there are no dumps of {asked.kind} in what was restored")
    twice = len(set(wanted.values())) < len(wanted)
    there = [new for new in wanted.values() if new in existing]
    if twice or (there and not asked.over):
        why = f"the database {there[0]!r:.80} exists already" if there else "two dumps would get one name"
        raise TransferFailed(
            f"{why}. No dump of {asked.kind} was loaded. Name new ones in databases, or set another suffix"
            + (", remove that database first, or set over: true to load over it" if there else "")
        )
    return wanted


def load_dumps(asked: DumpLoad, progress: Progress, tell: Callable[[str, str], None]) -> None:
    """Load dumps. A database that was created for one goes if that cannot be loaded. Raises TransferFailed.

    ``tell`` is given the name of each database that is loaded, and its new name.
    """
    loader = PostgresqlLoader(asked) if asked.kind == "postgresql" else MariadbLoader(asked)
    existing = loader.names()
    try:
        with Root(real_path(os.fsencode(asked.folder))) as root:
            inside = os.fsencode(f"{USUAL}/{asked.kind}")
            found = root.lstat(inside)
            folder = root.open_directory(inside if found is not None else b"")
            try:
                names = sorted(os.listdir(folder))
            finally:
                os.close(folder)
            planned = plan_loads(names, asked, loader.ending, existing)
            progress.files_total = len(planned)
            for file, new in planned.items():
                path = os.path.join(inside, os.fsencode(file)) if found is not None else os.fsencode(file)
                progress.current = file
                dump = root.open_file(path)
                try:
                    _load(loader, dump, new, new not in existing)
                finally:
                    os.close(dump)
                progress.files_done += 1
                tell(name_in_file(file, loader.ending), new)
    except OSError as error:
        raise TransferFailed(f"the dumps in {asked.folder} cannot be read: {error.strerror}") from error


def _load(loader: PostgresqlLoader | MariadbLoader, dump: int, name: str, is_new: bool) -> None:
    if is_new:
        loader.create(name)
    try:
        loader.load(dump, name)
    except BaseException:
        if is_new:
            with contextlib.suppress(TransferFailed):
                loader.drop(name)
        raise
