# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The timer that reverts by itself, and what does it after a boot. Private to the collection.

Where systemd runs, a transient timer; else a process of its own. Neither belongs to the connection that started it.
"""

from __future__ import annotations

import contextlib
import os
import sys

from .._core import subprocesses
from .checkpoint import Checkpoint
from .programs import run, user_variables
from .request import Timer

_UNITS = "/etc/systemd/system"
_CRON = "/etc/cron.d"


def unit_of(name: str, purpose: str = "revert") -> str:
    """Return the name of a unit, without its ending."""
    return f"longhaul-{purpose}-{name}"


def runs_systemd() -> bool:
    """Return whether systemd runs here and starts processes in the network that this process is in."""
    if not os.path.isdir("/run/systemd/system") or not subprocesses.find_program("systemd-run"):
        return False
    with contextlib.suppress(OSError):
        return os.readlink("/proc/1/ns/net") == os.readlink("/proc/self/ns/net")
    return True


def start_timer(checkpoint: Checkpoint, token: str, seconds: float) -> Timer:
    """Start the timer."""
    if runs_systemd():
        unit = unit_of(checkpoint.name)
        run(["systemctl", "reset-failed", f"{unit}.service", f"{unit}.timer"])
        argv = ["systemd-run", f"--unit={unit}", "--collect", f"--on-active={seconds:.3f}"]
        argv += ["--timer-property=AccuracySec=100ms", *_service_options("revert")]
        ended = run([*argv, sys.executable, checkpoint.program, "timer", checkpoint.root, checkpoint.name, token])
        if ended.code == 0:
            return Timer("systemd", unit=f"{unit}.timer")
    return Timer("process", pid=start_process(checkpoint, ["wait", token, str(seconds)]))


def timer_lives(timer: Timer) -> bool:
    """Return whether a timer is still there. None was started yet where an arming was interrupted."""
    if timer.unit:
        return run(["systemctl", "is-active", "--quiet", timer.unit]).code == 0
    if timer.pid is None:
        return False
    with contextlib.suppress(OSError):
        os.kill(timer.pid, 0)
        return True
    return False


def stop_timer(timer: Timer) -> None:
    """Stop a timer of systemd. A process sees by itself, within a second, that its checkpoint is gone."""
    if timer.unit:
        run(["systemctl", "stop", timer.unit])


def start_service(checkpoint: Checkpoint, purpose: str, arguments: list[str]) -> None:
    """Start the checkpoint's program apart from the connection. ``arguments``: what it should do, and with what."""
    if runs_systemd():
        unit = unit_of(checkpoint.name, purpose)
        run(["systemctl", "reset-failed", f"{unit}.service"])
        argv = ["systemd-run", f"--unit={unit}", "--collect", *_service_options(purpose)]
        word, *more = arguments
        program = [sys.executable, checkpoint.program, word, checkpoint.root, checkpoint.name, *more]
        if run([*argv, *program]).code == 0:
            return
    start_process(checkpoint, arguments)


def _service_options(purpose: str) -> list[str]:
    # what a manager starts, such as a DHCP client, must outlive the service
    return ["--property=KillMode=process", f"--description=longhaul.fleet: {purpose} a network change"]


def start_process(checkpoint: Checkpoint, arguments: list[str]) -> int:
    """Start the checkpoint's program as a process of its own session, whose parent is gone; give its pid."""
    word, *more = arguments
    argv = [sys.executable, checkpoint.program, word, checkpoint.root, checkpoint.name, *more]
    reading, writing = os.pipe()
    with open(checkpoint.log, "ab") as log:
        # The process in between ends at once, and init takes the one that stays. It has no file, so it cannot import.
        between = (
            "import subprocess, sys\n"
            "print(subprocess.Popen(sys.argv[1:], stdin=0, stdout=2, stderr=2, start_new_session=True).pid, flush=True)"
        )
        subprocesses.run(
            [sys.executable, "-c", between, *argv],
            stdout=writing,
            stderr=log,
            extra_environment=user_variables(),
            new_session=True,
        ).check_returncode()
    os.close(writing)
    with os.fdopen(reading) as pipe:
        return int(pipe.read())


def install_boot(checkpoint: Checkpoint, token: str) -> str:
    """Arrange that a boot reverts. Give how: ``systemd`` (before the network), ``cron`` (after it), or ``no``."""
    arguments = [checkpoint.root, checkpoint.name, token]
    if os.path.isdir("/run/systemd/system") and os.path.isdir(_UNITS):
        unit = f"{unit_of(checkpoint.name)}-boot.service"
        command = " ".join([sys.executable, checkpoint.program, "boot", *arguments])
        with open(os.path.join(_UNITS, unit), "w", encoding="utf-8") as opened:
            opened.write(_BOOT_UNIT.format(folder=checkpoint.folder, command=command))
        wants = os.path.join(_UNITS, "sysinit.target.wants")
        os.makedirs(wants, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.symlink(os.path.join(_UNITS, unit), os.path.join(wants, unit))
        return "systemd"
    if os.path.isdir(_CRON):
        with open(os.path.join(_CRON, unit_of(checkpoint.name)), "w", encoding="utf-8") as opened:
            opened.write(f"@reboot root {' '.join([sys.executable, checkpoint.program, 'late', *arguments])}\n")
        return "cron"
    return "no"


_BOOT_UNIT = """\
[Unit]
Description=longhaul.fleet: put back the network configuration of an unconfirmed change
DefaultDependencies=no
ConditionPathExists={folder}/checkpoint.json
RequiresMountsFor={folder}
After=local-fs.target systemd-remount-fs.service
Before=network-pre.target systemd-networkd.service NetworkManager.service networking.service network.service
Wants=network-pre.target

[Service]
Type=oneshot
ExecStart={command}
"""


def remove_boot(name: str) -> None:
    """Take away what ``install_boot`` put there."""
    unit = f"{unit_of(name)}-boot.service"
    for path in (
        os.path.join(_UNITS, "sysinit.target.wants", unit),
        os.path.join(_UNITS, unit),
        os.path.join(_CRON, unit_of(name)),
    ):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)
    with contextlib.suppress(OSError):  # where there was nothing else in it
        os.rmdir(os.path.join(_UNITS, "sysinit.target.wants"))
