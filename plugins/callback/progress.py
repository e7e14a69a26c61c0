# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Live progress of the pairs of a fleet, in the terminal of ansible-playbook.

The task that drives the pairs says how far they are in a file (plugin_utils/fleet/progress_file). A thread reads it and
draws below what Ansible prints. Without a terminal, or without the library rich, this shows nothing, and the task
prints lines.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: progress
type: aggregate
short_description: Show the progress of all pairs of a fleet live in the terminal
version_added: 0.2.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - While the roles P(longhaul.fleet.migrate#role) and P(longhaul.fleet.backup#role) copy trees, shows a line for each
    running transfer, as many as the window has room for, and one for the whole fleet, below what Ansible prints.
  - It needs a terminal and the Python library C(rich) on the control node. Without either, the task prints plain lines,
    as it does without this callback. They come less often the longer it takes.
requirements:
  - enabling it, for example with C(ANSIBLE_CALLBACKS_ENABLED=longhaul.fleet.progress)
  - rich 13 or newer, for live lines
options:
  interval:
    description: Seconds between two drawings.
    type: float
    default: 0.5
    env:
      - name: LONGHAUL_PROGRESS_INTERVAL
    ini:
      - section: longhaul_progress
        key: interval
"""

import atexit
import contextlib
import os
import shutil
import sys
import threading
import time
from contextlib import AbstractContextManager
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.utils.display import Display
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.progress_file import progress_folder, read_snapshots
from ansible_collections.longhaul.fleet.plugins.plugin_utils.fleet.progress_view import live_lines

_SLOWEST = 10.0  # seconds between two drawings
_FASTEST = 0.1


class CallbackModule(CallbackBase):
    """Draws from the start of a playbook to its end."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "longhaul.fleet.progress"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._screen: Screen | None = None

    def v2_playbook_on_start(self, playbook: Any) -> None:  # noqa: ARG002  # Ansible calls it so
        """Let runs know that they are shown, if they can be."""
        if self._screen is None and can_draw():
            interval = min(_SLOWEST, max(_FASTEST, float(self.get_option("interval"))))
            self._screen = Screen(progress_folder(), interval)
            self._screen.start()

    def v2_playbook_on_stats(self, stats: Any) -> None:  # noqa: ARG002  # Ansible calls it so
        """Draw no more: the recap comes."""
        if self._screen is not None:
            self._screen.stop()
            self._screen = None


def can_draw() -> bool:
    """Whether there is a terminal, and what draws in it."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    try:
        import rich.live  # noqa: F401  # pylint: disable=unused-import
    except ImportError:
        return False
    return True


class Screen:
    """Live lines at the end of the terminal, as long as a run says how far it is."""

    def __init__(self, folder: str, interval: float) -> None:
        self._folder, self._interval = folder, interval
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="longhaul-progress")

    def start(self) -> None:
        """Begin to look for runs."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        atexit.register(self.stop)  # where ansible-playbook is interrupted
        self._thread.start()

    def stop(self) -> None:
        """Draw no more, and leave the terminal as it was."""
        self._over.set()
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join(5)
        atexit.unregister(self.stop)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        while not self._over.wait(self._interval):
            if read_snapshots(self._folder) is not None:
                self._draw()

    def _draw(self) -> None:
        """Draw until the run has ended."""
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        # What others print, rich prints above the lines.
        console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
        live = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop")
        with _nobody_prints():
            live.start()
            console.show_cursor(True)  # a run that is killed must not leave it hidden
        try:
            while not self._over.wait(self._interval):
                snapshot = read_snapshots(self._folder)
                if snapshot is None:
                    return
                lines = live_lines(snapshot, console.size.width, console.size.height, time.monotonic())
                with _nobody_prints():
                    live.update(Text("\n".join(lines), no_wrap=True, overflow="crop"), refresh=True)
        finally:
            with _nobody_prints():
                live.stop()


def _nobody_prints() -> AbstractContextManager[Any]:
    """Return the lock that Ansible holds while it prints, and while it forks a worker.

    Without it, a worker would be born with locks of rich that nobody there lets go of, and the two could wait for each
    other.
    """
    lock: AbstractContextManager[Any] = getattr(Display(), "_lock", contextlib.nullcontext())
    return lock
