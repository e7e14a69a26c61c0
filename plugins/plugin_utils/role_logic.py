# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one internal filter of a role: a table of questions, each answered by a typed function of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from ansible.errors import AnsibleFilterError


def make_filter(name: str, questions: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """Return the filter ``name``: it takes a value, one of the questions, and the options of that question by name."""

    def ask(value: Any, question: str, **options: Any) -> Any:
        if question not in questions:
            known = ", ".join(sorted(questions))
            raise AnsibleFilterError(f"longhaul.fleet.{name} does not know the question {question!r}. It knows {known}")
        return as_data(questions[question](value, **options))

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
