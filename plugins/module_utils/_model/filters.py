# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter rules in rsync's own syntax and with its meaning.

Source: rsync(1), FILTER RULES and INCLUDE/EXCLUDE PATTERN RULES. The unit tests compare with the real program.
"""

from __future__ import annotations

import os
import re
from typing import Callable, Iterable, NamedTuple, Pattern, Union

SOURCE, DEST = "source", "dest"

_WORDS = {
    "exclude": "-",
    "include": "+",
    "hide": "H",
    "show": "S",
    "protect": "P",
    "risk": "R",
    "clear": "!",
    "merge": ".",
    "dir-merge": ":",
}
_SIDES = {"H": (SOURCE,), "S": (SOURCE,), "P": (DEST,), "R": (DEST,)}
_INCLUDING = "+SR"
_WILD = re.compile(rb"[*?\[]")
_POSIX_CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": rb"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    b"space": rb"\t-\r ",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}
_NEVER = rb"(?!)"
_ANYTHING, _WITHIN_A_NAME = rb".*?", rb"[^/]*?"


class FilterError(ValueError):
    """A rule that cannot be honoured. The text names the rule and says why."""


class _Rule(NamedTuple):
    include: bool
    perishable: bool
    matches: Callable[[bytes, bool], bool]


class _PathsRule:
    """Rules of one kind, one after the other, that each name one whole path: as fast as one, however many they are."""

    perishable = False

    def __init__(self, include: bool, path: bytes) -> None:
        self.include = include
        self._paths: set[bytes] = set()
        self._folders: set[bytes] = set()
        self.add(path)

    def add(self, path: bytes) -> None:
        """Add a path; one that ends in a slash is that of a directory."""
        if path.endswith(b"/"):
            self._folders.add(path[:-1])
        else:
            self._paths.add(path)

    def matches(self, path: bytes, is_dir: bool) -> bool:
        """Return whether one of the rules matches."""
        return path in self._paths or (is_dir and path in self._folders)


_AnyRule = Union[_Rule, _PathsRule]


class Filters:
    """A list of rules; the first one that matches a path decides about it."""

    def __init__(self, source: list[_AnyRule], dest: list[_AnyRule]) -> None:
        self._rules = {SOURCE: source, DEST: dest}

    def __bool__(self) -> bool:
        return any(self._rules.values())

    @classmethod
    def parse(cls, rules: Iterable[str]) -> Filters:
        """Make filters of rules such as ``- *.tmp``, ``+ /a/**``, ``P /keep``, ``exclude,! */``.

        Raises FilterError for rules that are not understood, and for merge files, CVS rules and patterns of absolute
        paths (modifier ``/``), which are not offered.
        """
        sides: dict[str, list[_AnyRule]] = {SOURCE: [], DEST: []}
        for text in rules:
            kind, modifiers, pattern = _split(text)
            if kind == "!":
                sides = {SOURCE: [], DEST: []}
                continue
            matches = _matcher(os.fsencode(pattern), "!" in modifiers)
            rule = _Rule(include=kind in _INCLUDING, perishable="p" in modifiers, matches=matches)
            whole = _whole_path(os.fsencode(pattern)) if not modifiers else None
            for side in _sides_of(kind, modifiers):
                last = sides[side][-1] if sides[side] else None
                if whole is not None and isinstance(last, _PathsRule) and last.include == rule.include:
                    last.add(whole)
                elif whole is not None:
                    sides[side].append(_PathsRule(rule.include, whole))
                else:
                    sides[side].append(rule)
        return cls(sides[SOURCE], sides[DEST])

    def allows(self, path: bytes, is_dir: bool, side: str = SOURCE, *, removing: bool = False) -> bool:
        """Return whether the path takes part. The caller does not ask about what lies below a path that does not.

        On the side ``source`` False means hidden: not transferred. On the side ``dest`` it means protected:
        left alone, never deleted. ``removing`` is for the contents of a directory that is being removed;
        perishable rules (modifier ``p``) do not count there.
        """
        for rule in self._rules[side]:
            if rule.matches(path, is_dir) and not (removing and rule.perishable):
                return rule.include
        return True

    def risks(self, path: bytes, is_dir: bool) -> bool:
        """Return whether a rule says that the path may be deleted at the destination, where nothing else does."""
        return any(rule.matches(path, is_dir) for rule in self._rules[DEST]) and self.allows(path, is_dir, DEST)


def _whole_path(pattern: bytes) -> bytes | None:
    """Return the path that a pattern names as a whole, from the root; None for any other pattern."""
    return pattern[1:] if len(pattern) > 2 and pattern.startswith(b"/") and not _WILD.search(pattern) else None


def rule_of_path(path: str, is_dir: bool) -> str:
    """Return the rule that includes just this path, or this directory without its contents."""
    pattern = re.sub(r"([*?\[\\])", r"\\\1", path) if _WILD.search(os.fsencode(path)) else path
    return f"+ /{pattern}{'/' if is_dir else ''}"


def anchored_pattern(rule: str) -> str:
    """Return the pattern of a rule that begins with a slash, so at the root; else nothing. Raises FilterError."""
    _kind, _modifiers, pattern = _split(rule)
    return pattern if pattern.startswith("/") else ""


def _split(text: str) -> tuple[str, str, str]:
    """Split a rule into its kind (one character), its modifiers and its pattern."""
    if "\0" in text:
        raise FilterError("a filter rule holds a NUL byte, which no path can")
    word = re.match(r"([a-z][a-z-]+)(?=[\s_,]|\Z)", text)
    if word:
        kind, rest = _WORDS.get(word.group(1), ""), text[word.end() :]
    else:
        kind, rest = text[:1], text[1:]
    if kind in (".", ":"):
        raise FilterError(
            f"filter rule '{text}': merge files are not offered, because both ends would have to read them;"
            " give the rules themselves"
        )
    if kind == "!":
        if rest:
            raise FilterError(f"filter rule '{text}': nothing may follow '{text[: -len(rest)]}'")
        return kind, "", ""
    if not kind or kind not in "-+HSPR":
        raise FilterError(
            f"filter rule '{text}' is not understood: it must begin with one of + - P R H S ! or include,"
            " exclude, protect, risk, hide, show, clear, then a space and a pattern"
        )
    if rest.startswith(","):
        rest = rest[1:]
    end = next((at for at, char in enumerate(rest) if char in " _"), len(rest))
    modifiers, pattern = rest[:end], rest[end + 1 :]
    _check_modifiers(text, kind, modifiers)
    if not pattern:
        raise FilterError(f"filter rule '{text}' has no pattern")
    return kind, modifiers, pattern


def _check_modifiers(text: str, kind: str, modifiers: str) -> None:
    for modifier in modifiers:
        if modifier == "C":
            raise FilterError(f"filter rule '{text}': CVS rules (modifier 'C') are not offered; give the patterns")
        if modifier == "x":
            raise FilterError(f"filter rule '{text}': rules for the names of xattrs (modifier 'x') are not offered")
        if modifier == "/":  # what the source calls its root would decide what it may send
            raise FilterError(
                f"filter rule '{text}': patterns of absolute paths (modifier '/') are not offered; a pattern that "
                "begins with / is relative to src"
            )
        if modifier not in "!srp" or (modifier in "sr" and kind in _SIDES):
            raise FilterError(
                f"filter rule '{text}': the modifier '{modifier}' is not known here; known are ! s r p,"
                " and after the modifiers there must be a space"
            )


def _sides_of(kind: str, modifiers: str) -> tuple[str, ...]:
    chosen = tuple(side for letter, side in (("s", SOURCE), ("r", DEST)) if letter in modifiers)
    return _SIDES.get(kind) or chosen or (SOURCE, DEST)


def _matcher(pattern: bytes, negate: bool) -> Callable[[bytes, bool], bool]:
    """Make a function of path and is_dir that says whether a pattern matches."""
    only_dirs = len(pattern) > 1 and pattern.endswith(b"/")
    if only_dirs:
        pattern = pattern[:-1]
    match = _path_matcher(pattern)

    def matches(path: bytes, is_dir: bool) -> bool:
        if only_dirs and not is_dir:
            return negate
        return match(path, is_dir) is not negate

    return matches


def _path_matcher(pattern: bytes) -> Callable[[bytes, bool], bool]:
    """The four ways in which rsync lays a pattern against a path.

    A pattern without a slash matches the last name. One that begins with a slash matches the whole path. One
    with a slash elsewhere matches as many names at the end as it has itself; with ``**`` in it, it may begin
    behind any slash. Backslashes escape only in patterns that have wildcards.
    """
    wild = _WILD.search(pattern) is not None
    stars = b"**" in pattern
    slashes = pattern.count(b"/")
    matches = _regex(pattern[1:] if pattern.startswith(b"/") else pattern) if wild else None
    plain = pattern[1:] if pattern.startswith(b"/") else pattern

    def fits(subject: bytes) -> bool:
        return matches.fullmatch(subject) is not None if matches else subject == plain

    if not slashes and not stars:
        return lambda path, _is_dir: fits(path.rpartition(b"/")[2])
    if not pattern.startswith(b"/") and not stars:

        def at_the_end(path: bytes, _is_dir: bool) -> bool:
            names = path.rsplit(b"/", slashes + 1)
            return len(names) > slashes and fits(b"/".join(names[-slashes - 1 :]))

        return at_the_end
    prefix = b"/" if pattern.startswith(b"**") else b""  # so that **/ matches at the top, too
    if not pattern.startswith((b"/", b"**")):
        matches = _regex(pattern, anywhere=True)
    suffix = b"/" if pattern.endswith(b"***") else b""  # so that dir/*** matches the directory, too
    return lambda path, is_dir: fits(prefix + path + suffix if is_dir else prefix + path)


def _regex(pattern: bytes, anywhere: bool = False) -> Pattern[bytes]:
    """Translate a pattern with wildcards. ``anywhere``: it may begin behind any slash.

    ``*`` stays within a name, ``**`` does not. What precedes the last star matches as early as it can and is
    then left alone (an atomic group, spelled for Python 3.8), or patterns with many stars would take for ever.
    """
    pieces: list[tuple[bytes, bytes]] = []  # the wildcard before a piece, and the piece as a regular expression
    star, piece = b"", b""
    at = 0
    while at < len(pattern):
        char = pattern[at : at + 1]
        if char == b"*":
            end = at
            while pattern[end : end + 1] == b"*":
                end += 1
            pieces.append((star, piece))
            star, piece = (_ANYTHING if end - at > 1 else _WITHIN_A_NAME), b""
            at = end
        elif char == b"?":
            piece += rb"[^/]"
            at += 1
        elif char == b"[":
            expression, at = _bracket(pattern, at)
            piece += expression
        elif char == b"\\":
            piece += re.escape(pattern[at + 1 : at + 2]) or _NEVER
            at += 2
        else:
            piece += re.escape(char)
            at += 1
    pieces.append((star, piece))
    return re.compile((rb"(?:.*/)?" if anywhere else b"") + _assemble(pieces), re.DOTALL)


def _assemble(pieces: list[tuple[bytes, bytes]]) -> bytes:
    """Put a regular expression together of (wildcard before, piece).

    Between two ``**`` the earliest place is as good as any later one, and so it is between two ``*``. Only what
    comes behind the last of them is bound to the end, and may have to move on.
    """
    blocks: list[list[tuple[bytes, bytes]]] = []
    for star, piece in pieces:
        if not blocks or star == _ANYTHING:
            blocks.append([])
        blocks[-1].append((star, piece))
    text = b""
    groups = 0
    for number, block in enumerate(blocks):
        last_block = number == len(blocks) - 1
        settled = block[0][0] == _ANYTHING and not last_block
        if settled:
            groups += 1
            outer = groups
        inner = b"".join(block[0])
        for at, (star, piece) in enumerate(block[1:], 2):
            if last_block and at == len(block):
                inner += star + piece
            else:
                groups += 1
                inner += rb"(?=(%s%s))(?:\%d)" % (star, piece, groups)
        text += rb"(?=(%s))(?:\%d)" % (inner, outer) if settled else inner
    return text


def _bracket(pattern: bytes, start: int) -> tuple[bytes, int]:
    """Translate ``[...]`` that begins at ``start``; gives the expression and where it ends. Never matches a slash."""
    at = start + 1
    inverted = pattern[at : at + 1] in (b"!", b"^")
    if inverted:
        at += 1
    inside = b""
    before = b""  # the character that a range may begin with
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        char = pattern[at : at + 1]
        if not char:
            return _NEVER, len(pattern)
        if char == b"[" and pattern[at + 1 : at + 2] == b":":
            end = pattern.find(b"]", at + 2)
            if end < 0:
                return _NEVER, len(pattern)
            if end > at + 2 and pattern[end - 1 : end] == b":":
                known = _POSIX_CLASSES.get(pattern[at + 2 : end - 1])
                if known is None:
                    return _NEVER, len(pattern)
                inside, before, at = inside + known, b"", end + 1
                continue
        following = pattern[at + 1 : at + 2]
        if char == b"-" and before and following and following != b"]":
            at += 1
            if following == b"\\":
                at += 1
                following = pattern[at : at + 1]
                if not following:
                    return _NEVER, len(pattern)
            if before <= following:
                inside += re.escape(before) + b"-" + re.escape(following)
            before = b""
        else:
            if char == b"\\":
                at += 1
                char = following
                if not char:
                    return _NEVER, len(pattern)
            inside += re.escape(char)
            before = char
        at += 1
    if not inside:
        return (rb"[^/]" if inverted else _NEVER), at + 1
    return (rb"(?!/)[%s%s]" % (b"^" if inverted else b"", inside)), at + 1
