# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Deliver messages about runs: call URLs and run commands on the control node, beside the run, for a bounded time.

No failure here is one of the run, and no error text of a library is shown, since it may quote a URL.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.error import HTTPError, URLError

from ..common.units import now_text
from .failures import ReportedFailure
from .notify import NotifyHook, RunEvent, RunMessage, hooks_for, make_message, read_notify_hooks

_PAUSES = (0.0, 1.0, 2.0)  # seconds before each try
_AGENT = "longhaul.fleet"
_GRACE = 2.0  # seconds after which a thread that still waits is left alone
_TRY_AGAIN = 429  # the status of a server that wants less at once; those from 500 on are its own faults


class _UndeliveredMessage(Exception):
    """A message was not delivered. The text names no URL."""

    def __init__(self, reason: str, may_pass: bool = True) -> None:
        super().__init__(reason)
        self.may_pass = may_pass


class MessageDelivery:
    """The messages of one event, each in a thread of its own. ``wait`` for them."""

    def __init__(self, hooks: Iterable[NotifyHook], message: RunMessage, pauses: Sequence[float] = _PAUSES) -> None:
        """Begin to deliver the message to those of the hooks that get it."""
        self._message, self._pauses, self._began = message, pauses, time.monotonic()
        self._reasons: dict[int, str] = {}  # by the number of the hook: why it has no message, empty: it has
        self._threads: list[tuple[NotifyHook, threading.Thread]] = []
        for number, hook in enumerate(hooks_for(hooks, message.event)):
            thread = threading.Thread(target=self._deliver, args=(number, hook), daemon=True, name="notify")
            self._threads.append((hook, thread))
            thread.start()

    def wait(self) -> list[str]:
        """Wait for all messages, no longer than their tries may take, and return a warning for each that was lost."""
        warnings = []
        for number, (hook, thread) in enumerate(self._threads):
            tries = 1 if hook.command else len(self._pauses)
            most = tries * hook.timeout + (0 if hook.command else sum(self._pauses)) + _GRACE
            thread.join(max(0.0, self._began + most - time.monotonic()))
            reason = self._reasons.get(number, f"no answer within {most:.0f} s")
            if reason:
                warnings.append(
                    f"{hook.shown} was not told of the {self._message.event.value} of the run: {reason}. The run is "
                    "not affected"
                )
        return warnings

    def _deliver(self, number: int, hook: NotifyHook) -> None:
        try:
            if hook.command:
                _run_command(hook, self._message)
            else:
                _try_url(hook, self._message, self._pauses)
        except _UndeliveredMessage as error:
            self._reasons[number] = str(error)
        except Exception as error:  # whose text may quote a URL
            self._reasons[number] = f"unexpected error ({type(error).__name__})"
        else:
            self._reasons[number] = ""


class RunMessages:
    """The messages of one call of an action about its run."""

    def __init__(
        self, role: str, written: Sequence[Mapping[str, Any]], by: str, say: Callable[[str], None], write: bool
    ) -> None:
        """Take the role, its list of hooks, and who runs it. Without ``write`` (check mode) say what would be sent."""
        self._hooks = read_notify_hooks(written, f"{role}_notify")
        self._role, self._by, self._say, self._write = role, by, say, write
        self._deliveries: list[MessageDelivery] = []

    def send(
        self, event: RunEvent, jobs: Sequence[str], failures: Sequence[ReportedFailure] = (), **sections: object
    ) -> None:
        """Begin to send a message about the run; see make_message. Does nothing if there are neither hooks nor jobs."""
        if not self._hooks or not jobs:
            return
        message = make_message(self._role, event, now_text(), self._by, jobs, failures, **sections)
        if self._write:
            self._deliveries.append(MessageDelivery(self._hooks, message))
            return
        for hook in hooks_for(self._hooks, event):
            self._say(f"Check mode: {hook.shown} would be told of the {event.value} of the run; nothing is sent")

    def send_end(self, jobs: Sequence[str], failures: Sequence[ReportedFailure], **sections: object) -> list[str]:
        """Send that the run has ended, wait for all messages, and return a warning for each that was lost."""
        self.send(RunEvent.FAILURE if failures else RunEvent.SUCCESS, jobs, failures, **sections)
        return self.wait()

    def wait(self) -> list[str]:
        """Wait for all messages, and return a warning for each that was lost."""
        return [warning for one in self._deliveries for warning in one.wait()]


def _try_url(hook: NotifyHook, message: RunMessage, pauses: Sequence[float]) -> None:
    for number, pause in enumerate(pauses, 1):
        time.sleep(pause)
        try:
            _call_url(hook, message)
            return
        except _UndeliveredMessage as error:
            if number == len(pauses) or not error.may_pass:
                tries = f", {number} tries" if number > 1 else ""
                raise _UndeliveredMessage(f"{error}{tries}") from None


def _call_url(hook: NotifyHook, message: RunMessage) -> None:
    from ansible.module_utils.urls import SSLValidationError, open_url  # takes long to import, and few runs call a URL

    data = message.text.encode() if hook.method == "POST" else None
    headers = {"Content-Type": "text/plain; charset=utf-8"} if data else None
    try:
        answer = open_url(
            hook.urls[message.event],
            data=data,
            headers=headers,
            method=hook.method,
            timeout=hook.timeout,
            http_agent=_AGENT,
            follow_redirects="all",
        )
        answer.close()
    except HTTPError as error:
        error.close()
        may_pass = error.code >= 500 or error.code == _TRY_AGAIN
        raise _UndeliveredMessage(f"it answered {error.code}", may_pass) from None
    except (SSLValidationError, ssl.SSLError):
        raise _UndeliveredMessage("its certificate cannot be verified, or TLS failed", may_pass=False) from None
    except URLError as error:
        raise _UndeliveredMessage(*_reason_of(error.reason, hook.timeout)) from None
    except OSError as error:
        raise _UndeliveredMessage(*_reason_of(error, hook.timeout)) from None


def _reason_of(error: object, timeout: float) -> tuple[str, bool]:
    """Return why a connection failed, and whether that may pass. Only texts of the system are quoted."""
    if isinstance(error, ssl.SSLError):
        return "its certificate cannot be verified, or TLS failed", False
    if isinstance(error, (TimeoutError, socket.timeout)):
        return f"no answer within {timeout:g} s", True
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return f"it cannot be reached ({error.strerror})", True
    return "it cannot be reached", True


def _run_command(hook: NotifyHook, message: RunMessage) -> None:
    quiet = subprocess.DEVNULL  # what it prints may be a secret
    try:
        process = subprocess.Popen(
            hook.command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise _UndeliveredMessage(f"it cannot be run ({why})") from None
    try:
        process.communicate(message.report.encode(), hook.timeout)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise _UndeliveredMessage(f"it did not end within {hook.timeout:g} s, and was ended") from None
    if process.returncode:
        raise _UndeliveredMessage(f"it ended with return code {process.returncode}")
