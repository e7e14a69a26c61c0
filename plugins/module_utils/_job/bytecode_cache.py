# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep the engine on a host as this Python compiled it. Private to the collection.

Python keeps no compiled code of what it imports out of an archive, so each start of a job would compile it again: half
of the processor time that a job takes before it does its work. The source is left out; what a traceback says of a line
is its number.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import marshal
import os
import time
import zipfile

from .._core.archives import build_archive
from .state import StateError, private_folder

_UNUSED = 30 * 86400  # seconds after which another version, or that of another Python, is removed
_HEADER = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)  # PEP 552: by hash, and not to be checked


def compile_archive(packed: bytes) -> bytes:
    """Return an archive of sources as one of compiled code, without docstrings."""
    compiled = {}
    with zipfile.ZipFile(io.BytesIO(packed)) as sources:
        for name in sources.namelist():
            code = compile(sources.read(name), f"engine.pyz/{name}", "exec", dont_inherit=True, optimize=2)
            compiled[f"{name}c"] = _HEADER + marshal.dumps(code)
    return build_archive(compiled, zipfile.ZIP_STORED)


def keep(archive: str, place: str) -> None:
    """Keep the engine in ``archive`` compiled at ``place``, and remove what nobody used for long. Raises OSError.

    It is there as a whole or not at all, after a loss of power, too: a damaged one would stop each transfer.
    """
    folder = os.path.dirname(place)
    try:
        private_folder(folder)
    except StateError as error:
        raise OSError(str(error)) from error
    with open(archive, "rb") as stream:
        compiled = compile_archive(stream.read())
    own = f"{place}.{os.getpid()}"
    try:
        with open(own, "wb") as stream:
            stream.write(compiled)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(own, place)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(own)
        raise
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith("engine-") and os.lstat(path).st_mtime < time.time() - _UNUSED:
            os.unlink(path)
