# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arming, confirming and reverting a checkpoint, as the module asks for it. Private to the collection."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import pkgutil
import secrets
import time
from typing import Any, NamedTuple, Sequence

from .._core import archives
from . import revert_agent  # noqa: F401 # pylint: disable=unused-import # Ansible sends only what it sees imported
from .checkpoint import Checkpoint, CheckpointError, armed_names, ended_sentence
from .commands import boot_commands, restore_commands
from .live import capture
from .request import ArmingTerms, CheckpointRequest, Ending, Timer
from .saved import save
from .timer import install_boot, remove_boot, start_service, start_timer, stop_timer, timer_lives

REVERT_PATIENCE = 120.0  # seconds that a requested way back may take
_MAIN = """\
import sys

from longhaul._network import revert_agent
sys.exit(revert_agent.main(sys.argv[1:]))
"""


class CheckpointStatus(NamedTuple):
    """Status of a checkpoint: the return values of the module."""

    armed: bool
    seconds_left: float
    timer: dict[str, str | int] | None
    survives_reboot: str | None
    last: Ending | None
    all_armed: list[str]


class Arming(NamedTuple):
    """What a checkpoint keeps, and how it is brought back: the module's options."""

    paths: list[str]
    links: list[str] | None  # None: all
    made: list[str]
    managers: list[str]
    commands: list[list[str]] | None  # instead of those of the managers
    timeout: int  # seconds


def describe(checkpoint: Checkpoint) -> CheckpointStatus:
    """Return what is known of a checkpoint."""
    request = checkpoint.request
    return CheckpointStatus(
        armed=bool(request),
        seconds_left=round(checkpoint.seconds_left(), 1),
        timer={**request.timer.dump(), "alive": timer_lives(request.timer)} if request else None,
        survives_reboot=request.survives_reboot if request else None,
        last=checkpoint.last,
        all_armed=armed_names(checkpoint.root),
    )


def wanted(options: Arming) -> ArmingTerms:
    """Return what makes two armings the same."""
    return ArmingTerms(
        sorted({os.path.normpath(path) for path in options.paths}),
        sorted(options.links) if options.links is not None else None,
        sorted(options.made),
        commands_of(options),
        options.timeout,
    )


def commands_of(options: Arming) -> list[list[str]]:
    """Return the commands of the managers, or those that were given instead."""
    if options.commands is not None:
        return [[str(word) for word in argv] for argv in options.commands]  # YAML makes numbers of some words
    return [argv for manager in options.managers for argv in restore_commands(manager, options.links or [])]


def arm(checkpoint: Checkpoint, options: Arming, check: bool) -> bool:
    """Arm the checkpoint; give whether that changed anything.

    One that is armed in the same way already is left alone, with the state that it saved and the time that it has left.
    """
    _refuse_relative(options.paths)
    with contextlib.nullcontext() if check else checkpoint.locked():  # check mode makes no files
        there, want = checkpoint.request, wanted(options)
        if there and there.wanted != want:
            raise CheckpointError(
                f"a checkpoint {checkpoint.name} is armed already, for other paths, links or commands; it reverts by "
                f"itself in {checkpoint.seconds_left():.0f} s. Confirm or revert it first, or choose another name"
            )
        if there and timer_lives(there.timer):
            return False
        _refuse_overlap(checkpoint, want.paths)
        if check:
            return True
        if there:  # its timer was killed: what it saved is still the state to go back to
            return _start(checkpoint, there)
        checkpoint.create()
        build_archive(checkpoint.program)
        request = CheckpointRequest(
            secrets.token_hex(16),
            want,
            save(want.paths, checkpoint.files),
            capture(want.links),
            want.made,
            want.commands,
            [argv for manager in options.managers for argv in boot_commands(manager)],
        )
        return _start(checkpoint, request)


def _start(checkpoint: Checkpoint, request: CheckpointRequest) -> bool:
    """The file comes before the timer, which looks for it, and again afterwards, with the timer's name."""
    timeout = request.wanted.timeout
    request = request._replace(
        deadline=time.time() + timeout,
        timer=Timer("none"),
        survives_reboot=install_boot(checkpoint, request.token),
    )
    checkpoint.write_request(request)
    checkpoint.write_request(request._replace(timer=start_timer(checkpoint, request.token, timeout)))
    return True


def confirm(checkpoint: Checkpoint, check: bool) -> bool:
    """Keep what was changed. Fails where the checkpoint has reverted already, since the change is gone then."""
    with contextlib.nullcontext() if check else checkpoint.locked():  # check mode makes no files
        request, last = checkpoint.request, checkpoint.last
        if not request:
            if last and last.outcome == "confirmed":
                return False
            raise CheckpointError(
                f"there is nothing to confirm: {ended_sentence(checkpoint.name, last, time.time())}. "
                "What was changed since it was armed is not in effect any more; see what stands there, and begin again"
            )
        if not check:
            stop_timer(request.timer)
            remove_boot(checkpoint.name)
            checkpoint.close("confirmed", "request", [])
        return True


def revert(checkpoint: Checkpoint, check: bool) -> bool:
    """Bring the old state back, apart from the connection that this may interrupt, and wait for that."""
    request = checkpoint.request
    if not request:
        return False
    if check:
        return True
    start_service(checkpoint, "undo", ["now", request.token])
    deadline = time.monotonic() + REVERT_PATIENCE
    while checkpoint.request:
        if time.monotonic() > deadline:
            raise CheckpointError(
                f"the way back of {checkpoint.name} did not end within {REVERT_PATIENCE:.0f} s; see {checkpoint.log} "
                f"or journalctl -u longhaul-undo-{checkpoint.name}"
            )
        time.sleep(0.1)
    last = checkpoint.last
    if last and last.errors:
        raise CheckpointError(f"the way back of {checkpoint.name} left this behind: {'; '.join(last.errors)}")
    return True


def _refuse_relative(paths: Sequence[str]) -> None:
    wrong = [path for path in paths if not path.startswith("/")]
    if wrong:
        raise CheckpointError(f"paths must be absolute, since the host reverts on its own: {', '.join(wrong)}")


def _refuse_overlap(checkpoint: Checkpoint, paths: Sequence[str]) -> None:
    """Two checkpoints of one path would put it back one after the other, in no known order."""
    for name in armed_names(checkpoint.root):
        other = Checkpoint(name, checkpoint.root).request
        shared = sorted(set(paths) & set(other.wanted.paths)) if other and name != checkpoint.name else []
        if shared:
            raise CheckpointError(
                f"the checkpoint {name}, which is armed, keeps {', '.join(shared)} already; confirm or revert it first"
            )


def build_archive(path: str) -> None:
    """Write the checkpoint's code to ``path``: one file that the host can run on its own.

    The way back must not need Ansible, which removes its module's files at once. So the modules of this package and
    what they need of ``_core`` are packed beside what was saved, from a folder or from Ansible's own archive.
    """
    above, own = __name__.rsplit(".", 2)[:2]
    files = {"__main__.py": _MAIN.encode(), "longhaul/__init__.py": b""}
    for folder in ("_core", own):
        package = importlib.import_module(f"{above}.{folder}")
        files[f"longhaul/{folder}/__init__.py"] = b""
        for info in pkgutil.iter_modules(package.__path__):
            name = f"{package.__name__}.{info.name}"
            spec = importlib.util.find_spec(name)
            # Of an archive, as of a folder: but Python does not count the former among its InspectLoaders.
            loader: Any = spec.loader if spec else None
            files[f"longhaul/{folder}/{info.name}.py"] = loader.get_source(name).encode()
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as stream:
        stream.write(archives.build_archive(files))
    os.replace(temporary, path)
