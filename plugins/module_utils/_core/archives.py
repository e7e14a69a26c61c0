# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Archives that Python runs."""

from __future__ import annotations

import io
import zipfile
from typing import Mapping


def build_archive(files: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED, comment: bytes = b"") -> bytes:
    """Return a zip archive of files by name. It is the same for the same files, whenever it is made.

    The archive ends with ``comment``.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.comment = comment
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)  # of 1980
    return made.getvalue()
