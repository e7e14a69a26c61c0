# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find mistakes in options as a user wrote them: unknown names, wrong types, values that are missing. Pure.

Ansible's own validators name neither the job nor all mistakes, and list every option that there is. An argument spec
decides here, too, and what Ansible accepts is accepted, but for texts where only a list or a dictionary can be meant.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ansible.module_utils.common import validation

from ..common.argument_spec import Option, Spec
from ..common.host_text import one_line
from .hooks import is_hidden

_CLOSE_HOST = 0.75  # hosts have names that are alike
_CLOSE = 0.6  # how alike a name and the one that is meant are, from 0 to 1
_FEW = 12  # options that a message lists
_LONGEST = 40  # characters of a value that a message quotes
_CHECKS: Mapping[str, tuple[Callable[[Any], object], str]] = {  # of types, and what to write
    "bool": (validation.check_type_bool, "Write true or false"),
    "dict": (validation.check_type_dict, "Write a dictionary, such as {name: value}"),
    "float": (validation.check_type_float, "Write a number"),
    "int": (validation.check_type_int, "Write a whole number"),
    "list": (validation.check_type_list, "Write a list, such as [one, two]"),
}


class CheckedOptions(NamedTuple):
    """Options without those that are wrong."""

    values: dict[str, Any]
    problems: list[str]
    wrong: frozenset[str]  # names that problems are about, also those that they suggest


def check_by_spec(given: Mapping[Any, Any], spec: Spec, guide: str = "", nested: bool = False) -> CheckedOptions:
    """Return options as they were written, without those that are wrong, and a sentence for each mistake.

    ``guide`` is a command that lists the options. Values that are ``nested`` in a variable are used as they are, where
    Ansible makes dictionaries of the texts that a task has.
    """
    return _Check(guide, nested).check(given, spec, "")


def convert(value: Any, option: Option) -> Any:
    """Return a checked value as the type of its option, with all inside of it; None if it is not given.

    Dictionaries have no members that are not given. A path stays as it is written: it belongs to a host. Raises
    TypeError or ValueError for a value of a wrong type.
    """
    kind = option.get("type", "str")
    if value is None or kind == "raw":
        return value
    check = _CHECKS[kind][0] if kind in _CHECKS else str
    if kind == "list":
        element: Option = {**option, "type": option.get("elements", "raw")}
        items: Any = value if isinstance(value, tuple) else check(value)
        return [convert(item, element) for item in items]
    if kind != "dict":
        return check(value)
    written: Any = value if isinstance(value, Mapping) else check(value)
    spec = option.get("options") or {}
    members = {name: convert(one, spec[name]) if name in spec else one for name, one in written.items()}
    return {name: one for name, one in members.items() if one is not None}


def explain_kinds(entry: Mapping[str, Any], kinds: Sequence[str], variable: str) -> str:
    """Return why an entry of a variable has not exactly one of some kinds, and nothing else; empty if it has."""
    if len(entry) == 1 and all(name in kinds and value is not None for name, value in entry.items()):
        return ""
    return f"an entry of {variable} has {', '.join(map(str, entry)) or 'nothing'}: give one of {', '.join(kinds)}"


class WrittenJob(NamedTuple):
    """A job as the user wrote it, and what to call it."""

    called: str
    checked: CheckedOptions  # in a plain dictionary: each look at a container of Ansible's is a template

    def tell(self, problems: Iterable[str]) -> list[str]:
        """Return problems with the job that they are about."""
        return [f"{self.called}: {problem}" for problem in problems]


def check_jobs(jobs: Iterable[Any], spec: Spec | None, needed: Sequence[str], guide: str) -> Iterator[WrittenJob]:
    """Yield the jobs of a list, without the options that are wrong.

    ``spec`` is that of a job, None if the jobs were checked before; ``needed`` are options that each must have.
    """
    for number, written in enumerate(jobs, 1):
        if not isinstance(written, Mapping):
            checked = CheckedOptions({}, [f"it is no dictionary with {', '.join(needed)}"], frozenset(needed))
        elif spec is None:
            checked = CheckedOptions(dict(written), [], frozenset())
        else:
            checked = check_by_spec(written, spec, guide, nested=True)
        name = checked.values.get("name")
        yield WrittenJob(f"job {name}" if name else f"job number {number}", checked)


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is probably meant; empty if none is."""
    names, plain = sorted(known), name.lower().replace("-", "_").strip()
    close = difflib.get_close_matches(plain, names, 1, _CLOSE)
    return (close or [one for one in names if len(one) > 2 and plain.startswith(one)] or [""])[0]


def tell_unknown_host(host: str, known: Iterable[str]) -> str:
    """Return a clause about a host that the inventory does not have, with the one that is probably meant."""
    likely = suggest_host(host, known) or "; its variables would say how to reach it"
    return f"{host} is not in the inventory{likely}"


def suggest_host(host: str, known: Iterable[str]) -> str:
    """Return which host is probably meant, as the end of a sentence; empty if none is."""
    close = difflib.get_close_matches(str(host), sorted(known), 1, _CLOSE_HOST)  # YAML may have made it a number
    return f". Did you mean {close[0]}?" if close else ""


def find_misspelt(variables: Iterable[str], spec: Spec, given: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each variable that is one slip of the pen away from one of the role that is not set.

    ``variables`` are the names of all, and ``given`` are those of the role. Where that one is set, the other may
    be what it is made of.
    """
    unset = [name for name, option in spec.items() if given.get(name, option.get("default")) == option.get("default")]
    found = []
    for name in sorted(set(variables) - set(spec)):
        meant = next((one for one in unset if abs(len(one) - len(name)) < 2 and _is_slip(name, one)), "")
        if meant:
            found.append(
                f"{name} is no variable of the role. Did you mean {meant}? If it is one of your own, rename it"
            )
    return found


def list_problems(what: str, problems: Sequence[str]) -> str:
    """Return a message with one line for each problem; empty if there are none."""
    return "".join([f"{what}:", *(f"\n- {problem}" for problem in problems)]) if problems else ""


def refuse_variables(role: str, problems: Sequence[str]) -> str:
    """Return the message about the variables of a role; empty if there are no problems."""
    return list_problems(f"The variables of the role {role} are not valid, and nothing was done", problems)


def _is_slip(written: str, meant: str) -> bool:
    """Return whether one letter is missing, added or another, or two letters have changed places."""
    pairs = enumerate(zip(written, meant))
    at = next((number for number, (one, other) in pairs if one != other), min(len(written), len(meant)))
    written, meant = written[at:], meant[at:]
    swapped = written[:2] == meant[1::-1] and written[2:] == meant[2:]
    return swapped or written == meant[1:] or written[1:] in (meant, meant[1:])


class _Check(NamedTuple):
    """A look at options and at those inside of them."""

    guide: str
    nested: bool
    hidden: bool = False  # no value may be told

    def check(self, given: Mapping[Any, Any], spec: Spec, where: str) -> CheckedOptions:
        """Check the options of a dictionary; ``where`` it is comes before each name."""
        written = dict(given)
        values: dict[str, Any] = {}
        problems: list[str] = []
        wrong: set[str] = set()
        known = {alias: option for name, option in spec.items() for alias in (name, *option.get("aliases", ()))}
        choosable = {name for name, option in known.items() if "set_by_role" not in option}
        for name, value in written.items():
            option = known.get(name)
            if option is None:
                meant = suggest(str(name), choosable - written.keys())
                wrong |= {str(name), meant} - {""}
                problems.append(f"{self._show_unknown(name, where)}{self._point_to(meant, spec)}")
                continue
            if "set_by_role" in option:
                wrong.add(str(name))
                problems.append(f"{where}{name} {option['set_by_role']}")
                continue
            cleaned, found = self._check_value(value, option, f"{where}{name}")
            problems += found
            wrong |= {name} if found else set()
            if cleaned is not None or not found:
                values[name] = cleaned
        missing = {
            name
            for name, option in spec.items()
            if option.get("required") and all(written.get(one) is None for one in (name, *option.get("aliases", ())))
        }
        problems += [f"{where}{name} is missing" for name in spec if name in missing - wrong]
        return CheckedOptions(values, problems, frozenset(wrong | missing))

    def _show_unknown(self, name: object, where: str) -> str:
        """Return that there is no such option. Where values are hidden, so is the name: it may be a misplaced value."""
        if self.hidden:
            return f"{where.rstrip('.')} has an unknown option, whose name is not shown"
        return f"{where}{_quote(name)} is no option"

    def _point_to(self, meant: str, spec: Spec) -> str:
        if meant:
            return f". Did you mean {meant}?"
        if len(spec) <= _FEW:
            return f". There are {', '.join(sorted(spec))}"
        return f". {self.guide} lists the options" if self.guide else ""

    def _check_value(self, value: Any, option: Option, where: str) -> tuple[Any, list[str]]:
        """Return a value without what is wrong in it, None if nothing is left, and the problems."""
        kind = option.get("type", "str")
        if value is None and (kind not in _CHECKS or option.get("default") is None):
            return None, []
        look = self._replace(hidden=True) if option.get("no_log") else self
        if kind == "list":
            return look._check_list(value, option, where)
        if kind == "dict":
            return look._check_dict(value, option.get("options"), where)
        problem = look._find_problem(value, kind, option.get("choices"))
        return (None, [f"{where} {problem}"]) if problem else (value, [])

    def _check_list(self, value: Any, option: Option, where: str) -> tuple[Any, list[str]]:
        kind = option.get("elements", "raw")
        items = None if kind == "dict" and isinstance(value, str) else _convert(value, "list")
        if items is None:
            return None, [f"{where} is {self._show(value)}. {_CHECKS['list'][1]}"]
        cleaned, problems = [], []
        element: Option = {**option, "type": kind}
        for number, item in enumerate(items):
            left, found = self._replace(nested=True)._check_value(item, element, f"{where}[{number}]")
            problems += found
            cleaned += [] if found else [left]
        return (cleaned or None, problems) if problems else (value, [])

    def _check_dict(self, value: Any, spec: Spec | None, where: str) -> tuple[Any, list[str]]:
        written = None if self.nested and not isinstance(value, Mapping) else _convert(value, "dict")
        if written is None:
            return None, [f"{where} is {self._show(value)}. {_CHECKS['dict'][1]}"]
        if not spec:
            return written, []
        is_misspelt = any(suggest(str(name), ["no_log"]) for name in written if name not in spec)
        hidden = self.hidden or ("no_log" in spec and (is_hidden(written) or is_misspelt))
        found = self._replace(nested=True, hidden=hidden).check(written, spec, f"{where}.")
        return found.values or (None if found.problems else {}), found.problems

    def _find_problem(self, value: Any, kind: str, choices: Sequence[Any] | None) -> str:
        """Return what is wrong with a single value; empty if nothing is."""
        if kind in _CHECKS and _convert(value, kind) is None:
            return f"is {self._show(value)}. {_CHECKS[kind][1]}"
        if kind in ("str", "path") and isinstance(value, (Mapping, list, tuple)):
            return f"is {self._show(value)}. Write one text"
        if not choices or str(value) in map(str, choices):
            return ""
        meant = suggest(str(value), map(str, choices))
        likely = f"Did you mean {meant}? It" if meant else "It"
        return f"is {self._show(value)}. {likely} can be {', '.join(map(str, choices))}"

    def _show(self, value: object) -> str:
        """Return a value as a message quotes it."""
        if value is None:
            return "empty"
        if isinstance(value, Mapping):
            return "a dictionary"
        if isinstance(value, (list, tuple)):
            return "a list"
        if self.hidden:
            return "of another type"
        return str(value).lower() if isinstance(value, bool) else _quote(value)


def _convert(value: Any, kind: str) -> Any:
    """Return a value as Ansible makes it one of a type; None if it cannot."""
    if kind == "dict" and isinstance(value, Mapping):
        return value
    try:
        return _CHECKS[kind][0](value)
    except (TypeError, ValueError):
        return None


def _quote(value: object) -> str:
    """Return a name or a value, cut and harmless, in quotation marks where it is no plain word."""
    text = one_line(str(value))
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return text if text.replace("_", "").replace("-", "").isalnum() else f"'{text}'"
