# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The edge of every action of the collection: all that a user sees of it leaves here, with harmless texts.

Inside, texts of hosts stay as they came, since a path in them may be used. A lint check and a unit test see that each
action is one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..common.ansible_process import end_orphan, watch_for_end
from ..common.argument_spec import spec_from_documentation
from ..common.host_text import harmless, harmless_data
from ..common.refusal import Refusal
from ..jobs.job_options import role_options
from ..jobs.mistakes import check_by_spec, list_problems

_WARNINGS = ("warning", "deprecated")  # of the display


class FleetAction(ActionBase):
    """An action whose result, words and errors are harmless on a terminal."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    _requires_connection = False
    documentation = ""  # of the module; its options are the action's argument spec
    role = ""  # of which it is a part: its option ``variables`` is checked by the argument spec of this role
    mutually_exclusive: tuple[tuple[str, ...], ...] = ()
    users_own: tuple[str, ...] = ()  # members of the result that a later task uses: no host has a word in them

    def refuse(self, given: Mapping[str, Any], variables: Mapping[str, Any]) -> str:  # noqa: ARG002 - for roles
        """Return what is wrong with the options as the user wrote them, and what to do; empty if nothing is.

        ``variables`` are the task's.
        """
        name = str(self._task.action)
        found = check_by_spec(given, spec_from_documentation(self.documentation), f"ansible-doc {name}").problems
        return list_problems(f"The options of {name} are not valid, and nothing was done", found)

    def work(self, options: Mapping[str, Any], variables: Mapping[str, Any]) -> Mapping[str, object]:
        """Do what the validated options say, and return what goes into the result. ``variables`` are the task's."""
        raise NotImplementedError

    def run(self, tmp: str | None = None, task_vars: dict[str, object] | None = None) -> dict[str, object]:
        """Validate the options, do the work, and return its result with harmless texts."""
        watch_for_end()
        result: dict[str, object] = super().run(tmp, task_vars)
        try:
            with _harmless_words():
                refused = self.refuse(self._task.args, task_vars or {})
                if refused:
                    return {**result, "failed": True, "msg": harmless(refused)}
                _validation, options = self.validate_argument_spec(
                    argument_spec=spec_from_documentation(self.documentation),
                    mutually_exclusive=self.mutually_exclusive,
                )
                if self.role:
                    try:
                        options = {**options, **role_options(self.role, options["variables"])}
                    except Refusal as refusal:
                        return {**result, "failed": True, "msg": harmless(str(refusal))}
                result.update(self.work(options, task_vars or {}))
        except Exception as error:
            if harmless(str(error)) == str(error):
                raise
            raise AnsibleError(harmless(f"{type(error).__name__}: {error}")) from None
        finally:
            end_orphan()
        return {name: one if name in self.users_own else harmless_data(one) for name, one in result.items()}


class _HarmlessQueue:
    """The queue from a worker to ansible's own process, with harmless texts for the terminal."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def send_display(self, method: str, *texts: Any, **named: Any) -> None:
        """Hand on what is displayed, whoever displays it: ansible-core and connection plugins quote hosts, too."""
        self._queue.send_display(method, *harmless_data(list(texts)), **harmless_data(named))


@contextmanager
def _harmless_words() -> Iterator[None]:
    """Make harmless all that this worker displays meanwhile.

    Since ansible-core 2.19 warnings do not pass the queue: they become a part of the result.
    """
    display: Any = Display()
    queue = getattr(display, "_final_q", None)
    if queue is not None:
        display._final_q = _HarmlessQueue(queue)
    for name in _WARNINGS:
        setattr(display, name, partial(_warn, getattr(display, name)))
    try:
        yield
    finally:
        for name in _WARNINGS:
            delattr(display, name)
        if queue is not None:
            display._final_q = queue


def _warn(display: Callable[..., None], *texts: Any, **named: Any) -> None:
    display(*harmless_data(list(texts)), **harmless_data(named))
