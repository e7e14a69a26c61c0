# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folders of checkpoints on a host. Private to the collection.

A checkpoint is a folder that only root can enter: ``checkpoint.json`` says what it is, ``files`` holds what was saved,
``checkpoint.pyz`` is the code that reverts. It exists exactly as long as the checkpoint is armed. How the last one of a
name ended stays in ``NAME.last.json``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import re
import shutil
import time
from typing import Any, Callable, Iterator, TypeVar

from .._core.json_shape import WrongShape
from .request import Application, CheckpointRequest, Ending, parse_application, parse_ending, parse_request

T = TypeVar("T")

ROOT = "/var/db/longhaul-network" if platform.system() == "FreeBSD" else "/var/lib/longhaul-network"


class CheckpointError(Exception):
    """What was asked of a checkpoint cannot be done; the message says why and what to do."""


class Checkpoint:
    """The checkpoint of one name, armed or not."""

    def __init__(self, name: str, root: str = ROOT) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}", name):
            raise CheckpointError(
                f"{name!r} is no name for a checkpoint; use letters, digits, - and _, for it names a unit"
            )
        self.name, self.root = name, root
        self.folder = os.path.join(root, name)
        self.files = os.path.join(self.folder, "files")
        self.program = os.path.join(self.folder, "checkpoint.pyz")
        self.kept = os.path.join(root, f"{name}.kept")
        self.log = os.path.join(root, f"{name}.log")

    @property
    def request(self) -> CheckpointRequest | None:
        """What was armed, or None if nothing is."""
        return self._load(os.path.join(self.folder, "checkpoint.json"), parse_request)

    def require(self) -> CheckpointRequest:
        """Return what is armed. Raise CheckpointError if nothing is."""
        request = self.request
        if request is None:
            raise CheckpointError(
                f"{ended_sentence(self.name, self.last, time.time())}; without an armed checkpoint there is no way back"
            )
        return request

    @property
    def last(self) -> Ending | None:
        """How the last checkpoint of this name ended; None if none did."""
        return self._load(os.path.join(self.root, f"{self.name}.last.json"), parse_ending)

    @property
    def applied(self) -> Application:
        """What the commands of ``nic_apply`` came to so far."""
        return self._load(os.path.join(self.folder, "apply.json"), parse_application) or Application()

    def _load(self, path: str, parse: Callable[[object], T]) -> T | None:
        try:
            with open(path, encoding="utf-8") as opened:
                return parse(json.load(opened))
        except WrongShape as error:
            raise CheckpointError(
                f"{path} cannot be read: {error}. Finish with the version of the collection that wrote it, or put back "
                f"what {self.files} holds by hand, and remove {self.folder}"
            ) from error
        except (OSError, ValueError):
            return None

    def write_request(self, request: CheckpointRequest) -> None:
        """Keep what is armed."""
        _write(os.path.join(self.folder, "checkpoint.json"), request.dump())

    def write_applied(self, applied: Application) -> None:
        """Keep what is applied, and how far that is."""
        _write(os.path.join(self.folder, "apply.json"), applied.dump())

    def create(self) -> None:
        """Make the empty folder; what an arming left that did not come to its end goes."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        os.chmod(self.root, 0o700)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.files, mode=0o700)
        os.chmod(self.folder, 0o700)

    def close(self, outcome: str, by: str, errors: list[str], keep: bool = False) -> None:
        """Write down how it ended, and remove everything else; with ``keep`` what was saved stays, as NAME.kept."""
        last = Ending(outcome, by, time.time(), errors)
        _write(os.path.join(self.root, f"{self.name}.last.json"), last._asdict())
        # first the file that makes it armed: a crash in between must not leave half a checkpoint that reverts
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.folder, "checkpoint.json"))
        shutil.rmtree(self.kept, ignore_errors=True)
        if keep:
            os.rename(self.folder, self.kept)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the timer and the module from changing the checkpoint at the same time."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        with open(os.path.join(self.root, f"{self.name}.lock"), "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def seconds_left(self, now: float | None = None) -> float:
        """Return the seconds until it reverts automatically; 0 if it is overdue or not armed."""
        request = self.request
        return max(0.0, request.deadline - (time.time() if now is None else now)) if request else 0.0


def armed_names(root: str = ROOT) -> list[str]:
    """Return the names of all checkpoints that are armed on this host."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(name for name in os.listdir(root) if os.path.isfile(os.path.join(root, name, "checkpoint.json")))
    return []


def ended_sentence(name: str, last: Ending | None, now: float) -> str:
    """Return how the last checkpoint of a name ended, and how long ago."""
    if not last:
        return f"no checkpoint {name} was ever armed on this host"
    how = {"confirmed": "was confirmed", "reverted": "was reverted"}[last.outcome]
    by = {"timer": " by its own timer", "boot": " at boot", "request": ""}.get(last.by, "")
    errors = f", with errors: {'; '.join(last.errors)}" if last.errors else ""
    return f"the checkpoint {name} {how}{by} {max(0, now - last.at):.0f} s ago{errors}"


def _write(path: str, data: Any) -> None:
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as opened:
        json.dump(data, opened)
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(temporary, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
