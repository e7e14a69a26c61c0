# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The conditions of a search in snapshots, as a user writes them and as bytes are compared. Private to the collection.

Pure. A condition on the path is a regular expression of bytes, since paths are bytes; all others need the entry.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import signal
import threading
import time
from typing import Callable, Iterator, Mapping, NamedTuple

from .._model.entry import CHARACTER, DIRECTORY, REGULAR
from .._model.paths import unescape
from .errors import Refused

CONDITIONS = ("path", "glob", "regex", "type", "size_min", "size_max", "owner", "group", "newer", "older")
TYPES = "fdlpsbc"

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"(\d{1,15})\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_TIMES = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M", "%Y-%m-%d")
_SECOND = 10**9
_LONGEST = 4096  # characters of a pattern
_ONE = r"(?:[^/\x80-\xff]|[\xc2-\xf4][\x80-\xbf]+)"  # one character in UTF-8
_SPECIAL_IN_BRACKETS = re.compile(r"[][\\^&~|]")

MatchPath = Callable[[bytes], object]
_GRACE, _EACH = 5.0, 50e-6  # processor seconds that a search may compare paths, and for each path


class MatchBudget:
    """The processor time that comparing paths may take. Only a regular expression can exceed it.

    An expression such as ``(a+)+$`` tries more ways than anybody can wait for. Python's own engine asks for signals
    while it does, so a timer of this process ends it. It works in the main thread alone, where modules run.
    """

    def __init__(self) -> None:
        self._left = _GRACE

    @contextlib.contextmanager
    def for_paths(self, count: int) -> Iterator[None]:
        """Compare so many paths. Raises Refused if it takes too long."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._left += count * _EACH
        before = signal.signal(signal.SIGVTALRM, self._end)
        signal.setitimer(signal.ITIMER_VIRTUAL, max(self._left, 1e-3))
        try:
            yield
        finally:
            self._left = signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0]
            signal.signal(signal.SIGVTALRM, before)

    @staticmethod
    def _end(_number: int, _frame: object) -> None:
        raise Refused(
            "regex takes too long: it tries very many ways to match one path. Nothing was changed. Leave out "
            "repetitions inside of repetitions, such as (a+)+, or search with glob"
        )


class Conditions(NamedTuple):
    """Conditions of a search; all must hold."""

    paths: tuple[MatchPath, ...]  # each true for the paths that it is about
    type: str = ""
    size_min: int | None = None  # bytes, of regular files
    size_max: int | None = None
    owner: int | None = None
    group: int | None = None
    newer: int | None = None  # nanoseconds since 1970 of the modification time, itself included
    older: int | None = None  # without it

    @property
    def has_values(self) -> bool:
        """Whether something else than the path counts."""
        return any(one not in (None, "") for one in self[1:])

    def make_test(self) -> Callable[[str, int, int, int, int], bool]:
        """Return what tells by type, size, uid, gid and mtime_ns whether an entry is looked for. It runs for each."""
        _paths, kind, least, most, owner, group, newer, older = self

        def holds(of_type: str, size: int, uid: int, gid: int, mtime_ns: int) -> bool:
            return (
                (not kind or of_type == kind)
                and (least is None or (size >= least and of_type == REGULAR))
                and (most is None or (size <= most and of_type == REGULAR))
                and (owner is None or uid == owner)
                and (group is None or gid == group)
                and (newer is None or mtime_ns >= newer)
                and (older is None or mtime_ns < older)
            )

        return holds


def parse_conditions(written: Mapping[str, object]) -> Conditions:
    """Return the conditions that a user wrote. Raises Refused, which names the one that is wrong."""
    given = {name: str(value) for name, value in written.items() if value not in (None, "")}
    unknown = sorted(set(given) - set(CONDITIONS))
    if unknown:
        raise Refused(f"{unknown[0]} is no condition of a search. There are {', '.join(CONDITIONS)}")
    if not given:
        raise Refused(
            "a search without a condition would list everything: give one in match, such as glob: '*.conf'. "
            "What there is in all is told by action list"
        )
    kind = given.get("type", "")
    if kind and kind not in TYPES:
        raise Refused(f"type is {kind!r}. It can be {DIRECTORY} (folder), {REGULAR} (file), l (link) … {CHARACTER}")
    makers: Mapping[str, Callable[[str], MatchPath]] = {"path": _below, "glob": _glob, "regex": _regex}
    return Conditions(
        tuple(make(given[name]) for name, make in makers.items() if name in given),
        kind,
        *(parse_size(name, given[name]) if name in given else None for name in ("size_min", "size_max")),
        *(_number(name, given[name]) if name in given else None for name in ("owner", "group")),
        *(_time(name, given[name]) if name in given else None for name in ("newer", "older")),
    )


def parse_path(text: str) -> bytes:
    """Return the path in a tree that a user wrote, or that was printed; slashes around it do not count."""
    try:
        return unescape(text).strip(b"/")
    except UnicodeEncodeError:
        raise _half("path", text) from None


def _below(text: str) -> MatchPath:
    path = parse_path(text)
    return re.compile(re.escape(path) + rb"(?:/.*)?" if path else rb".*", re.DOTALL).fullmatch


def _glob(pattern: str) -> MatchPath:
    """Return what matches a pattern: of a name in any folder, or with a slash in it, of the whole path.

    ``*`` stands for no slash, ``?`` and ``[...]`` for one character, ``**`` between slashes for any number of folders.
    What comes behind a ``*`` or ``**`` is taken where it comes first, and no other place is tried: an earlier one
    leaves more to the rest of the pattern. So no pattern takes long.
    """
    if len(pattern) > _LONGEST:
        raise Refused(f"glob has more than {_LONGEST} characters")
    segments = pattern.strip("/").split("/")
    segments = ["**", *segments] if len(segments) == 1 else segments
    numbers = itertools.count()
    groups: list[list[str]] = [[]]  # of segments, between two **
    for segment in segments:
        if segment == "**":
            groups.append([])
        else:
            groups[-1].append(_segment(segment, numbers))
    if len(groups) == 1:
        return _compile("glob", "/".join(groups[0]), pattern).fullmatch
    out = [f"{segment}/" for segment in groups[0]]
    for group in groups[1:-1]:
        if group:
            out.append(_first("(?:[^/]*/)*?" + "".join(f"{segment}/" for segment in group), numbers))
    out.append("(?:.*/)?" + "/".join(groups[-1]) if groups[-1] else ".*")
    return _compile("glob", "".join(out), pattern).fullmatch


def _segment(text: str, numbers: Iterator[int]) -> str:
    """Return the expression for what is between two slashes of a pattern."""
    at, pieces = 0, [""]
    while at < len(text):
        if text[at] == "*":
            pieces.append("")
            at += 1
        elif text[at] == "?":
            pieces[-1] += _ONE
            at += 1
        elif text[at] == "[" and (end := text.find("]", at + (3 if text.startswith("[!", at) else 2))) > 0:
            pieces[-1] += _bracket(text[at + 1 : end])
            at = end + 1
        else:
            pieces[-1] += re.escape(text[at])
            at += 1
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(_first(f"[^/]*?{piece}", numbers) for piece in pieces[1:-1] if piece)
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}"


def _bracket(inside: str) -> str:
    if not inside.isascii():
        raise Refused(f"glob has {inside!r} in brackets, where only ASCII characters can be. Write ? for any character")
    is_negated = inside.startswith("!")
    escaped = _SPECIAL_IN_BRACKETS.sub(r"\\\g<0>", inside[is_negated:])
    return f"(?![/{escaped}]){_ONE}" if is_negated else f"(?!/)[{escaped}]"


def _first(expression: str, numbers: Iterator[int]) -> str:
    """Return an expression that matches only what ``expression`` matches first (an atomic group, as of Python 3.11)."""
    name = f"_{next(numbers)}"
    return f"(?=(?P<{name}>{expression}))(?P={name})"


def _regex(pattern: str) -> MatchPath:
    if len(pattern) > _LONGEST:
        raise Refused(f"regex has more than {_LONGEST} characters")
    return _compile("regex", pattern, pattern).search


def _compile(name: str, expression: str, shown: str) -> re.Pattern[bytes]:
    try:
        return re.compile(expression.encode("utf-8", "surrogateescape"), re.DOTALL)
    except UnicodeEncodeError:
        raise _half(name, shown) from None
    except (re.error, OverflowError, RecursionError) as error:
        raise Refused(f"{name} {shown!r} cannot be understood: {error}. Correct it") from None


def _half(name: str, text: str) -> Refused:
    return Refused(f"{name} {text!r} has half of a surrogate pair, which is no character. Correct it")


def parse_size(name: str, text: str) -> int:
    """Return the bytes that the option ``name`` says, such as ``10G``. Raises Refused."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise Refused(f"{name} is {text!r}. Write bytes, such as 1048576, or 1M, 10G")
    return int(found[1]) << _UNITS[found[2].upper()]


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 32):
        raise Refused(f"{name} is {text!r}. Write the number: snapshots know no names of users and groups")
    return int(text)


def _time(name: str, text: str) -> int:
    import calendar  # which takes a while, and most actions need none of it

    for form in _TIMES:
        try:
            return calendar.timegm(time.strptime(text, form)) * _SECOND
        except ValueError:
            continue
    raise Refused(
        f"{name} is {text!r}. Write a time in UTC, such as 2026-11-21, 2026-11-21 17:30 or 2026-11-21T17:30:09Z"
    )
