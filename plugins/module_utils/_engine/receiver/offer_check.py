# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hold the source to the plan: which entries it may offer, and in which order.

An honest source walks its tree and leaves out what the rules exclude, so none of this is ever refused to it. A hostile
one would otherwise write whatever it likes into the destination (rsync: CVE-2022-29154, scp: CVE-2019-6111).
"""

from __future__ import annotations

import os
from typing import Container

from ..._core.settings import Settings
from ..._model.entry import DIRECTORY, Entry
from ..._model.filters import SOURCE, Filters
from ..._model.paths import escape
from ..._tree.directory_tags import DirectoryTags
from ..wire.frames import FrameError
from ..wire.messages import Shard


class _Folder:
    """A directory whose entries may come now."""

    __slots__ = ("is_tagged", "last", "path")

    def __init__(self, path: bytes | None, is_tagged: bool = False) -> None:
        self.path = path
        self.is_tagged = is_tagged  # only its tags may come
        self.last = b""  # the name that came last; an entry's is never empty


_NOWHERE = _Folder(None)


class OfferCheck:
    """Refuses shards that no source makes of this plan. ``check`` sees every shard, in the order of arrival."""

    def __init__(self, settings: Settings) -> None:
        only = settings.get("only")
        self._only = os.fsencode(only) if only is not None else None
        self._filters = Filters.parse(settings["rules"])
        self._one_file_system = settings["one_file_system"]
        self._tags = DirectoryTags.parse(settings["exclude_if_present"], settings["exclude_caches"])
        self._folders: list[_Folder] = []  # the way from the root to where the walk is
        self._here = _NOWHERE  # the last of them
        self._has_begun = False
        self._asked: dict[bytes, int] = {}  # files that must come again, and which attempt that is

    def check(self, shard: Shard) -> None:
        """Raise FrameError if an entry of a shard is not one that the source may offer now."""
        if shard.opaque and not self._one_file_system:
            raise FrameError("directories arrived without their contents, though the plan is not one_file_system")
        if shard.tagged and not self._tags:
            raise FrameError("directories arrived without their contents, though the plan has no exclude_if_present")
        if shard.attempt > 1:
            for entry in shard.entries:
                self._check_again(entry, shard.attempt)
        else:
            self._check_places(shard.entries, frozenset(shard.opaque), frozenset(shard.tagged))
        if self._filters:
            for entry in shard.entries:
                if entry.path and not self._filters.allows(entry.path, entry.type == DIRECTORY, SOURCE):
                    raise FrameError(f"the entry '{escape(entry.path)}' arrived, which the filter rules exclude")

    def ask_again(self, entry: Entry, attempt: int) -> None:
        """Expect a file once more, whose attempt of this number failed."""
        self._asked[entry.path] = attempt + 1

    def _check_again(self, entry: Entry, attempt: int) -> None:
        if self._asked.pop(entry.path, 0) != attempt or entry.type == DIRECTORY:
            raise FrameError(f"the entry '{escape(entry.path)}' arrived again, which was not asked for")

    def _check_places(self, entries: list[Entry], opaque: Container[int], tagged: Container[int]) -> None:
        """Check that entries come where a walk would give them: each once, in byte order, behind its directory."""
        for index, entry in enumerate(entries):
            folder, _slash, name = entry[0].rpartition(b"/")
            here = self._here
            if folder == here.path and name > here.last and entry[1] != DIRECTORY:  # as most are, so it must be quick
                here.last = name
            else:
                self._check_place(entry, folder, name, index in opaque, index in tagged)

    def _check_place(self, entry: Entry, folder: bytes, name: bytes, is_opaque: bool, is_tagged: bool) -> None:
        if self._only is not None:
            if self._has_begun or entry.path != self._only or entry.type == DIRECTORY:
                raise FrameError(f"the entry '{escape(entry.path)}' arrived, and the plan is for one file alone")
            self._has_begun = True
            return
        if not entry.path:
            if self._has_begun:
                raise FrameError("the root arrived twice")
            self._has_begun = True
        else:
            while self._folders and self._folders[-1].path != folder:
                self._folders.pop()
            if not self._folders:
                raise FrameError(f"the entry '{escape(entry.path)}' arrived, and not behind its directory")
            here = self._folders[-1]
            if name <= here.last:
                raise FrameError(f"the entry '{escape(entry.path)}' arrived twice, or out of order")
            here.last = name
            if here.is_tagged and (entry.type == DIRECTORY or not self._tags.may_be(name)):
                raise FrameError(f"the entry '{escape(entry.path)}' arrived, and its directory is left out by a tag")
        if entry.type == DIRECTORY and not is_opaque:
            self._folders.append(_Folder(entry.path, is_tagged))
        here = self._folders[-1] if self._folders else _NOWHERE
        self._here = _NOWHERE if here.is_tagged else here
