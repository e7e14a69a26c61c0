# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The search path of programs. Apart from ``subprocesses``, since most transfers by stream start none."""

from __future__ import annotations

import os

_SYSTEM_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def search_path() -> str:
    """Return where programs are looked for: this process's own PATH, then the system's folders, each once."""
    folders = f"{os.environ.get('PATH', '')}:{_SYSTEM_FOLDERS}".split(":")
    return ":".join(dict.fromkeys(folder for folder in folders if folder.startswith("/")))
