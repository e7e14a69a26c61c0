# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which options of rsync a user may add, and why not the others. Private to the collection.

``rsync_opts`` stands at the end of rsync's argv. What would undo the transfer's promises (what it counts, where it
writes, what it may delete) is refused before anything runs, and so is what is not known here.
"""

from __future__ import annotations

from .._job.context import TransferFailed


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PLAIN = _words(
    "--fuzzy --preallocate --whole-file --no-whole-file --size-only --ignore-times --update --existing "
    "--ignore-existing --ignore-non-existing --omit-dir-times --omit-link-times --copy-links --copy-unsafe-links "
    "--safe-links --copy-dirlinks --keep-dirlinks --munge-links --fsync --atimes --crtimes --open-noatime --fake-super "
    "--super --prune-empty-dirs --delete-excluded --executability --ipv4 --ipv6 --trust-sender --inc-recursive "
    "--no-inc-recursive --cvs-exclude --append-verify --append"
)
_WITH_VALUE = _words(
    "--block-size --max-size --min-size --skip-compress --chmod --chown --usermap --groupmap --modify-window "
    "--checksum-choice --compress-threads --max-alloc --sockopts --outbuf --iconv --stop-after --stop-at "
    "--checksum-seed --protocol"
)
_NO = _words("perms owner group times devices specials acls xattrs links hard-links D sparse")
_SHORT = {
    "y": "--fuzzy",
    "W": "--whole-file",
    "I": "--ignore-times",
    "u": "--update",
    "O": "--omit-dir-times",
    "J": "--omit-link-times",
    "L": "--copy-links",
    "k": "--copy-dirlinks",
    "K": "--keep-dirlinks",
    "U": "--atimes",
    "N": "--crtimes",
    "m": "--prune-empty-dirs",
    "E": "--executability",
    "4": "--ipv4",
    "6": "--ipv6",
    "C": "--cvs-exclude",
}

_OWN = {  # the words of the task for what must not be said twice
    "--archive": "preserve",
    "-a": "preserve",
    "--hard-links": "preserve",
    "-H": "preserve",
    "--acls": "preserve",
    "-A": "preserve",
    "--xattrs": "preserve",
    "-X": "preserve",
    "--sparse": "preserve",
    "-S": "preserve",
    "--numeric-ids": "numeric_ids",
    "--one-file-system": "one_file_system",
    "-x": "one_file_system",
    "--delete": "delete",
    "--del": "delete",
    "--delete-before": "delete",
    "--delete-during": "delete",
    "--delete-delay": "delete",
    "--delete-after": "delete",
    "--force": "delete",
    "--max-delete": "max_delete",
    "--checksum": "checksum",
    "--inplace": "inplace",
    "-c": "checksum",
    "--compress": "compress",
    "-z": "compress",
    "--compress-choice": "compress",
    "--zc": "compress",
    "--compress-level": "compress_level",
    "--zl": "compress_level",
    "--bwlimit": "bwlimit",
    "--timeout": "timeout",
    "--contimeout": "timeout",
    "--exclude": "exclude",
    "--include": "include",
    "--exclude-from": "exclude",
    "--include-from": "include",
    "--filter": "filter",
    "-f": "filter",
    "-F": "filter",
    "--link-dest": "link_dest",
    "--partial": "partial",
    "--partial-dir": "partial",
    "-P": "partial",
    "--dry-run": "check mode",
    "-n": "check mode",
    "--port": "port",
}
_REASONS = {
    "--remove-source-files": "the source is left as it is until the transfer is verified",
    "--daemon": "what runs on the hosts is decided by method",
    "--server": "what runs on the hosts is decided by method",
    "--sender": "what runs on the hosts is decided by method",
    "--rsh": "the connection belongs to the transfer; see ssh_ciphers and port",
    "-e": "the connection belongs to the transfer; see ssh_ciphers and port",
    "--rsync-path": "what runs on the hosts is decided by method",
    "--remote-option": "it would go past the checks of the other end",
    "-M": "it would go past the checks of the other end",
    "--ignore-errors": "nothing is deleted after a read error, or what could not be read would be deleted too",
    "--temp-dir": "temporary files have a folder of their own below the destination",
    "-T": "temporary files have a folder of their own below the destination",
    "--backup": "it needs a path at the destination; for older copies transfer to a new directory with link_dest",
    "-b": "it needs a path at the destination; for older copies transfer to a new directory with link_dest",
    "--backup-dir": "it needs a path at the destination; for older copies transfer to a new directory with link_dest",
}
_COUNTS = "the transfer reads rsync's output to account for every entry"
_COUNTING = _words(
    "--out-format --log-format --log-file --log-file-format --info --debug --stats --progress --verbose -v --quiet -q "
    "--itemize-changes -i --human-readable -h --no-human-readable --8-bit-output -8 --stderr --msgs2stderr --list-only "
    "--version -V --help --dirs -d --no-recursive --relative -R --files-from --from0 --no-implied-dirs"
)


def check_user_options(options: list[str]) -> list[str]:
    """Give the options back, each spelled as one word; raises TransferFailed at the first that may not be used."""
    checked = []
    for option in options:
        if option.startswith("--no-") and option[5:] in _NO:
            checked.append(option)
        elif option.startswith("--"):
            checked.append(_long(option))
        elif option.startswith("-") and len(option) > 1 and all(letter in _SHORT for letter in option[1:]):
            checked.append(option)
        else:
            raise _refused(option, option[:2] if option.startswith("-") else option)
    return checked


def _long(option: str) -> str:
    name, equals, _value = option.partition("=")
    if name in _PLAIN and not equals:
        return option
    if name in _WITH_VALUE:
        if equals:
            return option
        raise TransferFailed(f"rsync_opts: {name} needs its value in the same word: write {name}=VALUE")
    raise _refused(option, name)


def _refused(option: str, name: str) -> TransferFailed:
    if name in _OWN:
        return TransferFailed(f"rsync_opts: {option} has a word of its own in this task: use {_OWN[name]}")
    reason = _COUNTS if name in _COUNTING else _REASONS.get(name, "it is not among the options known to be safe here")
    return TransferFailed(f"rsync_opts: {option} cannot be used: {reason}. Leave it out")
