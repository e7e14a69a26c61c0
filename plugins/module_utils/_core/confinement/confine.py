# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Confine a process of a transfer, and say what is in force."""

from __future__ import annotations

import os
import threading

from . import capabilities, landlock
from .kernel import kernel
from .plan import CAPABILITIES, MEASURES, NO_NEW_PRIVS, READS, SCOPE, WRITES, Plan


class Confinement:
    """A plan, made ready: ``apply`` may be called between fork and exec, in as many children as there are.

    Nothing here raises an exception for what the system withholds.
    """

    def __init__(self, plan: Plan) -> None:
        self._kernel = kernel()
        self._plan = plan
        self._rules = -1
        self._in_force: list[str] = []  # by the rules
        if self._kernel is not None:
            files = plan.files or landlock.anywhere()
            self._rules = self._kernel.make_ruleset(files)
            self._in_force += [WRITES] if files.writes else []
            self._in_force += [READS] if files.reads else []
            self._in_force += [SCOPE] if landlock.scopes_of(self._kernel.landlock_version()) else []

    def apply(self) -> list[str]:
        """Confine this process and what it starts from now on; return what is in force.

        Capabilities and Landlock are those of a thread: a process that has several is left as it is.
        """
        if self._kernel is None or not _is_alone():
            return []
        found = []
        if self._kernel.no_new_privs():
            found.append(NO_NEW_PRIVS)
        # Last what may be needed for the others: where no_new_privs is withheld, Landlock needs a capability.
        is_held = self._rules >= 0 and self._kernel.restrict(self._rules)
        kept = self._plan.capabilities
        if kept is not None and os.geteuid() == 0 and self._kernel.keep_capabilities(capabilities.mask(kept)):
            found.append(CAPABILITIES)
        return found + self._in_force if is_held else found

    def find_out(self) -> list[str]:
        """Return what will be in force in children, by trying it in one."""
        if self._kernel is None:
            return []
        pid = os.fork()
        if not pid:
            code = 0
            try:
                code = sum(1 << MEASURES.index(name) for name in self.apply())
            finally:
                os._exit(code)
        _pid, status = os.waitpid(pid, 0)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0
        return [name for number, name in enumerate(MEASURES) if code >> number & 1]

    def close(self) -> None:
        """Close the descriptor of the rules."""
        if self._rules >= 0:
            os.close(self._rules)
            self._rules = -1


def confine(plan: Plan) -> list[str]:
    """Confine this process, which has one thread yet; return what is in force."""
    confinement = Confinement(plan)
    try:
        return confinement.apply()
    finally:
        confinement.close()


def _is_alone() -> bool:
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return threading.active_count() == 1
