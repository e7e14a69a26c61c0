# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that the control node keeps: each is written at once and as a whole."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any


def as_json(data: object) -> str:
    """Return data as the files have it."""
    return json.dumps(data, indent=4, sort_keys=True) + "\n"


def write_whole(path: str, text: str, mode: int | None = None) -> None:
    """Put a file in place with a rename, on the disk before that. Raises OSError.

    Without a ``mode`` it is 0640, and that of new folders 0750, as far as the umask lets them.
    """
    os.makedirs(os.path.dirname(path), mode=0o750, exist_ok=True)
    partial = f"{path}.{os.getpid()}.part"
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640), "w", encoding="utf-8") as stream:
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


class Folder:
    """The folder. Without ``writes`` (check mode) nothing is written to it."""

    def __init__(self, path: str, writes: bool) -> None:
        self._path = path
        self.writes = writes

    def inner(self, name: str) -> Folder:
        """Return a folder in this one."""
        return Folder(os.path.join(self._path, name), self.writes)

    def path_of(self, name: str) -> str:
        """Return the path of a file in the folder."""
        return os.path.join(self._path, name)

    def read(self, name: str, what: str) -> Mapping[str, Any]:
        """Return the JSON object in a file, empty if there is no such file.

        Raises OSError, and ValueError if it is none; ``what`` it is to be, for the message.
        """
        try:
            with open(self.path_of(name), encoding="utf-8") as stream:
                found = json.load(stream)
        except FileNotFoundError:
            return {}
        if not isinstance(found, dict):
            raise ValueError(f"{self.path_of(name)} is no {what}")
        return found

    def save(self, name: str, data: Mapping[str, Any]) -> None:
        """Write JSON, whole and on the disk when this returns. Raises OSError."""
        self.write(name, as_json(data))

    def write(self, name: str, text: str) -> None:
        """Write a text likewise."""
        if self.writes:
            write_whole(self.path_of(name), text)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there. Raises OSError."""
        if self.writes:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path_of(name))
