# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the control node remembers of hosts between two runs, so that it need not ask or send it again.

It only saves executions: what is wrong or gone costs one more, and nothing else. It holds no secret. Where its folder
cannot be made or might be another user's, nothing is remembered.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Mapping

from ansible import constants

_UNUSED = 30 * 86400  # seconds after which nobody needs it any more
_CLEANED = "cleaned"  # the file whose time says when what nobody needs was removed; once a day will do
_DAY = 86400


def default_folder() -> str:
    """Return the folder in Ansible's own, below the user's home."""
    return os.path.join(constants.config.get_config_value("ANSIBLE_HOME"), "longhaul")


class Memory:
    """A folder of small records, each found by what it is about."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder or default_folder()

    def recall(self, kind: str, about: object) -> dict[str, object]:
        """Return a record; empty if there is none, or none that can be trusted."""
        try:
            if not _is_own(os.lstat(self._folder), stat.S_IFDIR):
                return {}
            with open(os.open(self._path(kind, about), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as stream:
                if not _is_own(os.fstat(stream.fileno()), stat.S_IFREG):
                    return {}
                found = json.load(stream)
                if os.fstat(stream.fileno()).st_mtime < time.time() - _DAY:
                    os.utime(stream.fileno())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def keep(self, kind: str, about: object, record: Mapping[str, object]) -> None:
        """Replace a record; an empty one is forgotten."""
        path = self._path(kind, about)
        with contextlib.suppress(OSError):
            if not record:
                os.unlink(path)
                return
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            if not _is_own(os.lstat(self._folder), stat.S_IFDIR):
                return
            own = f"{path}.{os.getpid()}"
            with open(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as stream:
                json.dump(record, stream)
            os.replace(own, path)
            self._clean()

    def _path(self, kind: str, about: object) -> str:
        digest = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()[:32]
        return os.path.join(self._folder, f"{kind}-{digest}.json")

    def _clean(self) -> None:
        """Remove what nobody needs any more; a thousand hosts must not list the folder a thousand times. May raise."""
        marker, now = os.path.join(self._folder, _CLEANED), time.time()
        with contextlib.suppress(FileNotFoundError):
            if os.stat(marker).st_mtime > now - _DAY:
                return
        with open(marker, "w", encoding="ascii"):
            os.utime(marker)
        for entry in list(os.scandir(self._folder)):
            with contextlib.suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mtime < now - _UNUSED:
                    os.unlink(entry.path)


def _is_own(found: os.stat_result, kind: int) -> bool:
    """Whether it is of this kind, and no other user can have written it."""
    return stat.S_IFMT(found.st_mode) == kind and found.st_uid == os.geteuid() and not found.st_mode & 0o022
