# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands that an honest rsync asks its server for under a plan, and when another one may be served as well."""

from __future__ import annotations

import functools
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Iterable, NamedTuple, Protocol, Sequence

from ansible_collections.longhaul.fleet.plugins.module_utils._core.subprocesses import environment
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.argv import Far, RsyncRun, build_argv
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.server_command import user_variables
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync.user_options import KNOWN, REFUSED
from ansible_collections.longhaul.fleet.tests.support.rsync_pair import ALL, settings

OWNERS = {"users": [[1001, 1002], [1002, 1001]], "groups": [[5, 6]]}
LINKED = {"link_dest": ["/backup/old one", "/backup/2"]}
PLANS = [
    {},
    {"preserve": []},
    *({"preserve": [word]} for word in ALL),
    *({"preserve": [other for other in ALL if other != word]} for word in ALL),
    {"preserve": ["specials"]},
    {"preserve": [*(word for word in ALL if word != "devices"), "specials"], "streams": 2, "delete": True},
    {"check": True},
    {"check": True, "delete": True, "max_delete": 7},
    {"delete": True},
    {"delete": True, "max_delete": 0},
    {"delete": True, "max_delete": 7, "streams": 2},
    {"streams": 2},
    {"streams": 2, "bwlimit": 10_000_000, **LINKED},
    {"only": "a file's name [1]"},
    {"only": "b", "check": True},
    {"only": "b", "delete": True, "streams": 4},
    {"checksum": True},
    {"numeric_ids": False},
    {"owner_map": OWNERS},
    {"owner_map": OWNERS, "numeric_ids": False},
    {"owner_map": OWNERS, "streams": 2, "delete": True},
    {"owner_map": OWNERS, "preserve": ["group", "acls"]},
    {"owner_map": {"groups": OWNERS["groups"]}, "only": "b"},
    {"one_file_system": True},
    {"partial": False},
    {"inplace": True},
    {"inplace": True, "preserve": ["times"]},
    {"delta": "none"},
    {"delta": "none", "inplace": True},
    {"timeout": 0},
    {"bwlimit": 5000},
    *(
        {"compress": {"algorithm": name, "level": level}}
        for name in ("zlib", "zlibx", "zstd", "lz4")
        for level in (None, 3)
    ),
    {"rules": ["- *.tmp", "P /keep"]},
    LINKED,
    {**LINKED, "delete": True, "max_delete": 3},
]
VALUES = {
    "--block-size": "4096",
    "--checksum-seed": "7",
    "--checksum-choice": "xxh64",
    "--compress-threads": "2",
    "--skip-compress": "gz/jpg",
    "--max-alloc": "2G",
    "--outbuf": "L",
    "--sockopts": "SO_SNDBUF=1048576",
    "--protocol": "31",
    "--max-size": "10M",
    "--min-size": "1.5KB-1",
    "--modify-window": "2",
    "--chmod": "D755,F644",
    "--chown": "root:daemon",
    "--usermap": "*:root",
    "--groupmap": "*:root",
    "--iconv": "utf8,iso88591",
}
USER = [
    f"{name}={VALUES[name]}" if rule.value else name
    for name, rule in sorted(KNOWN.items())
    if name.startswith("--") and rule.use != REFUSED and (not rule.value or name in VALUES)
]


@functools.lru_cache(maxsize=None)
def _sent(argv: tuple[str, ...]) -> str:
    """Return what the real rsync sends to a remote shell."""
    with tempfile.TemporaryDirectory() as folder:
        shell = Path(folder, "shell.py")
        said = Path(folder, "said")
        shell.write_text(f"import json, sys; open({str(said)!r}, 'w').write(json.dumps(sys.argv[2:]))")
        words = [word.replace("SHELL", f"{sys.executable} -I -S {shell}") for word in argv]
        subprocess.run(words, capture_output=True, check=False, env=environment(user_variables()))
        assert said.exists(), subprocess.run(words, capture_output=True, check=False).stderr
        return " ".join(json.loads(said.read_text()))


def sent(side: str, run: RsyncRun, **changes: object) -> str:
    """Return the command that an honest driving end asks the serving end (``side``) for."""
    other = {"source": "dest", "dest": "source"}[side]
    argv = build_argv(settings(**changes), other, b"/tmp", Far(address="peer:./", shell="SHELL"), run)
    return _sent(tuple(argv))


def runs(side: str, plan: dict, names: str) -> list[RsyncRun]:
    """Return the runs that make up a transfer, as rsync_passes makes them."""
    far = side == "source"
    delete = bool(plan.get("delete")) and plan.get("only") is None
    whole = RsyncRun(files_from=":/longhaul/list/only" if far else names) if plan.get("only") else RsyncRun()
    if plan.get("check"):
        return [RsyncRun(**dict(vars(whole), dry=True, delete=delete))]
    found = [whole]
    if plan.get("streams", 1) > 1 and plan.get("only") is None:
        folder = ":/longhaul/list/{}" if far else names
        found += [RsyncRun(files_from=folder.format("directories"), directories_only=True), RsyncRun(again=True)]
        found += [
            RsyncRun(files_from=folder.format("shard-1"), shares=shares) for shares in range(1, plan["streams"] + 1)
        ]
    if delete:
        limit = plan.get("max_delete")
        found += [RsyncRun(delete=True, dry=True, again=True), RsyncRun(delete=True, max_delete=limit, again=True)]
    return found


class Command(NamedTuple):
    """What a command asks its server for: letters, words, and folders with their options."""

    letters: Counter[str]
    words: Counter[str]
    folders: Counter[tuple[str, str]]


_WITH_FOLDER = ("--temp-dir", "--partial-dir", "--link-dest", "--files-from")


def parse(words: Iterable[str]) -> Command:
    """Read the options of a server (what stands between ``--server`` and the root), as they go through a shell."""
    found = Command(Counter(), Counter(), Counter())
    waiting = iter(shlex.split(" ".join(words)))
    for word in waiting:
        name, equals, value = word.partition("=")
        if name in _WITH_FOLDER:
            found.folders[name, value if equals else next(waiting, "")] += 1
        elif word.startswith("-") and word[1:2] not in ("-", "B", "@", "M"):
            found.letters.update(re.sub(r"e\d*\.[\d.]*[A-Za-z]*$", "", word[1:]))
        else:
            found.words[word] += 1
    return found


def options_of(command: str) -> list[str]:
    """Return the options of a command as rsync sends it."""
    words = command.split()
    return words[3 if words[2] == "--sender" else 2 : -2]


# What limits a server: who leaves it out gets more than the plan says.
_LIMITING = re.compile(
    r"--(?:max-delete|safe-links|existing|ignore-existing|usermap|groupmap|max-size|min-size|from0)\b"
)
# What changes nothing that the plan protects: how it reports, and that it only tries.
_HARMLESS = re.compile(r"--(?:stats|log-format=(?:%i|%i%I|X)|no-implied-dirs|bwlimit=\d+|timeout=\d+)")


def why_not(asked: Command, honest: Command, side: str) -> str:
    """Return why a server (``side``) may not be given this in place of that; empty if it may."""
    is_dry = asked.letters["n"] > 0
    more = asked.letters - honest.letters - Counter("n")
    words = [word for word in asked.words if word not in honest.words and not _HARMLESS.fullmatch(word)]
    folders = asked.folders.keys() - honest.folders.keys()
    lacking = [letter for letter in ("xndR" + "u" * (side == "dest")) if honest.letters[letter] > asked.letters[letter]]
    lacking += [word for word in honest.words if _LIMITING.match(word) and word not in asked.words]
    lacking += [option for option, _token in honest.folders.keys() - asked.folders.keys() if option == "--files-from"]
    if is_dry:
        lacking = [one for one in lacking if not one.startswith("--max-delete") and one not in "xu"]
    found = {"more letters": sorted(more), "more words": words, "more folders": sorted(folders), "left out": lacking}
    return "; ".join(f"{what}: {which}" for what, which in found.items() if which)


# What no plan of these leads to, or only another one
_EVIL = (
    *("-K", "-L", "-k", "-b", "--delete", "--delete-excluded", "--delete-after", "--force", "--inplace", "--append"),
    *("--copy-unsafe-links", "--super", "--max-alloc=0", "--max-delete=1000", "--usermap=*:root", "--no-r", "-y"),
    *("--remove-source-files", "--write-devices", "--copy-devices", "--log-file=/etc/x", "--daemon", "--config=/x"),
    *("--files-from=-", "--files-from=/etc/shadow", "--temp-dir=/etc", "--partial-dir=..", "--link-dest=/etc"),
    *("--backup-dir=/x", "--fake-super", "--sender", "--existing", "--size-only", "--specials", "-@-1", "-B700", "-s"),
)
_LETTERS = "logDtpAXHSrdRxcnuIWyzLkKmOJECUbN"


class Chance(Protocol):
    """As much of random.Random as is needed here."""

    def randrange(self, stop: int, /) -> int:
        """Return a random integer in [0, bound)."""

    def choice(self, values: Sequence[Any], /) -> Any:
        """Return one of these."""


def mutated(commands: Sequence[list[str]], chance: Chance) -> list[str]:
    """Return the options of one of these commands with some changes."""
    options = list(chance.choice(commands))
    for _change in range(1 + chance.randrange(4)):
        place = chance.randrange(len(options)) if options else 0
        what = chance.randrange(7)
        if what == 0 and options:
            del options[place]
        elif what == 1:
            options.insert(place, chance.choice(_EVIL))
        elif what == 2 and options:
            options.insert(place, options[chance.randrange(len(options))])
        elif what == 3 and options:
            word = options.pop(place)
            options.insert(chance.randrange(len(options) + 1), word)
        elif what == 4 and options and options[place][1:2] != "-":
            word, at = options[place], 1 + chance.randrange(max(1, len(options[place].partition("e")[0]) - 1))
            options[place] = word[:at] + chance.choice(("", chance.choice(_LETTERS))) + word[at + chance.randrange(2) :]
        elif what == 5 and chance.choice(commands):
            options.insert(place, chance.choice(chance.choice(commands)))
        elif options:
            word = options[place]
            digits = [at for at, letter in enumerate(word) if letter.isdigit()]
            if digits:
                at = chance.choice(digits)
                options[place] = word[:at] + str(chance.randrange(10)) + word[at + 1 :]
    return options
