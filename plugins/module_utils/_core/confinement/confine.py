# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Confine a process of a transfer, and say what is in force.

``Kernel`` is a plain wrapper around ctypes: it runs between fork and exec, too, where nothing may be imported.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys
import threading

from . import capabilities, landlock
from .landlock import OF_FILES, OLDEST, Ruleset, Where, for_version, scopes_of
from .plan import CAPABILITIES, MEASURES, NO_NEW_PRIVS, READS, SCOPE, WRITES, ConfinementPlan

_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24  # <linux/prctl.h>
_CAPABILITY_VERSION_3 = 0x20080522  # <linux/capability.h>
_LAST_CAPABILITY = 63  # that fits; the kernel refuses those that it has not
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same number on every architecture
_VERSION, _PATH_BENEATH = 1, 1  # <linux/landlock.h>
_O_PATH = getattr(os, "O_PATH", os.O_RDONLY)


class Kernel:
    """Linux; do not make one elsewhere, where the same numbers mean other calls."""

    def __init__(self) -> None:
        # Looked up here: in a child of a process with threads a thread that is not there may hold the loader's lock.
        libc = ctypes.CDLL(None, use_errno=True)
        self._syscall, self._prctl = libc.syscall, libc.prctl
        self._syscall.restype = ctypes.c_long
        self._prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
        self._capget, self._capset = getattr(libc, "capget", None), getattr(libc, "capset", None)

    def no_new_privs(self) -> bool:
        """Let no program that this process or a child runs have more rights than it."""
        return bool(self._prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)

    def keep_capabilities(self, kept: int) -> bool:
        """Drop every other capability from all sets, the bounding one first: that needs a capability itself."""
        for number in range(_LAST_CAPABILITY + 1):
            if not kept >> number & 1:
                self._prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
        if self._capget is None or self._capset is None:
            return False
        header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), 8)
        data = ctypes.create_string_buffer(24)
        if self._capget(header, data) != 0:
            return False
        low, high = kept & 0xFFFFFFFF, kept >> 32
        # effective, permitted, inheritable of the first 32, and of the rest
        masks = (low, low, low, high, high, high)
        dropped = [had & mask for had, mask in zip(struct.unpack("=6I", data.raw), masks)]
        data.raw = struct.pack("=6I", *dropped)
        return bool(self._capset(header, data) == 0)

    def landlock_version(self) -> int:
        """Return the version of Landlock, 0 if it cannot be used here."""
        found = int(self._syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))
        return found if found >= OLDEST else 0

    def make_ruleset(self, rules: Ruleset) -> int:
        """Return a descriptor of the rules, and of all scopes; -1 where they cannot be made, or restrict nothing."""
        version = self.landlock_version()
        handled, scopes = for_version(rules.handled, version), scopes_of(version)
        if not version or not handled | scopes:
            return -1
        # Files, ports, scopes: a kernel refuses what it does not know, so an older one gets the first alone.
        data = struct.pack("=QQQ", handled, 0, scopes) if scopes else struct.pack("=Q", handled)
        asked = ctypes.create_string_buffer(data, len(data))
        fd = int(self._syscall(_CREATE_RULESET, asked, ctypes.c_size_t(len(data)), ctypes.c_uint32(0)))
        if fd < 0:
            return -1
        for where, rights in rules.allowed:
            if not self._allow(fd, where, for_version(rights, version)) and where in rules.required:
                os.close(fd)
                return -1
        return fd

    def _allow(self, ruleset: int, where: Where, rights: int) -> bool:
        if isinstance(where, int):
            return self._add_rule(ruleset, where, rights)
        try:
            fd = os.open(where, _O_PATH | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return self._add_rule(ruleset, fd, rights)
        finally:
            os.close(fd)

    def _add_rule(self, ruleset: int, fd: int, rights: int) -> bool:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= OF_FILES
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd), 12)
        done = self._syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
        return bool(done == 0)

    def restrict(self, ruleset: int) -> bool:
        """Hold this process and its children to the rules; needs no_new_privs."""
        return bool(self._syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0)


def kernel() -> Kernel | None:
    """Return the kernel's calls; None if this is not Linux."""
    return Kernel() if sys.platform.startswith("linux") else None


class Confinement:
    """A plan, made ready: ``apply`` may be called between fork and exec, in as many children as there are.

    Nothing here raises an exception for what the system withholds.
    """

    def __init__(self, plan: ConfinementPlan) -> None:
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


def confine(plan: ConfinementPlan) -> list[str]:
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
