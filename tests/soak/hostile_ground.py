# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two ends of a transfer, and what is around the root of one of them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

from ansible_collections.longhaul.fleet.tests.support.canary import Canary
from ansible_collections.longhaul.fleet.tests.support.collections_folder import collections_folder
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import VERSION
from ansible_collections.longhaul.fleet.tests.unit.plugins.module_utils._engine import ends

from . import hostile_lies

STAGING = f".longhaul-{ends.ID}"
SECRET = "root:secret"
EVIL = "* * * * * root evil\n"
SECONDS = 40  # that a transfer with a liar may take
OLD = 10**18  # ns
WELL = "it ended well"


class Ends(ends.Pair):
    """Two ends. ``lies`` and ``plans`` have what one of them does and plans otherwise."""

    def __init__(self, work: Path, source: Path, dest: Path, plan: dict[str, Any], serving: str):
        super().__init__(work, source, dest, plan, serving)
        self.lies = {"source": "", "dest": ""}
        self.plans: dict[str, dict[str, Any]] = {"source": {}, "dest": {}}
        if plan["method"] in ("rsync", "scp", "sftp"):
            self.use_ssh()
        if plan["method"] == "rsyncd":
            self.secrets = {"serve": {"daemon": ends.SECRET}, "drive": {"daemon": ends.SECRET}}
            self.serve.update(ports=[0], allow=["127.0.0.1"])

    def start(self, side: str) -> None:
        """Start an end, as what it is."""
        words = [sys.executable, hostile_lies.__file__, self.lies[side], ends.__file__]
        script = self.work / f"end-{side}"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nshift\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)
        self.pythons[side] = str(script)
        self.env[side] = {"PYTHONPATH": str(collections_folder()), "PYTHONDONTWRITEBYTECODE": "1"}
        plan, self.plan = self.plan, {**self.plan, **self.plans[side]}
        try:
            super().start(side)
        finally:
            self.plan = plan

    def transfer(self) -> str:
        """Run the whole transfer; return how it ended."""
        try:
            self.start(self.serving)
            self.start(self.driving)
            result = self.work / f"job-{self.driving}" / "result.json"
            outcome = self._wait(self.driving, result, SECONDS)
        except ends.NotReady as error:
            return str(error)
        except TimeoutError:
            return "it was stopped"
        finally:
            self.close()
        return str(outcome.get("failed") or outcome.get("failure") or outcome.get("errors") or WELL)

    def served(self, attack: Callable[[], str]) -> str:
        """Let somebody attack the serving end, which then ends as a job does; return what came of it."""
        try:
            self.start(self.serving)
            return attack()
        except ends.NotReady as error:
            return str(error)
        finally:
            self.close()

    def close(self) -> None:
        """End both."""
        self.stop()


class Ground:
    """A source, and on the other host a root with an older copy of it, and what nobody may touch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source, self.work, self.loot = folder / "source", folder / "work", folder / "loot"
        ground = folder / "ground"
        self.root, self.older, self.outside = ground / "root", ground / "older", ground / "outside"
        for path in (self.source, self.root, self.loot, self.outside / "tmp", self.outside / "partial"):
            path.mkdir(parents=True)
        for name in ("same", "zz"):
            (self.source / name).write_text(f"the contents of {name}")
            os.utime(self.source / name, ns=(OLD, OLD))
        subprocess.run(["cp", "-a", self.source, self.older], check=True)
        (self.outside / "secret").write_text(SECRET)
        (self.outside / "secret").chmod(0o600)
        self.harms: list[str] = []
        self.problems: list[str] = []  # because of which no harm would mean nothing
        self.said = ""

    def watch(self) -> None:
        """Take what is there now for what must stay."""
        self._canary = Canary(self.root.parent, self.root, self.older)

    def ends(self, method: str, serving: str, **changes: Any) -> Ends:
        """Return the two ends, not started yet."""
        given = {"timeout": 10, "rsync": {"source": VERSION, "dest": VERSION}, "owner_map": {}, "encrypt": False}
        plan = ends.settings(method, **{**given, **changes})
        return Ends(self.work, self.source, self.root, plan, serving)

    def expect_well(self, said: str) -> str:
        """Note if a transfer that is honest did not end well."""
        if said != WELL:
            self.problems.append(f"an honest transfer failed: {said}")
        return said

    def look(self) -> list[str]:
        """Return what was harmed."""
        stolen = [
            f"{path.name} was read" for path in self.loot.rglob("*") if path.is_file() and SECRET in path.read_text()
        ]
        return [*self.harms, *stolen, *self._canary.changes()]

    def plant(self, **links: Path) -> None:
        """Make in the source a folder of the transfer's own name, with these symbolic links in it."""
        planted = self.source / STAGING
        planted.mkdir()
        for name, target in links.items():
            (planted / name).symlink_to(target)
