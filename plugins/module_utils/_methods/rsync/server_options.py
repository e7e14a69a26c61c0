# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that a server of rsync gets under a plan. Pure.

Both ends have the same plan. The driving end's ``build_argv`` makes the command of its rsync from it, and rsync makes
the server's from that (``server_options()`` in its options.c, the same from 3.1 to 3.5 for what is used here). The
serving end works out from its own copy which options these can be, and takes no other: a host that was not to delete,
to follow symlinks or to set owners cannot ask for that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterable

from ..._core.settings import Settings
from .argv import (
    FAR_LINK,
    FAR_LIST,
    FAR_PARTIAL,
    FAR_TMP,
    bandwidth_options,
    compares_contents,
    keeps_numbers,
    owner_maps,
    timeout_options,
    window_options,
)
from .user_options import check_user_options

# What an rsync may tell of itself behind the "e" of its short options: the protocol, and what it can.
_BUNDLE = re.compile(r"^-(?!$)(?P<letters>[A-Za-z]*?)(?:e\d*\.[\d.]*[A-Za-z]*)?$")
_LIST_OF_PEER = "--files-from=-"
_FOLDERS = ("--temp-dir", "--partial-dir", "--link-dest", "--files-from")
_PRESERVED = {
    "owner": "o",
    "group": "g",
    "permissions": "p",
    "times": "t",
    "acls": "Ap",  # ACLs hold the permissions, too
    "xattrs": "X",
    "hardlinks": "H",
    "devices": "D",
    "specials": "",  # a word, below
    "sparse": "S",
}
_NO = {
    "--no-perms": "p",
    "--no-owner": "o",
    "--no-group": "g",
    "--no-times": "t",
    "--no-devices": "D",
    "--no-D": "D",
    "--no-acls": "A",
    "--no-xattrs": "X",
    "--no-links": "l",
    "--no-hard-links": "H",
    "--no-sparse": "S",
    "--no-whole-file": "W",
}
# Options of the user, by the side that is served: what its server gets for them.
_LETTERS = {
    "--update": ("u", "u"),
    "--ignore-times": ("I", "I"),
    "--atimes": ("U", "U"),
    "--cvs-exclude": ("C", "C"),
    "--whole-file": ("W", "W"),
    "--copy-links": ("L", ""),
    "--copy-dirlinks": ("k", ""),
    "--prune-empty-dirs": ("", "m"),
    "--omit-dir-times": ("", "O"),
    "--omit-link-times": ("", "J"),
    "--fuzzy": ("", "yy"),
    "--executability": ("", "E"),
}
_WORDS = {
    "--copy-unsafe-links": ("--copy-unsafe-links", "--copy-unsafe-links"),
    "--safe-links": ("--safe-links", "--safe-links"),
    "--open-noatime": ("--open-noatime", "--open-noatime"),
    "--existing": ("", "--existing"),
    "--ignore-existing": ("", "--ignore-existing"),
    "--size-only": ("", "--size-only"),
    "--super": ("", "--super"),
    "--fsync": ("", "--fsync"),
    "--preallocate": ("", "--preallocate"),
    "--no-specials": ("--no-specials", "--no-specials"),
    "--no-devices": ("--specials", "--specials"),
}
_VALUES = {  # the same at the server, with the value of the user
    "--checksum-choice": ("source", "dest"),
    "--max-alloc": ("source", "dest"),
    "--checksum-seed": ("source", "dest"),
    "--skip-compress": ("source",),
}
# To leave one of these out would widen the plan
_NARROWING = frozenset(["--safe-links", "--existing", "--ignore-existing"])
_LIMITS = frozenset(["--usermap", "--groupmap", "--max-size", "--min-size"])  # of a destination, with a value


_SIZE = re.compile(r"(?P<number>[\d.]+)(?P<unit>[kmgtp]?)(?P<base>(?:i?b)?)(?P<more>[+-]1)?", re.IGNORECASE)


class NotPlanned(Exception):
    """An option is none that this plan leads to. The text says which."""


@dataclass
class OptionPolicy:
    """The options that one server may have, and those that it must have."""

    letters: str = ""
    must: str = ""
    words: set[str] = field(default_factory=set)
    must_words: set[str] = field(default_factory=set)
    must_one: list[set[str]] = field(default_factory=list)  # of each set
    folders: set[tuple[str, str]] = field(default_factory=set)  # option, token


def check_options(
    options: Iterable[str], side: str, settings: Settings, confined: bool = False
) -> list[tuple[str, str]]:
    """Return the options of a server, each as its word and, where that names a folder, the folder's token.

    ``side`` is what the serving end is. Where rsync is ``confined`` to the root, the peer may send the list of names
    itself. Raises NotPlanned.
    """
    letters, words = "", []
    folders: list[tuple[str, str]] = []
    checked: list[tuple[str, str]] = []
    waiting = iter(options)
    for option in waiting:
        name, equals, value = option.partition("=")
        if name in _FOLDERS and option != _LIST_OF_PEER:
            folders.append((name, value if equals else next(waiting, "")))
            checked.append(folders[-1])
            continue
        bundle = _BUNDLE.match(option)
        if bundle and not re.match(r"-(?:B\d|@|e[^\d.])", option):
            letters += bundle.group("letters")
        else:
            words.append(option)
        checked.append((option, ""))
    tokens = [token for _name, token in folders]
    _compare(letters, words, folders, _allowed(side, settings, letters, words, tokens, confined))
    return checked


def _compare(letters: str, words: list[str], folders: list[tuple[str, str]], allowed: OptionPolicy) -> None:
    for letter in sorted(set(letters)):
        if letters.count(letter) > allowed.letters.count(letter):
            raise NotPlanned(f"the plan of this transfer has no option -{letter}")
    for option, token in folders:
        if (option, token) not in allowed.folders:
            raise NotPlanned(f"the folder {token!r} for {option} is none of this transfer")
    for word in words:
        if word not in allowed.words.union(allowed.must_words, *allowed.must_one):
            raise NotPlanned(f"the plan of this transfer has no option {word!r}")
    lacking = [f"-{letter}" for letter in allowed.must if letter not in letters]
    lacking += sorted(allowed.must_words - set(words))
    lacking += [min(either) for either in allowed.must_one if not either & set(words)]
    if lacking:
        raise NotPlanned(f"the plan of this transfer has {lacking[0]}, and the command has not")


def _allowed(
    side: str, settings: Settings, letters: str, words: list[str], tokens: list[str], confined: bool
) -> OptionPolicy:
    """Work out what may stand in the command; what it says of itself decides which of the plan's runs it is."""
    user = check_user_options(settings["rsync_opts"])
    dest = side == "dest"
    allowed = OptionPolicy(letters="l" + "".join(_PRESERVED[word] for word in settings["preserve"]))
    allowed.letters += ("c" if compares_contents(settings) else "") + ("x" if settings["one_file_system"] else "")
    allowed.must += "x" if settings["one_file_system"] else ""  # or another file system would be read, or deleted from
    allowed.letters += "W" if settings.get("delta") == "none" else ""
    allowed.letters += "n"
    allowed.must += "n" if settings["check"] else ""
    _runs(allowed, dest, settings, "r" in letters, confined)
    _values(allowed, settings)
    if dest:
        _writing(allowed, settings, letters, deletes="--delete-after" in words)
    _user_options(allowed, user, dest, settings)
    allowed.letters = "".join(
        letter * min(allowed.letters.count(letter), 2 if letter == "y" else 1)
        for letter in sorted(set(allowed.letters))
    )
    if "--files-from" in [option for option, _token in allowed.folders] and "r" not in letters and not tokens:
        raise NotPlanned("the plan of this transfer has a list of names, and the command has not")
    return allowed


def _runs(allowed: OptionPolicy, dest: bool, settings: Settings, recursive: bool, confined: bool) -> None:
    """Allow the runs of the transfer: over the whole tree, over lists of names."""
    if recursive:
        if settings["only"] is not None:
            raise NotPlanned("a single file is to be transferred, and the command asks for a tree")
        allowed.letters += "r"
        return
    if settings["only"] is None and (settings["streams"] <= 1 or settings["check"]):
        raise NotPlanned("the plan of this transfer has no list of names")
    allowed.letters, allowed.must = allowed.letters + "dR", allowed.must + "dR"
    allowed.letters += "O" if dest else ""
    allowed.words.add("--no-implied-dirs")
    if not dest and confined:
        allowed.must_words |= {_LIST_OF_PEER, "--from0"}
    elif not dest:
        names = ["only"] if settings["only"] is not None else ["directories"]
        names += [f"shard-{number}" for number in range(settings["streams"])] if settings["only"] is None else []
        allowed.folders |= {("--files-from", f"{FAR_LIST}/{name}") for name in names}
        allowed.must_words |= {"--from0"}


def _values(allowed: OptionPolicy, settings: Settings) -> None:
    """Allow options for both sides: identities, special files, limits, compression."""
    allowed.words |= {"--numeric-ids"} if keeps_numbers(settings) else set()
    allowed.words |= {"--specials"} if "specials" in settings["preserve"] else set()
    allowed.words |= set(timeout_options(settings["timeout"], False))
    for shares in range(1, max(1, settings["streams"]) + 1):
        allowed.words |= set(bandwidth_options(settings["bwlimit"], shares))
    algorithm, level = settings["compress"].get("algorithm"), settings["compress"].get("level")
    if algorithm not in (None, "none"):
        allowed.letters += "z" if algorithm == "zlib" else ""
        allowed.words |= {f"--compress-choice={algorithm}"}
        allowed.words |= {"zlib": {"--old-compress"}, "zlibx": {"--new-compress"}}.get(algorithm, set())
        allowed.words |= {f"--compress-level={level}"} if level is not None else set()
    if settings.get("inplace") and not settings["link_dest"]:  # what is linked would change in the older copies, too
        allowed.words |= {"--inplace"}


def _writing(allowed: OptionPolicy, settings: Settings, letters: str, deletes: bool) -> None:
    """Allow options for a destination: what it deletes, where it stages, how it reports."""
    dry, recursive = "n" in letters, "r" in letters
    allowed.words |= {"--stats", "--log-format=%i", "--log-format=%i%I", "--log-format=X"}
    # Without them files would go to others than the plan says.
    allowed.must_words |= {f"{option}={pairs}" for option, pairs in owner_maps(settings).items()}
    if "times" in settings["preserve"]:
        allowed.words |= {option.replace("--modify-window=-", "-@-") for option in window_options(settings)}
    if settings.get("inplace") and "sparse" in settings["preserve"]:
        allowed.words.add("--no-W")
    if settings["partial"] and not dry and not settings.get("inplace"):
        allowed.folders |= {("--temp-dir", FAR_TMP), ("--partial-dir", FAR_PARTIAL)}
    allowed.folders |= {("--link-dest", f"{FAR_LINK}/{number}") for number in range(len(settings["link_dest"]))}
    if deletes:
        if not settings["delete"] or settings["only"] is not None:
            raise NotPlanned("this transfer does not delete, and the command does")
        if not recursive:
            raise NotPlanned("only the run over the whole tree deletes, and the command has a list of names")
        allowed.words |= {"--delete-after", "--force"}
        if "times" not in settings["preserve"] and not settings["checksum"]:
            allowed.words.add("--size-only")  # of what the run before has sent
        if settings["max_delete"] is not None:
            limit = f"--max-delete={settings['max_delete'] or -1}"  # as rsync says none
            (allowed.words if dry else allowed.must_words).add(limit)


def _user_options(allowed: OptionPolicy, user: list[str], dest: bool, settings: Settings) -> None:
    """Add what the user's own options (``rsync_opts``, checked) come to at the server."""
    at = int(dest)
    for option in user:
        name, _equals, value = option.partition("=")
        allowed.letters = "".join(letter for letter in allowed.letters if letter not in _NO.get(name, ""))
        allowed.letters += _LETTERS.get(name, ("", ""))[at]
        word = _WORDS.get(name, ("", ""))[at]
        if word:
            (allowed.must_words if word in _NARROWING else allowed.words).add(word)
        if ("source", "dest")[at] in _VALUES.get(name, ()):
            allowed.words.add(option)
        elif name in _LIMITS and dest:  # sizes also as newer versions say them
            allowed.must_one.append({option} | ({f"{name}={_in_bytes(value)}"} if name.endswith("-size") else set()))
        elif name == "--block-size":
            allowed.words.add(f"-B{int(value)}")
        elif name == "--modify-window" and dest:
            allowed.words -= {"-@-1"}
            allowed.words.add(f"-@{value}" if value.startswith("-") else option)
        elif name == "--iconv":
            allowed.words.add(f"--iconv={value.partition(',')[2] or value}")
        elif name == "--chown" and dest:
            owner, _colon, group = value.partition(":")
            allowed.must_words |= {f"--usermap=*:{owner}"} if owner else set()
            allowed.must_words |= {f"--groupmap=*:{group}"} if group else set()
        if name in ("--usermap", "--chown"):
            allowed.letters += "o"
        if name in ("--groupmap", "--chown"):
            allowed.letters += "g"
    if "--no-D" in user or "--no-specials" in user:
        allowed.words.discard("--specials")
    if dest and "--update" in user and not settings["check"]:
        allowed.must += "u"


def _in_bytes(size: str) -> int:
    """Read a size as rsync does: 1K is 1024, 1KB is 1000."""
    found = _SIZE.fullmatch(size)
    if found is None:
        return -1
    base = 1000 if found["base"].lower() == "b" and found["unit"] else 1024
    power = " kmgtp".index(found["unit"].lower() or " ")
    return int(float(found["number"]) * base**power) + int(found["more"] or 0)
