# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proof that the rounds bite: defects that were mended are put back one by one, and the rounds must find each.

A mutation replaces a few words in one function of the product, in this process and in all that it forks from then on.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from . import differential, options
from .case import Case, random_case
from .hosts import ORDINARY, ROOT, User

_PLUGINS = "ansible_collections.longhaul.fleet.plugins"


@dataclass(frozen=True)
class Mutation:
    """One defect, and where it was."""

    name: str
    module: str
    function: str  # with its class
    right: str
    wrong: str
    options: tuple[tuple[str, Any], ...] = ()  # that it is about: all others, the trees and the edits are at random
    user: User = ROOT
    favoured: tuple[str, ...] = ()  # edits that it is about (see grow): made more often

    def target(self) -> Callable[..., Any]:
        """Return the function."""
        found: Any = importlib.import_module(f"{_PLUGINS}.{self.module}")
        for part in self.function.split("."):
            found = getattr(found, part)
        return found

    def source(self) -> str:
        """Return the function's text with the defect. Raise ValueError if it does not have the right words once."""
        text = textwrap.dedent(inspect.getsource(self.target()))
        if text.count(self.right) != 1:
            raise ValueError(f"{self.function} in {self.module} has {text.count(self.right)} times: {self.right}")
        return text.replace(self.right, self.wrong)

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Have the defect for the time of a block, whoever imported the function before."""
        function = self.target()
        made: dict[str, Any] = {}
        code = compile(f"from __future__ import annotations\n{self.source()}", self.module, "exec")
        exec(code, function.__globals__, made)
        right = function.__code__
        function.__code__ = made[function.__name__].__code__
        try:
            yield
        finally:
            function.__code__ = right


MUTATIONS = (
    Mutation(
        "src that ends in /..",
        "plugin_utils.roots",
        "child_name",
        'in (".", "..")',
        'in (".",)',
        (("src", "dotdot"),),
    ),
    Mutation(
        "stale contents where times are not preserved",
        "module_utils._engine.receiver.reconcile",
        "Reconciler._is_in_doubt",
        "return not self._keeps_times and found.mtime_ns != entry.mtime_ns",
        "return False",
        (("method", "stream"), ("preserve", ("owner", "group", "permissions"))),
    ),
    Mutation(
        "small files without holes",
        "module_utils._engine.content.sparse",
        "write_filled",
        "_filled(bytes(content[at : at + _CHUNK]))",
        "[(0, len(content[at : at + _CHUNK]))]",
        (("method", "stream"),),
    ),
    Mutation(
        "a folder that nobody else can read, where permissions are not preserved",
        "module_utils._engine.receiver.apply",
        "Applier.directory",
        "0o700 if self._keeps_mode else entry.mode & 0o777 | 0o700",
        "0o700",
        (("method", "stream"), ("preserve", ("times",))),
    ),
    Mutation(
        "setuid of another owner is an error",
        "module_utils._engine.receiver.apply_file",
        "FileApplier.note",
        "isinstance(problem, metadata.Withheld)",
        "False",
        (("method", "stream"), ("preserve", ("permissions", "times"))),
    ),
    Mutation(
        "times after 2262 end the transfer",
        "module_utils._model.entry_codec",
        "_pack_long",
        "except struct.error:",
        "except ZeroDivisionError:",
        (("method", "stream"),),
    ),
    Mutation(
        "what a folder holds that becomes a file goes without being counted or protected",
        "module_utils._engine.receiver.reconcile",
        "Reconciler.holds",
        "return found is not None and found.type == DIRECTORY and self._obstacles.holds(entry.path)",
        "return False",
        (("method", "stream"), ("delete", True), ("max_delete", 2)),
        favoured=("write", "folder"),
    ),
    Mutation(
        "an option of rsync that the comparison cannot follow",
        "module_utils._methods.rsync.user_options",
        "_checked",
        "rule.use == UNCOMPARED and compared",
        "False",
        (("method", "rsync"), ("rsync_opts", ("--chmod=F640",)), ("verify", "size")),
    ),
    Mutation(
        "a name of a hard link that only the destination has",
        "module_utils._tree.record_store",
        "RecordStore.explain",
        "_among(rest.record(), firsts)",
        "rest.record()",
        (("method", "stream"), ("delete", False), ("preserve", None), ("verify", "size")),
        favoured=("link", "break_link"),
    ),
    Mutation(
        "two files of the source stay one at the destination",
        "module_utils._engine.receiver.apply",
        "Applier.is_unchanged",
        "self.claims(found.st_dev, found.st_ino)",
        "True",
        (("method", "stream"), ("checksum", False), ("link_dest", None), ("preserve", None)),
        favoured=("copy", "join"),
    ),
    Mutation(
        "attributes are set through an inode that another file has, too",
        "module_utils._engine.receiver.apply",
        "Applier._is_shared",
        "return verdict.action == ATTRIBUTES",
        "return False",
        (("method", "stream"), ("checksum", True), ("link_dest", None), ("preserve", None)),
        favoured=("copy", "break_link", "join"),
    ),
    Mutation(
        "what the rules protect in a folder that goes",
        "module_utils._engine.receiver.delete",
        "Extras.remove",
        "keep=self.keep, ",
        "",
        (("method", "stream"), ("delete", True), ("max_delete", None), ("filter", ("P *.keep", "- *.tmp"))),
        favoured=("write", "folder"),
    ),
    Mutation(
        "max_delete does not count what is in a folder that becomes a file",
        "module_utils._engine.receiver.delete",
        "Extras.count",
        "for path, is_dir in self.found)",
        "for path, is_dir in self.found if path not in self._replaced)",
        (("method", "stream"), ("delete", True), ("max_delete", 0)),
        favoured=("write", "folder"),
    ),
    Mutation(
        "other groups of an ordinary user",
        "module_utils._tree.metadata",
        "Powers.may_give_to_group",
        "self.all or gid in self.groups",
        "self.all",
        (("method", "stream"), ("preserve", None)),
        ORDINARY,
    ),
    Mutation(
        "a rule that begins with the name of src",
        "plugin_utils.rules",
        "refuse_misread_rules",
        "if name and (",
        "if not name and (",
        (("src", "folder"), ("exclude", options.NAMES_SRC)),
    ),
    Mutation(
        "a changed file where link_dest has the right one",
        "module_utils._engine.receiver.reconcile",
        "Reconciler.compare",
        "candidate = self._candidate(entry, found)",
        "candidate = None",
        (("method", "stream"), ("checksum", True), ("link_dest", (options.OLDER,))),
        favoured=("content",),
    ),
    Mutation(
        "check mode counts a root that is made beforehand",
        "module_utils._methods.rsync.passes",
        "_Transfer._predicted",
        'item.path or item.kind != "created"',
        "True",
        (("dest", "missing"), ("method", "rsyncd"), ("rsyncd_module", "soak"), ("wait", True)),
    ),
    Mutation(
        "rsync sends twice what keeps no times",
        "module_utils._methods.rsync.argv",
        "build_argv",
        'run.settled and not settings["checksum"]',
        'False and not settings["checksum"]',
        (("method", "rsyncd"), ("delete", True), ("preserve", ()), ("checksum", False), ("wait", True)),
    ),
    Mutation(
        "names like that of a transfer's own folder are left out",
        "module_utils._model.paths",
        "is_staging",
        '_STAGING_NAME.search(path + b"/") is not None',
        "True",
        (("method", "stream"),),
    ),
)


def bite(mutation: Mutation, most: int, seed: int = 0) -> tuple[int, str]:
    """Run cases with a defect; returns after how many it was found (0: not in so many), and the first difference.

    What is found without the defect, too, does not count.
    """
    for number in range(most):
        case = _case(mutation, seed + number)
        if case is None:
            continue
        with mutation.in_force():
            left = differential.play("", case, differential.Tally())
        if left and not differential.play("", case, differential.Tally()):
            return number + 1, str(left[0])[:200]
    return 0, ""


def _case(mutation: Mutation, seed: int) -> Case | None:
    case = random_case(seed, user=mutation.user)
    row = {**case.row, **dict(mutation.options)}
    options.mend(row, [name for name, _value in mutation.options])
    # What it takes for granted that is refused: then the refusal is what it is about
    is_meant = options.refused({**options.DEFAULTS, **dict(mutation.options)}) == options.refused(row)
    if not is_meant or any(left_out(row) for left_out in options.LEFT_OUT):
        return None
    return random_case(seed, row, mutation.user, mutation.favoured)
