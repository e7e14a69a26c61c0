# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the start files of this user's login shell leave behind where a test kills a session of ssh."""

from __future__ import annotations

import os
import time
from pathlib import Path

STALE_S = 15  # a rehash takes less than a second


def free_lock() -> None:
    """Remove a lock of pyenv that nobody holds any more.

    ``pyenv init`` in a ``.bashrc`` takes it at each login. Where a login is killed meanwhile, it stays, and each
    later one waits a minute for it (``PYENV_REHASH_TIMEOUT`` in pyenv's libexec/pyenv-rehash).
    """
    lock = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "shims", ".pyenv-shim")
    try:
        if time.time() - lock.stat().st_mtime > STALE_S:
            lock.unlink()
    except FileNotFoundError:
        pass
