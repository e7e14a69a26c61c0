# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages about runs: which hook gets one at which event, and what it says. Pure.

A URL is a secret: whoever has it can send messages. So nothing here shows more of it than its host.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from ansible_collections.longhaul.fleet.plugins.module_utils._core.counted import counted

from ..common.host_text import harmless_data, one_line
from .failures import ReportedFailure

URL_TIMEOUT, COMMAND_TIMEOUT = 10.0, 60.0  # seconds
_MOST_SECONDS = 300.0  # of a timeout: a run waits for it at its end
_FEW = 5  # failures that a text names
_LONGEST = 200  # characters of the reason of one


class RunEvent(Enum):
    """When a hook may get a message."""

    START = "start"
    SUCCESS = "success"
    FAILURE = "failure"


_SUFFIXES: Mapping[RunEvent, str] = {RunEvent.START: "/start", RunEvent.SUCCESS: "", RunEvent.FAILURE: "/fail"}


@dataclass(frozen=True)
class NotifyHook:
    """One hook of the list: a URL that is called, or a command that is run on the control node."""

    called: str  # as messages to the user call it
    when: frozenset[RunEvent]
    timeout: float  # seconds of each try
    urls: Mapping[RunEvent, str] = field(default_factory=dict, repr=False)
    method: str = "POST"
    command: tuple[str, ...] = field(default=(), repr=False)

    @property
    def shown(self) -> str:
        """The hook as it may be shown."""
        hosts = dict.fromkeys(_host(url) for url in self.urls.values())
        return f"{self.called} ({', '.join(hosts) if hosts else 'a command'})"


class RunMessage(NamedTuple):
    """Content of one message."""

    event: RunEvent
    text: str  # for people
    report: str  # JSON, for commands


def find_notify_problems(written: Iterable[Any], variable: str) -> list[str]:
    """Return a sentence for each problem of a list of hooks that the argument spec accepts. Shows no URL."""
    problems = []
    for number, one in enumerate(written):
        if isinstance(one, Mapping):
            problems += [f"{_name(one, variable, number)}: {problem}" for problem in _problems(one)]
    return problems


def read_notify_hooks(written: Sequence[Mapping[str, Any]], variable: str) -> list[NotifyHook]:
    """Return the hooks that a user wrote, which find_notify_problems has accepted."""
    return [_read(one, _name(one, variable, number)) for number, one in enumerate(written or ())]


def make_message(
    role: str,
    event: RunEvent,
    at: str,
    by: str,
    jobs: Sequence[str],
    failures: Sequence[ReportedFailure] = (),
    **sections: object,
) -> RunMessage:
    """Return the message about a run of a role. ``sections`` are further members of the report, as plain data."""
    report = {
        "role": role,
        "event": event.value,
        "at": at,
        "by": by,
        "jobs": list(jobs),
        "failures": [one._asdict() for one in failures],
        **sections,
    }
    return RunMessage(event, _text(role, event, by, jobs, failures), json.dumps(harmless_data(report), sort_keys=True))


def hooks_for(hooks: Iterable[NotifyHook], event: RunEvent) -> list[NotifyHook]:
    """Return the hooks that get a message at an event."""
    return [one for one in hooks if event in one.when and (one.command or event in one.urls)]


def _name(written: Mapping[str, Any], variable: str, number: int) -> str:
    return one_line(str(written.get("name") or "")) or f"{variable}[{number}]"


def _problems(written: Mapping[str, Any]) -> list[str]:
    urls = [name for name in ("url", "start_url", "failure_url") if written.get(name)]
    command = written.get("command")
    problems = []
    if bool(urls) == bool(command):
        problems.append("it has both a URL and a command" if command else "it has nothing to call: give url or command")
    problems += [f"{name} is no http or https URL with a host" for name in urls if not _is_url(str(written[name]))]
    if command and not isinstance(command, list):
        problems.append("command is one text. Write a list: the program, and each of its arguments")
    if command and written.get("method"):
        problems.append("method belongs to a URL, and this is a command")
    timeout = written.get("timeout")
    if timeout is not None and not 0 < float(timeout) <= _MOST_SECONDS:
        problems.append(f"timeout is {float(timeout):g}. Write seconds, more than 0 and at most {_MOST_SECONDS:g}")
    return problems


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        valid_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return (
        parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and valid_port
        and url.isprintable()
        and " " not in url
    )


def _host(url: str) -> str:
    return one_line(urlsplit(url).hostname or "")


def _read(written: Mapping[str, Any], called: str) -> NotifyHook:
    command = tuple(str(word) for word in written.get("command") or ())
    events = written.get("when") or [one.value for one in RunEvent]
    names = events.split(",") if isinstance(events, str) else events  # as the argument spec reads a text for a list
    when = frozenset(RunEvent(str(one).strip()) for one in names)
    timeout = float(written.get("timeout") or (COMMAND_TIMEOUT if command else URL_TIMEOUT))
    explicit = {RunEvent.START: written.get("start_url"), RunEvent.FAILURE: written.get("failure_url")}
    urls = {event: str(url) for event, url in explicit.items() if url}
    if written.get("url"):
        url = str(written["url"])
        urls = {event: urls.get(event) or _with_suffix(url, suffix) for event, suffix in _SUFFIXES.items()}
    return NotifyHook(called, when, timeout, urls, str(written.get("method") or "POST"), command)


def _with_suffix(url: str, suffix: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + suffix)) if suffix else url


def _text(role: str, event: RunEvent, by: str, jobs: Sequence[str], failures: Sequence[ReportedFailure]) -> str:
    count = counted(len(jobs), "job", "jobs")
    if event is RunEvent.START:
        head = f"{role}: begun with {count}"
    elif event is RunEvent.SUCCESS:
        head = f"{role}: succeeded with {count}"
    else:
        head = f"{role}: {len(failures)} of {count} failed" if jobs and failures else f"{role}: failed"
    lines = [f"{head} (by {one_line(by)})"]
    for one in failures[:_FEW]:
        reason = one_line(one.reason)
        cut = reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]}..."
        lines.append(f"{one_line(one.name)} {one.what}: {cut}")
    if len(failures) > _FEW:
        lines.append(f"and {len(failures) - _FEW} more")
    return "\n".join(lines)
