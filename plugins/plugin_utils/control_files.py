# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write files on the control node: each at once and as a whole."""

from __future__ import annotations

import json
import os


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
