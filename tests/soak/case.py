# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One scenario: a source, a destination, options; on disk twice, once for the product and once for the real rsync."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules.transfer import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.argument_spec import spec_from_documentation

from . import disk, grow, options
from .hosts import ROOT, User
from .tree import FILE, FOLDER, Inode, Tree

SPEC = spec_from_documentation(DOCUMENTATION)
PORTS = 200  # in a range


@dataclass
class Case:
    """What is transferred where, and how."""

    row: dict[str, Any]  # as ``options`` has it
    source: Tree
    dest: Tree  # before; nothing of it where the row says that the destination is missing
    older: Tree  # for link_dest
    user: User = ROOT
    said: list[str] = field(default_factory=list)  # what was done at random, to tell

    @property
    def preserve(self) -> tuple[str, ...]:
        """What must be preserved."""
        wanted = self.row["preserve"]
        if wanted is not None:
            return tuple(wanted)
        return options.ALL if not self.user.uid else tuple(n for n in options.ALL if n not in options.ROOTS_OWN)

    @property
    def only(self) -> bytes | None:
        """The one file that is transferred; None if it is a tree."""
        files = [path for path in self.source.paths(FILE) if b"/" not in path]
        return files[0] if self.row["src"] == "file" and files else None

    def described(self) -> str:
        """Return all that is needed to reproduce it by hand."""
        changed = {name: value for name, value in self.row.items() if value != options.DEFAULTS[name]}
        lines = [f"options: {changed}"]
        if self.user.uid:
            lines.append(f"as user {self.user}")
        trees = [("source", self.source), ("destination", self.dest)]
        trees += [("older", self.older)] if self.row["link_dest"] else []
        for name, tree in trees:
            lines += [f"{name}:", *(f"  {line}" for line in tree.described())]
        return "\n".join(lines)


def random_case(
    seed: int, row: dict[str, Any] | None = None, user: User = ROOT, favoured: Collection[str] = ()
) -> Case:
    """Make a case; the same for the same seed, row, user and favoured edits (see ``grow``)."""
    chance = random.Random(seed)
    if user.uid:
        palette = grow.user_palette(chance, user.uid, (user.gid, *user.groups))
    else:
        palette = grow.root_palette(chance)
    source = Tree()
    grower = grow.Grower(source, chance, palette, favoured)
    grower.edit(chance.randrange(1, 25))
    if not source.paths(FOLDER):
        source.add(b"c", Inode(FOLDER, 0o755, palette.uids[0], palette.gids[0]))  # for src that ends in /..
    older = grow.Grower(source.copy(), chance, palette)
    older.edit(chance.randrange(4))
    dest = grow.Grower(source.copy() if chance.random() < 0.85 else Tree(), chance, palette, favoured)
    said = dest.edit(chance.choice([0, 1, 1, 2, 3, 5, 9]))
    if row is None:
        row = _random_row(chance)
        # The user has no shell, so that ssh runs nothing as it; and the daemon here is root's
        while user.uid and (options.by_ssh(row) or row["rsyncd_module"]):
            row = _random_row(chance)
    row = _fitting(row, user)
    if row["src"] == "file" and not any(b"/" not in path for path in source.paths(FILE)):
        source.add(b"b", Inode(FILE, 0o644, palette.uids[0], palette.gids[0], size=5, data=((0, 5, 1),)))
    return Case(row, source, dest.tree, older.tree, user, said)


def _random_row(chance: random.Random) -> dict[str, Any]:
    """Choose some options at random, most of them as they are without being named."""
    while True:
        row = dict(options.DEFAULTS)
        row["method"] = chance.choices(options.VALUES["method"], [4, 8, 2, 2, 4, 0.3, 0.3])[0]
        row["delete"] = chance.random() < 0.5
        row["checksum"] = chance.random() < 0.2
        for name in chance.sample(sorted(options.VALUES), chance.choice([0, 1, 1, 2, 3, 5])):
            if name not in ("method", "delete"):
                row[name] = chance.choice(options.VALUES[name])
        options.mend(row, ())
        if options.possible(row):
            return row


def _fitting(row: Mapping[str, Any], user: User) -> dict[str, Any]:
    """Leave out what a user cannot ask for."""
    fitting = dict(row)
    if user.uid:
        fitting["owner_map"] = None
    if user.uid and row["preserve"]:
        fitting["preserve"] = tuple(n for n in row["preserve"] if n not in (*options.ROOTS_OWN, "group"))
        if not fitting["preserve"]:
            fitting["preserve"] = ("times",)
        if row["inplace"] and "times" not in fitting["preserve"]:
            fitting["inplace"] = False
    return fitting


@dataclass
class Place:
    """A case on disk."""

    case: Case
    folder: Path

    @property
    def source(self) -> Path:
        return self.folder / "from" / "s"

    @property
    def older(self) -> Path:
        return self.folder / "older"

    def zone(self, which: str) -> Path:
        """Where the destination of ``ours`` or of ``rsync`` lies, beside something that nobody may touch."""
        return self.folder / which

    def dest(self, which: str) -> Path:
        """What is named as the destination."""
        row = self.case.row["dest"]
        return self.zone(which) / {"there": "out", "missing": "no/where", "backslash": "a\\tb\\012"}[row]

    def root(self, which: str) -> Path:
        """The folder in which the contents of the source arrive."""
        name = {"folder": "s", "link": "l"}.get(self.case.row["src"])
        return self.dest(which) / name if name else self.dest(which)

    def make(self) -> None:
        """Make the source, both destinations and the older copy."""
        case = self.case
        os.chmod(self.folder, 0o755)
        disk.make(case.source, self.source)
        (self.folder / "from" / "l").symlink_to("s")
        disk.make(case.older, self.older)
        for which in ("ours", "rsync"):
            zone = self.zone(which)
            zone.mkdir()
            (zone / "victim").write_bytes(b"of somebody else")
            if case.row["dest"] != "missing":
                self.dest(which).mkdir()
                disk.make(case.dest, self.root(which))
            for path in (zone, zone / "victim", *[self.dest(which)][: case.row["dest"] != "missing"]):
                os.utime(path, (10**9, 10**9))
        if case.user.uid:
            for path in [self.folder, *self.folder.glob("*"), *self.folder.glob("*/*")]:
                os.chown(path, case.user.uid, case.user.gid, follow_symlinks=False)

    def src(self) -> str:
        """How the source is written."""
        case, source = self.case, str(self.source)
        form = case.row["src"]
        if form == "file":
            only = case.only
            assert only is not None
            return os.path.join(source, os.fsdecode(only))
        if form == "dotdot":
            return os.path.join(source, os.fsdecode(case.source.paths(FOLDER)[0]), "..")
        return {
            "contents": source + "/",
            "dot": source + "/.",
            "folder": source,
            "link": str(self.folder / "from" / "l"),
        }[form]

    def options(self) -> dict[str, Any]:
        """Return the options of the task."""
        given: dict[str, Any] = {name: option.get("default") for name, option in SPEC.items()}
        for name, value in self.case.row.items():
            given[name] = list(value) if isinstance(value, tuple) else value
        given.update(src=self.src(), dest=str(self.dest("ours")) + ("/" if self.case.only is not None else ""))
        if given["link_dest"]:
            given["link_dest"] = [str(self.older) if one == options.OLDER else one for one in given["link_dest"]]
        if given["port"]:
            given["port"] = free_port()
        if given["port_range"]:
            low = random.SystemRandom().randrange(20_000, 32_000)  # below those that the system gives to clients
            given["port_range"] = f"{low}-{low + PORTS}"
        return given


def free_port() -> int:
    """Return a free port below the ephemeral range."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as trial:
            trial.bind(("127.0.0.1", port))
            return port
