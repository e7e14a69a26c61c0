# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of rsync that a user may add, and the reasons against the others. Pure.

``rsync_opts`` stands at the end of rsync's argv. The table below has a verdict for every option of rsync 3.5:

- ``COMPARED``: what arrives is what the source has, so the comparison after the transfer holds, and so do the counts.
- ``UNCOMPARED``: what arrives differs from the source on purpose. The comparison would call the transfer failed (or, of
  holes, see nothing), so it is refused before anything runs, unless ``verify: none`` says that there is none.
- ``REFUSED``: it would undo what the transfer promises (what it counts, where it writes, what it may delete), or the
  task has an option for it.

What is not in the table is refused.
"""

from __future__ import annotations

import re
from typing import Iterable, Iterator, NamedTuple

from ..._core.errors import TransferFailed

COMPARED, UNCOMPARED, REFUSED = "compared", "uncompared", "refused"


class Value(NamedTuple):
    """What may stand behind the equals sign."""

    pattern: str
    words: str  # what a message calls it


class Rule(NamedTuple):
    """The verdict on one option."""

    use: str
    reason: str
    value: Value | None = None
    own: str = ""  # the option of the task that does it


_NUMBER = Value(r"\d+", "a number")
_SIZE = Value(r"\d+(?:\.\d+)?(?:[kKmMgGtTpP](?:i?[bB])?|[bB])?(?:[+-]1)?", "a size such as 100M")
_TEXT = Value(r"[^/\x00-\x1f\x7f]+", "a text without slashes")


def _compared(reason: str, value: Value | None = None) -> Rule:
    return Rule(COMPARED, reason, value)


def _uncompared(reason: str, value: Value | None = None) -> Rule:
    return Rule(UNCOMPARED, reason, value)


def _refused(reason: str) -> Rule:
    return Rule(REFUSED, reason)


def _own(option: str) -> Rule:
    return Rule(REFUSED, "", None, option)


_PATHS = "which paths are sent is decided by src, filter, include and exclude"
_COUNTS = "the transfer reads rsync's output to account for every entry"
_RUNS = "what runs on the hosts is decided by method"
_LINE = "the connection belongs to the transfer; see ssh_ciphers, port and connect"
_GUARD = "it turns off a check that protects this host from the other one"
_SOURCE = "the source is left as it is"
_ANYWAY = "the transfer does that in any case"
_TEMPORARY = "temporary files have a folder of their own below the destination"
_OLDER = "it needs a path at the destination; for older copies transfer to a new directory with link_dest"
_APPEND = (
    "a changed file that is as long as the new one or longer would keep its old contents and get the new time, so that "
    "nothing would ever notice; inplace: true sends little of a file that has grown, and misses no change"
)
_STOPPED = "a transfer that stops by the clock has not accounted for every entry"
_BATCH = "it reads or writes a file that the transfer does not know"
_ARGUMENTS = "the peer checks the arguments, and must see them as they are"

_TABLE: tuple[tuple[str, Rule], ...] = (
    # How the bytes are sent: what arrives is the same.
    ("--fuzzy -y", _compared("it only finds another basis for the parts that differ")),
    ("--whole-file -W", _compared("it only sends more")),
    ("--no-whole-file --no-W", _compared("it only sends less")),
    ("--block-size -B", _compared("it only decides what is sent of a changed file", _NUMBER)),
    ("--checksum-seed", _compared("it only changes the checksums on the way", _NUMBER)),
    (
        "--checksum-choice --cc",
        _compared(
            "it only changes the checksums on the way",
            Value(r"(?:auto|xxh128|xxh3|xxh64|xxhash|md5|md4|sha1)(?:,(?!none)\w+)?", "an algorithm other than none"),
        ),
    ),
    ("--compress-threads --zt", _compared("it only decides how fast it compresses", _NUMBER)),
    (
        "--skip-compress",
        _compared("it only decides what is compressed on the way", Value(r"[\w.\[\]/]+", "suffixes such as gz/jpg")),
    ),
    ("--inc-recursive --i-r", _compared("it only decides when the source is listed")),
    ("--no-inc-recursive --no-i-r", _compared("it only decides when the source is listed")),
    ("--max-alloc", _compared("it only limits memory", _SIZE)),
    ("--outbuf", _compared("it only decides when output is written", Value(r"[NLBnlb]", "N, L or B"))),
    ("--sockopts", _compared("it only concerns the socket", Value(r"[\w=,]+", "a list such as SO_SNDBUF=1048576"))),
    ("--ipv4 -4", _compared("it only concerns the socket")),
    ("--ipv6 -6", _compared("it only concerns the socket")),
    (
        "--protocol",
        _compared("these keep what is compared", Value(r"3[12]", "31 or 32: older ones cut times to whole seconds")),
    ),
    ("--fsync", _compared("it only decides how files are written")),
    ("--open-noatime", _compared("it only leaves the source's access times alone")),
    # What is set of an entry, beside what the comparison looks at.
    ("--atimes -U", _compared("access times are not compared")),
    ("--executability -E", _compared("modes are compared only where they are preserved")),
    ("--super", _compared("what the user may not set is an error of its path")),
    # What is taken for equal.
    ("--ignore-times -I", _compared("it only sends more")),
    ("--size-only", _compared("times are set all the same; contents of the same size count as equal, as asked for")),
    # What arrives differs from the source on purpose.
    ("--copy-links -L", _uncompared("files and directories arrive in place of symbolic links")),
    ("--copy-unsafe-links", _uncompared("files and directories arrive in place of symbolic links")),
    ("--copy-dirlinks -k", _uncompared("directories arrive in place of symbolic links")),
    ("--safe-links", _uncompared("symbolic links are left out")),
    ("--no-links --no-l", _uncompared("symbolic links are left out")),
    ("--munge-links", _uncompared("the targets of symbolic links are changed on the connecting side")),
    ("--existing --ignore-non-existing", _uncompared("new files are left out")),
    ("--ignore-existing", _uncompared("files that are there are left as they are")),
    ("--update -u", _uncompared("files that are newer at the destination are left as they are")),
    ("--max-size", _uncompared("large files are left out", _SIZE)),
    ("--min-size", _uncompared("small files are left out", _SIZE)),
    ("--prune-empty-dirs -m", _uncompared("empty directories are left out")),
    ("--cvs-exclude -C", _uncompared("what CVS would ignore is left out; exclude can name it")),
    ("--modify-window -@", _uncompared("times that differ a little are left as they are", Value(r"-?\d+", "a number"))),
    ("--omit-dir-times -O", _uncompared("directories get other times")),
    ("--omit-link-times -J", _uncompared("symbolic links get other times")),
    ("--chmod", _uncompared("modes are changed", _TEXT)),
    ("--chown", _uncompared("owners are changed", _TEXT)),
    ("--usermap", _uncompared("owners are changed", _TEXT)),
    ("--groupmap", _uncompared("groups are changed", _TEXT)),
    ("--iconv", _uncompared("names are changed", _TEXT)),
    ("--fake-super", _uncompared("owners and modes arrive in an extended attribute, or come from one")),
    ("--no-perms --no-p", _uncompared("modes are not kept; leave permissions out of preserve instead")),
    ("--no-owner --no-o", _uncompared("owners are not kept; leave owner out of preserve instead")),
    ("--no-group --no-g", _uncompared("groups are not kept; leave group out of preserve instead")),
    ("--no-times --no-t", _uncompared("times are not kept; leave times out of preserve instead")),
    ("--no-devices", _uncompared("devices are left out; leave devices out of preserve instead")),
    ("--no-specials", _uncompared("special files are left out; leave devices out of preserve instead")),
    ("--no-D", _uncompared("devices are left out; leave devices out of preserve instead")),
    ("--no-acls --no-A", _uncompared("ACLs are not kept; leave acls out of preserve instead")),
    ("--no-xattrs --no-X", _uncompared("extended attributes are not kept; leave xattrs out of preserve instead")),
    ("--no-hard-links --no-H", _uncompared("hard links become copies; leave hardlinks out of preserve instead")),
    ("--preallocate", _uncompared("holes are allocated")),
    ("--no-sparse --no-S", _uncompared("holes become zeros; leave sparse out of preserve instead")),
    # What the task has an option for.
    ("--archive -a", _own("preserve")),
    ("--perms -p --owner -o --group -g --times -t", _own("preserve")),
    ("--devices --specials -D --drop-D --acls -A --xattrs -X --hard-links -H --sparse -S", _own("preserve")),
    ("--numeric-ids", _own("numeric_ids")),
    ("--one-file-system -x", _own("one_file_system")),
    ("--delete --del --delete-before --delete-during --delete-delay --delete-after --force", _own("delete")),
    ("--max-delete", _own("max_delete")),
    ("--checksum -c", _own("checksum")),
    ("--inplace", _own("inplace")),
    ("--compress -z --compress-choice --zc --new-compress --old-compress", _own("compress")),
    ("--compress-level --zl", _own("compress_level")),
    ("--bwlimit", _own("bwlimit")),
    ("--timeout --contimeout", _own("timeout")),
    ("--exclude --exclude-from", _own("exclude")),
    ("--include --include-from", _own("include")),
    ("--filter -f -F", _own("filter")),
    ("--link-dest", _own("link_dest")),
    ("--partial --partial-dir -P", _own("partial")),
    ("--dry-run -n", _own("check mode")),
    ("--port", _own("port")),
    ("--password-file", _own("rsyncd_password")),
    ("--copy-as", _own("become")),
    # What would undo what the transfer promises.
    ("--recursive -r --links -l --mkpath --no-motd", _refused(_ANYWAY)),
    (
        "--dirs -d --old-dirs --old-d --no-recursive --no-r --relative -R --implied-dirs --no-implied-dirs",
        _refused(_PATHS),
    ),
    ("--files-from --from0 -0 --ignore-missing-args --delete-missing-args --list-only", _refused(_PATHS)),
    (
        "--delete-excluded",
        _refused("it deletes without delete and past max_delete; a filter rule `H pattern` hides without protecting"),
    ),
    ("--remove-source-files --remove-sent-files", _refused(_SOURCE + " until the transfer is verified")),
    ("--append --append-verify", _refused(_APPEND)),
    (
        "--keep-dirlinks -K",
        _refused("it writes and deletes outside of dest, wherever symbolic links at the destination lead"),
    ),
    (
        "--write-devices --copy-devices",
        _refused("a device is kept as a device; what is behind it is no part of the tree"),
    ),
    ("--crtimes -N", _refused("neither Linux nor FreeBSD lets a program set the time of creation")),
    ("--ignore-errors", _refused("what could not be read would be deleted; nothing is deleted after a read error")),
    ("--delay-updates", _refused("each file is put in place when it is complete; files of the same name would meet")),
    ("--temp-dir -T", _refused(_TEMPORARY)),
    ("--backup -b --backup-dir --suffix", _refused(_OLDER)),
    ("--compare-dest --copy-dest", _refused(_OLDER)),
    ("--stop-after --stop-at --time-limit", _refused(_STOPPED)),
    ("--write-batch --only-write-batch --read-batch --early-input", _refused(_BATCH)),
    ("--trust-sender --insecure-links --confine-root --old-args", _refused(_GUARD)),
    ("--secluded-args --protect-args -s --no-secluded-args --no-protect-args --no-s", _refused(_ARGUMENTS)),
    ("--remote-option -M", _refused("it would go past the checks of the peer")),
    ("--daemon --server --sender --rsync-path --config --dparam --no-detach", _refused(_RUNS)),
    ("--rsh -e --blocking-io --address", _refused(_LINE)),
    ("--out-format --log-format --log-file --log-file-format --info --debug --stats --progress", _refused(_COUNTS)),
    ("--verbose -v --quiet -q --itemize-changes -i --human-readable -h --no-human-readable --no-h", _refused(_COUNTS)),
    ("--8-bit-output -8 --stderr --msgs2stderr --no-msgs2stderr --version -V --help", _refused(_COUNTS)),
)
KNOWN = {spelling: rule for spellings, rule in _TABLE for spelling in spellings.split()}
_LONG = {spelling: spellings.split()[0] for spellings, _rule in _TABLE for spelling in spellings.split()}
_FIRST_PASS = ("--ignore-times", "--atimes")  # a later pass would send all once more, or find what reading has changed


def check_user_options(options: Iterable[str], compared: bool = False) -> list[str]:
    """Return the options, each as one word with its long name.

    ``compared``: the trees are compared after the transfer (``verify`` is not ``none``). Raises TransferFailed at the
    first option that may not be used.
    """
    return [_checked(option, *parts, compared) for option in options for parts in _split(option)]


def of_later_pass(options: Iterable[str]) -> list[str]:
    """Return those of checked options that hold where rsync looks at the whole tree once more."""
    return [option for option in options if option not in _FIRST_PASS]


def _split(option: str) -> Iterator[tuple[str, str | None]]:
    """Take a word apart: yield each option in it as it is spelled, and its value (None: there is none)."""
    if option.startswith("--") or len(option) < 2 or not option.startswith("-"):
        name, equals, value = option.partition("=")
        yield name, value if equals else None
        return
    for at, letter in enumerate(option[1:], start=2):
        rule = KNOWN.get(f"-{letter}")
        if rule is not None and rule.value is not None:
            value = option[at:]
            yield f"-{letter}", value[1:] if value.startswith("=") else value or None
            return
        yield f"-{letter}", None
        if rule is None or rule.use == REFUSED:
            return


def _checked(option: str, name: str, value: str | None, compared: bool) -> str:
    rule = KNOWN.get(name) or _unknown(name)
    if rule.own:
        raise TransferFailed(f"rsync_opts: {option} has a word of its own in this task: use {rule.own}")
    if rule.use == REFUSED:
        raise TransferFailed(f"rsync_opts: {option} cannot be used: {rule.reason}. Leave it out")
    long = _LONG[name]
    if rule.value is None and value is not None:
        raise TransferFailed(f"rsync_opts: {name} takes no value: write {name} alone")
    if rule.value is not None and value is None:
        raise TransferFailed(f"rsync_opts: {name} needs its value in the same word: write {long}=VALUE")
    if rule.value is not None and not re.fullmatch(rule.value.pattern, value or ""):
        raise TransferFailed(f"rsync_opts: {option} cannot be used: {name} takes {rule.value.words}")
    if rule.use == UNCOMPARED and compared:
        raise TransferFailed(
            f"rsync_opts: {option} needs verify: none, because the destination is not the same as the source then "
            f"({rule.reason}). Set that, so that nothing is compared after the transfer, or leave {name} out"
        )
    return long if rule.value is None else f"{long}={value}"


def _unknown(name: str) -> Rule:
    """Judge an option without a verdict; what turns off one that has a verdict is refused for the same reason."""
    if name.startswith("--no-"):
        other = KNOWN.get("--" + name[5:]) or KNOWN.get("-" + name[5:])
        if other is not None:
            return other if other.use == REFUSED else _refused("nothing sets what it turns off")
    return _refused("it is not among the options known to be safe here")
