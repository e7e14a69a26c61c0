# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records that the control node keeps at a destination about a job, so that another control node finds them there.

Private to the collection. One small file a job, ``<state root>/records/<id of its transfer>.json``, mode 0600 in a
folder of mode 0700. What stands in it, the control node decides; nothing on the host reads it. It outlives transfers,
and holds no secret.
"""

from __future__ import annotations

import json
import os
import stat
import time
from typing import TYPE_CHECKING, Mapping, cast

from .._core.state_folder import StateError, private_folder, replace_file, state_root

if TYPE_CHECKING:
    from typing import TypedDict

    class StoredRecord(TypedDict):
        """A record as it was found."""

        id: str
        age: float  # seconds since it was written
        record: Mapping[str, object]

else:
    StoredRecord = dict

LARGEST = 16 << 10  # bytes of a record
_MOST = 1000  # records that are listed


def keep_record(identity: str, record: Mapping[str, object]) -> None:
    """Replace the record of a job, on the disk when this returns. Raises StateError."""
    text = json.dumps(record)
    if not identity.isalnum() or len(text) > LARGEST:
        raise StateError(f"the record of job {identity} cannot be kept: its id is none, or it is too large")
    private_folder(state_root())
    folder = private_folder(_folder())
    path = os.path.join(folder, f"{identity}.json")
    try:
        replace_file(path, text.encode(), f"{path}.{os.getpid()}")
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from error


def find_record(identity: str) -> StoredRecord | None:
    """Return the record of a job; None if there is none, or what is there cannot be read."""
    path = os.path.join(_folder(), f"{identity}.json")
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            found = os.fstat(stream.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
                return None
            record = json.loads(stream.read(LARGEST))
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict):
        return None
    return {"id": identity, "age": max(0.0, time.time() - found.st_mtime), "record": cast(Mapping[str, object], record)}


def list_records() -> list[StoredRecord]:
    """Return the records of all jobs of this user, those that cannot be read left out."""
    try:
        names = sorted(os.listdir(_folder()))
    except OSError:
        return []
    identities = [name[: -len(".json")] for name in names if name.endswith(".json")]
    found = [find_record(identity) for identity in identities[:_MOST] if identity.isalnum()]
    return [one for one in found if one is not None]


def _folder() -> str:
    return os.path.join(state_root(), "records")
