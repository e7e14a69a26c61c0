# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A folder of the control node with what is known of jobs, and reports."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any

from ..control_files import as_json, write_whole


class Folder:
    """The folder. Without ``writes`` (check mode) nothing is written to it."""

    def __init__(self, path: str, writes: bool) -> None:
        self._path = path
        self._writes = writes

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
        if self._writes:
            write_whole(self.path_of(name), text)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there. Raises OSError."""
        if self._writes:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path_of(name))
