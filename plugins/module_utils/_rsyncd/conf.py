# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rsyncd.conf and the files it includes, as rsync reads them. Private to the collection. Source: rsyncd.conf(5).

Reading of files is handed in, so this is tested with dictionaries.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Callable, Mapping, cast

from .check import same_name, value_of
from .options import OPTIONS, Value, Values

_SPACE = " \t\r\v\f"
_DEPTH = 8  # of files that include each other

Reader = Callable[[str], str]
"""Returns the text of a file; raises OSError."""
Lister = Callable[[str], "list[str] | None"]
"""Returns the names in a directory; None if the path is not one."""


@dataclass
class Module:
    """A module with the options that count for it: its own over the global ones where it began."""

    name: str
    options: dict[str, str]
    files: list[str] = field(default_factory=list)  # where it is written; more than one is a mistake

    def named(self) -> dict[str, str]:
        """Return the options by their names in rsyncd.conf(5), such as ``read only``."""
        return {OPTIONS[key].name if key in OPTIONS else key: value for key, value in self.options.items()}


@dataclass
class Conf:
    """A configuration: the modules, the global options that a daemon starts with, and the files it was read from."""

    modules: list[Module] = field(default_factory=list)
    start: dict[str, str] = field(default_factory=dict)  # what stands before the first section
    files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # named by a directive and not there

    def module(self, name: str) -> Module | None:
        """Return the module that rsync finds by this name."""
        return next((module for module in self.modules if same_name(module.name) == same_name(name)), None)


def logical_lines(text: str) -> list[str]:
    """Return the lines that count: comments and empty ones left out, continued ones joined."""
    lines, waiting = [], ""
    for raw in text.split("\n"):
        line = waiting + raw.strip(_SPACE)
        if not waiting and line.startswith(("#", ";")):
            continue
        if line.endswith("\\"):
            waiting = line[:-1]
            continue
        waiting = ""
        if line.strip(_SPACE):
            lines.append(line.strip(_SPACE))
    return lines + ([waiting.strip(_SPACE)] if waiting.strip(_SPACE) else [])


_KEYS = {re.sub(r"[\s_]+", "", option.name): key for key, option in OPTIONS.items()}


def key_of(name: str) -> str:
    """Return the key of an option as a file writes it: case, spaces and underscores do not matter to rsync."""
    squeezed = re.sub(r"[\s_]+", "", name).lower()
    return _KEYS.get(squeezed, squeezed)


def load(path: str, read: Reader, names: Lister) -> Conf:
    """Read a configuration with everything that it includes. Raise OSError if ``path`` cannot be read."""
    conf = Conf()
    _Loading(conf, read, names).file(path, {}, first=True)
    return conf


class _Loading:
    def __init__(self, conf: Conf, read: Reader, names: Lister) -> None:
        self._conf, self._read, self._names = conf, read, names
        self._current: Module | None = None
        self._starting = True  # no section was seen yet

    def file(self, path: str, defaults: dict[str, str], first: bool = False, depth: int = 0) -> None:
        if depth > _DEPTH:
            return
        try:
            text = self._read(path)
        except OSError:
            if first:
                raise
            self._conf.missing.append(path)
            return
        self._conf.files.append(path)
        for line in logical_lines(text):
            if line.startswith("&"):
                self._directive(line, defaults, depth)
            elif line.startswith("["):
                self._section(line, defaults, path)
            else:
                self._option(line, defaults)

    def _directive(self, line: str, defaults: dict[str, str], depth: int) -> None:
        word, _space, target = line[1:].partition(" ")
        target = target.strip(_SPACE)
        suffix = {"include": ".conf", "merge": ".inc"}.get(word.lower())
        if suffix is None or not target:
            return
        names = self._names(target)
        paths = [target]
        if names is not None:
            paths = [os.path.join(target, name) for name in sorted(names) if name.endswith(suffix)]
        for path in paths:
            if suffix == ".conf":
                # It starts in the global part, and what it sets there counts for its own modules alone.
                outer, starting = self._current, self._starting
                self._current, self._starting = None, False
                self.file(path, dict(defaults), depth=depth + 1)
                self._current, self._starting = outer, starting
            else:
                self.file(path, defaults, depth=depth + 1)

    def _section(self, line: str, defaults: dict[str, str], path: str) -> None:
        self._starting = False
        name = " ".join(line[1:].partition("]")[0].split())
        if name.lower() == "global":
            self._current = None
            return
        module = self._conf.module(name)
        if module is None:
            module = Module(name, dict(defaults))
            self._conf.modules.append(module)
        if path not in module.files:
            module.files.append(path)
        self._current = module

    def _option(self, line: str, defaults: dict[str, str]) -> None:
        name, equals, value = line.partition("=")
        if not equals:
            return
        key, value = key_of(name), value.strip(_SPACE)
        if self._current is not None:
            self._current.options[key] = value
            return
        defaults[key] = value
        if self._starting:
            self._conf.start[key] = value


def effective(module: Module) -> Values:
    """Return a module's options in their own types, without malformed ones, for which rsync takes the default."""
    return cast(Values, {"name": module.name, **typed(module.options)})


def typed(options: Mapping[str, str]) -> Values:
    """Return options in their own types, without malformed ones, for which rsync takes the default."""
    values: dict[str, Value] = {}
    for key, text in options.items():
        if key in OPTIONS:
            try:
                values[key] = value_of(OPTIONS[key], text)
            except ValueError:
                continue
    return cast(Values, values)


def load_from_disk(path: str) -> Conf:
    """Read a configuration of this host. Raise OSError if the file cannot be read."""
    return load(path, read_text, folder_names)


def read_text(path: str) -> str:
    """Return the text of a file, whatever its bytes."""
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()


def folder_names(path: str) -> list[str] | None:
    """Return the names in a directory; None if it is none."""
    try:
        return os.listdir(path)
    except OSError:
        return None
