# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file of a report on the control node, and those of earlier runs, of which a bounded number is kept."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..common.files import Folder, write_whole
from ..common.host_text import one_line
from .model import EarlierReport, Page
from .page import render_page

EARLIER = "earlier"  # the folder of earlier reports, beside the report
MOST_EARLIER = 20
_LINK = 'href="'  # in markup alone: texts of a page are escaped
_STAMP = "%Y%m%dT%H%M%SZ"
_STAMPED = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII)


def save_page(folder: Folder, name: str, make: Callable[[Sequence[EarlierReport]], Page]) -> str:
    """Write a page without keeping the one before; return why it could not be written, empty if it was.

    What was done on hosts has succeeded or failed before, and must not fail because of its report.
    """
    path = folder.path_of(f"{name}.html")
    if not folder.writes:
        return ""
    try:
        write_whole(path, render_page(make(list_earlier(folder, name))))
    except OSError as error:
        return _explain(path, error.strerror or str(error))
    except Exception as error:  # a mistake in here, or in what a file of an earlier version holds
        return _explain(path, f"{type(error).__name__}: {error}")
    return ""


def write_report(
    folder: Folder, name: str, data: Mapping[str, Any], make: Callable[[Sequence[EarlierReport]], Page]
) -> list[str]:
    """Write a report, for programs and for people, and keep the one before.

    Return why that could not be done: what failed of the jobs must be told even so.
    """
    keep_earlier(folder, name)
    problems = [save_page(folder, name, make)]
    try:
        folder.save(f"{name}.json", data)
    except OSError as error:
        problems.append(f"{folder.path_of(f'{name}.json')} could not be written: {error.strerror}")
    return [one for one in problems if one]


def keep_earlier(folder: Folder, name: str) -> None:
    """Move the report of the run before, HTML and JSON, to the earlier ones, and remove the oldest of these.

    An earlier report that cannot be moved is replaced.
    """
    page = folder.path_of(f"{name}.html")
    if not folder.writes or not os.path.isfile(page):
        return
    with contextlib.suppress(OSError):
        stamp = time.strftime(_STAMP, time.gmtime(os.stat(page).st_mtime))
        os.makedirs(folder.path_of(EARLIER), mode=0o750, exist_ok=True)
        kept = folder.path_of(f"{EARLIER}/{name}-{stamp}")
        with contextlib.suppress(FileNotFoundError):
            os.replace(folder.path_of(f"{name}.json"), f"{kept}.json")
        with open(page, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
        write_whole(f"{kept}.html", text.replace(_LINK, f"{_LINK}../"))
        os.unlink(page)
    for stamp in _stamps(folder, name)[MOST_EARLIER:]:
        for ending in ("json", "html"):
            with contextlib.suppress(OSError):
                os.unlink(folder.path_of(f"{EARLIER}/{name}-{stamp}.{ending}"))


def list_earlier(folder: Folder, name: str) -> list[EarlierReport]:
    """Return the earlier reports, the newest first."""
    return [
        EarlierReport(f"{EARLIER}/{name}-{stamp}.html", _STAMPED.sub(r"\1-\2-\3 \4:\5:\6 UTC", stamp))
        for stamp in _stamps(folder, name)
    ]


def _stamps(folder: Folder, name: str) -> list[str]:
    try:
        files = os.listdir(folder.path_of(EARLIER))
    except OSError:
        return []
    begin, end = f"{name}-", ".html"
    stamps = [file[len(begin) : -len(end)] for file in files if file.startswith(begin) and file.endswith(end)]
    return sorted((stamp for stamp in stamps if _STAMPED.fullmatch(stamp)), reverse=True)


def _explain(path: str, reason: str) -> str:
    return (
        f"the report {path} could not be written: {one_line(reason)}. Nothing else is affected: states and figures are "
        "in the JSON files. Fix the cause, and the next run writes it"
    )
