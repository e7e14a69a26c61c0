# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""pytest that begins no test after some time: ``limited_pytest.py SECONDS CODE ARGUMENTS...``.

The exit code is pytest's, and CODE if nothing failed and some tests did not run.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

EVERY_TEST_LEFT_OUT = 5  # pytest's exit code, as where all of them are long


class TimeLimit:
    """A plugin of pytest: tests that would begin after the time are counted, and do not run."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds
        self.left: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> bool | None:
        """Return True, so that pytest skips the test, if the time is up."""
        if time.monotonic() < self.end:
            return None
        self.left.append(item.nodeid)
        return True

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Report how many tests did not run."""
        if self.left:
            files = sorted({name.partition("::")[0] for name in self.left})
            terminalreporter.write_line(f"{len(self.left)} tests did not begin in time: {' '.join(files)}")


def main(arguments: list[str]) -> int:
    """Run pytest; return the exit code, which is 0 if no test is for it."""
    seconds, time_up, *rest = arguments
    limit = TimeLimit(float(seconds))
    code = int(pytest.main(rest, plugins=[limit]))
    code = 0 if code == EVERY_TEST_LEFT_OUT else code
    return code or (int(time_up) if limit.left else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
