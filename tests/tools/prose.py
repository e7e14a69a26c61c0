# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Phrases that the project's texts avoid, listed in ``tests/prose.yml``: ``prose.py [--lower] [PHRASE...]``.

The list says how often each phrase may still occur; that number may only fall. ``--lower`` writes down the numbers of
today where they are lower. A PHRASE of the list as an argument prints where it occurs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterable, NamedTuple

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
LIST = "tests/prose.yml"
SUFFIXES = (".py", ".md", ".yml", ".yaml", ".j2", ".sh")


class Phrase(NamedTuple):
    """What is avoided (a regular expression, a space being any white space), what is better, how often it may occur."""

    phrase: str
    write: str
    hits: int


class Hit(NamedTuple):
    """One place where a phrase occurs."""

    file: str
    line: int
    text: str


def read_list(text: str) -> tuple[list[Phrase], list[str]]:
    """Return the phrases, and the files to skip."""
    content = yaml.safe_load(text)
    return [Phrase(**entry) for entry in content["phrases"]], content["skip"]


def files(skip: Iterable[str]) -> list[str]:
    """Return the files with prose that git knows or would know."""
    argv = ["git", "-C", str(REPOSITORY), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, check=True, capture_output=True).stdout
    names = {os.fsdecode(name) for name in listed.split(b"\0")}
    return sorted(name for name in names - set(skip) if name.endswith(SUFFIXES) and (REPOSITORY / name).is_file())


def find(phrase: str, file: str, text: str) -> list[Hit]:
    """Return where a phrase occurs in a text, also across the ends of lines and of lines of a comment."""
    pattern = re.sub(" ", r"(?:\\s|#)+", phrase)
    lines = text.splitlines()
    hits = []
    for found in re.finditer(rf"(?<!\w)(?:{pattern})(?!\w)", text, re.IGNORECASE):
        line = text.count("\n", 0, found.start())
        hits.append(Hit(file, line + 1, lines[line].strip()))
    return hits


def lowered(text: str, counts: Iterable[int]) -> str:
    """Return the text of the list with each number replaced by today's where that is lower."""
    todays = iter(counts)
    return re.sub(r"(?m)^( +hits: )(\d+)$", lambda found: f"{found[1]}{min(int(found[2]), next(todays))}", text)


def verdict(phrases: Iterable[Phrase], hits: Iterable[list[Hit]]) -> tuple[list[str], bool]:
    """Return lines about phrases that occur more or less often than they may, and whether none occurs more often."""
    lines, good, spare, total = [], True, 0, 0
    for phrase, found in zip(phrases, hits):
        total += len(found)
        spare += max(0, phrase.hits - len(found))
        if len(found) > phrase.hits:
            good = False
            lines.append(f'"{phrase.phrase}" occurs {len(found)} times, {phrase.hits} are allowed: {phrase.write}')
            lines += [f"    {hit.file}:{hit.line}: {hit.text}" for hit in found]
    lines.append(f"{total} phrases to avoid")
    if spare:
        lines.append(f"{spare} fewer than {LIST} allows: python3 tests/tools/prose.py --lower")
    return lines, good


def main() -> int:
    """Count; the exit code is 1 where a phrase occurs more often than it may."""
    path = REPOSITORY / LIST
    text = path.read_text(encoding="utf-8")
    phrases, skip = read_list(text)
    contents = {name: (REPOSITORY / name).read_text(encoding="utf-8", errors="replace") for name in files(skip)}
    hits = [[hit for name in contents for hit in find(one.phrase, name, contents[name])] for one in phrases]
    asked = [argument for argument in sys.argv[1:] if argument != "--lower"]
    if asked:
        shown = [hit for one, found in zip(phrases, hits) if one.phrase in asked for hit in found]
        print("\n".join(f"{hit.file}:{hit.line}: {hit.text}" for hit in shown))
        return 0
    if "--lower" in sys.argv[1:]:
        path.write_text(lowered(text, map(len, hits)), encoding="utf-8")
    lines, good = verdict(phrases, hits)
    print("\n".join(lines))
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
