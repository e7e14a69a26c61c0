# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which lines of a package the inputs reach that the fuzzer kept: ``coverage.py TARGET ...`` runs them again."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Iterator

from ansible_collections.longhaul.fleet.tests.fuzz import targets

REPOSITORY = Path(__file__).resolve().parents[2]
_NAMELESS = "<"  # a lambda or a comprehension is on the line that it begins on


def functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of the functions in a module; what a module or a class does as it is loaded does not count."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & inspect.CO_OPTIMIZED:
                yield constant
            yield from functions(constant)


def lines_of(path: Path) -> set[int]:
    """Return the numbers of the lines that a function could run."""
    found = set()
    for code in functions(compile(path.read_bytes(), str(path), "exec")):
        lines = {line for _start, _end, line in code.co_lines() if line}
        found |= lines if code.co_name.startswith(_NAMELESS) else lines - {code.co_firstlineno}
    return found


class Tracer:
    """Notes the lines that run in the files of some folders or files."""

    def __init__(self, files: list[Path]) -> None:
        self.reached: dict[Path, set[int]] = {path: set() for path in files}
        self._by_name: dict[str, set[int] | None] = {}

    def __enter__(self) -> Tracer:
        threading.settrace(self._call)
        sys.settrace(self._call)
        return self

    def __exit__(self, *_raised: object) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]

    def _lines(self, name: str) -> set[int] | None:
        if name not in self._by_name:
            self._by_name[name] = self.reached.get(Path(os.path.realpath(name)))
        return self._by_name[name]

    def _call(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        lines = self._lines(frame.f_code.co_filename)
        if lines is None:
            return None
        if frame.f_code.co_name.startswith(_NAMELESS):
            lines.add(frame.f_lineno)

        def line(here: FrameType, _event: str, _argument: Any) -> Any:
            lines.add(here.f_lineno)
            return line

        return line


def stretches(numbers: set[int]) -> str:
    """Return numbers as ``1, 3-5``."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in found)


def report(reached: dict[Path, set[int]]) -> list[str]:
    """Return a line for each file, and one for all of them."""
    lines, total, met = [], 0, 0
    for path, seen in sorted(reached.items()):
        could = lines_of(path)
        if not could:
            continue
        missed = could - seen
        total, met = total + len(could), met + len(could) - len(missed)
        name = path.relative_to(REPOSITORY / "plugins/module_utils")
        lines.append(
            f"  {name}: {len(could) - len(missed)} of {len(could)}" + f"; not {stretches(missed)}" * bool(missed)
        )
    share = f" ({met / total:.1%})" if total else ""
    return [f"lines of functions that were reached: {met} of {total}{share}", *lines]


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=sorted(targets.TARGETS))
    target = targets.TARGETS[parser.parse_args().target]
    files = sorted({path for one in target.code for path in (REPOSITORY / "plugins/module_utils").glob(one)})
    beside = [name for name, other in targets.TARGETS.items() if set(other.code) & set(target.code)]
    count = 0
    with Tracer(files) as tracer:
        for name in beside:
            for path in sorted((targets.FOUND / name).glob("*")):
                count += 1
                with contextlib.redirect_stderr(sys.stdout):
                    targets.TARGETS[name].take(path.read_bytes())
    print(f"{count} inputs were kept ({', '.join(beside)})")
    print("\n".join(report(tracer.reached)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
