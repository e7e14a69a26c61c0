# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask many hosts, a few at once, each in one execution."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Generic, TypeVar

from ansible.errors import AnsibleError

from ..common.host_text import one_line
from ..hosts.host_runner import ControllerGone, HostRunner, fails_alone

T = TypeVar("T")
_MOST_THREADS = 20  # each may run ssh twice


def threads_for(forks: int) -> int:
    """Return how many threads ask hosts at the same time; ``forks`` are Ansible's, each of which asks one, too."""
    return max(1, min(_MOST_THREADS, forks * 2))


class HostQuestions(Generic[T]):
    """What hosts have said; a host is asked once."""

    def __init__(self, runner: Callable[[str], HostRunner], threads: int, ask: Callable[[HostRunner], T]) -> None:
        """Take what makes the runner of a host, how many are asked at once, and what asks one and parses its answer."""
        self._runner, self._threads, self._ask = runner, threads, ask
        self.answers: dict[str, T] = {}
        self.failed: dict[str, str] = {}  # hosts that did not answer, and why

    def ask(self, hosts: Iterable[str]) -> None:
        """Ask those that were not asked yet."""
        begun: dict[Future[T], str] = {}
        with ThreadPoolExecutor(self._threads, thread_name_prefix="host") as pool:
            for host in dict.fromkeys(hosts):
                if host in self.answers or host in self.failed:
                    continue
                while len(begun) >= self._threads:
                    self._take(begun)
                try:
                    runner = self._runner(host)  # here, since Ansible's variables are not made for threads
                except AnsibleError as error:
                    self.failed[host] = _reason(error)
                else:
                    ask = partial(self._one, runner)
                    begun[pool.submit(contextvars.copy_context().run, fails_alone, ask)] = host
            while begun:
                self._take(begun)

    def _one(self, runner: HostRunner) -> T:
        try:
            return self._ask(runner)
        finally:
            runner.close()

    def _take(self, begun: dict[Future[T], str]) -> None:
        """Wait until a host has answered, and keep what it said."""
        for future in wait(begun, return_when=FIRST_COMPLETED).done:
            host = begun.pop(future)
            error = future.exception()
            if error is None:
                self.answers[host] = future.result()
            elif isinstance(error, ControllerGone) or not isinstance(error, AnsibleError):
                raise error
            else:
                self.failed[host] = _reason(error)


def _reason(error: BaseException) -> str:
    return one_line(str(getattr(error, "reason", None) or error))
