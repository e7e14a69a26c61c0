# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Days that pass in seconds: programs of a testbed host, and of this machine, that read a shifted time of day.

A small library takes the place of the functions that tell the time of day. The kernel's own clock stays, so the times
of files and of monotonic clocks are not shifted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ansible_collections.longhaul.fleet.tests.testbed import Testbed

_LIBRARY, _OFFSET = "usr/local/lib/simulated-clock.so", "etc/simulated-clock"
_VARIABLE = "SIMULATED_CLOCK"
_SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset;  /* seconds; read once, since a confined process may not open the file later */

__attribute__((constructor)) static void read_offset(void)
{
    char text[32] = {0};
    const char *given = getenv("SIMULATED_CLOCK");
    int file = given ? -1 : open("/etc/simulated-clock", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) > 0)
            given = text;
        close(file);
    }
    offset = given ? atol(given) : 0;
}

int clock_gettime(clockid_t id, struct timespec *found)
{
    int failed = syscall(SYS_clock_gettime, id, found);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        found->tv_sec += offset;
    return failed;
}

int gettimeofday(struct timeval *found, void *zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found)
        *found = now.tv_sec;
    return now.tv_sec;
}
"""


def why_not() -> str | None:
    """Return why there can be no such clock here, or None."""
    return None if shutil.which("cc") else "cc is not there"


class SimulatedClock:
    """The clock of a testbed's hosts and of programs that this machine starts with ``environment``."""

    def __init__(self, bed: Testbed, folder: Path) -> None:
        """Compile the library into ``folder``, and install it on all hosts, which it does not shift yet."""
        self._bed, self._library = bed, folder / "simulated-clock.so"
        source = folder / "simulated-clock.c"
        source.write_text(_SOURCE, encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self._library, source], check=True)
        self._here = 0
        for host in bed.hosts:
            root = bed.root(host)
            shutil.copy(self._library, root / _LIBRARY)
            self.shift(host, 0)
            (root / "etc/ld.so.preload").write_text(f"/{_LIBRARY}\n", encoding="utf-8")

    def shift(self, host: str, seconds: int) -> None:
        """Shift the clock of one host, for programs that start from now on."""
        (self._bed.root(host) / _OFFSET).write_text(f"{seconds}\n", encoding="utf-8")

    def shift_all(self, seconds: int) -> None:
        """Shift the clocks of all hosts, and that of this machine's programs."""
        self._here = seconds
        for host in self._bed.hosts:
            self.shift(host, seconds)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a program on this machine has the shifted clock."""
        return {"LD_PRELOAD": os.fspath(self._library), _VARIABLE: str(self._here)}
