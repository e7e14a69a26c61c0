# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one internal filter of a role: a table of questions, each answered by a typed function of this package.

A template is read in a process of its own for each task and host, and the first filter of a collection there loads all
files with filters. So these import nothing heavy themselves: what answers is imported when it is asked.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from ansible.errors import AnsibleFilterError

_PLUGINS = "ansible_collections.longhaul.fleet.plugins"


def find_answer(where: str) -> Callable[..., Any]:
    """Return the function that is named by its place below ``plugins``, as in ``plugin_utils.migrate.steps.decide``."""
    module, _dot, name = where.rpartition(".")
    answer: Callable[..., Any] = getattr(importlib.import_module(f"{_PLUGINS}.{module}"), name)
    return answer


def make_filter(name: str, questions: Mapping[str, str]) -> Callable[..., Any]:
    """Return the filter ``name``: it takes a value, one of the questions, and the options of that question by name.

    ``questions`` has the place of the function that answers each, as find_answer takes it.
    """

    def ask(value: Any, question: str, **options: Any) -> Any:
        if question not in questions:
            known = ", ".join(sorted(questions))
            raise AnsibleFilterError(f"longhaul.fleet.{name} does not know the question {question!r}. It knows {known}")
        return as_data(find_answer(questions[question])(value, **options))

    return ask


def as_data(answer: Any) -> Any:
    """Return an answer as templates read it: a named tuple as a dictionary, a tuple as a list, an Enum by its value.

    Dictionaries and lists stay as they are, since they may be the user's own, which Ansible has marked.
    """
    if isinstance(answer, Enum):
        return answer.value
    if isinstance(answer, tuple) and hasattr(answer, "_fields"):
        return {name: as_data(getattr(answer, name)) for name in answer._fields}
    return [as_data(one) for one in answer] if isinstance(answer, tuple) else answer
