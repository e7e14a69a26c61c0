# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stands in for pip's get-pip.py, which ansible-test downloads, where that download is out of reach.

It takes the same arguments (options of pip, requirements, --no-setuptools, --no-wheel): pip comes from Python's own
ensurepip, and the rest from the package index that pip is configured with.
"""

from __future__ import annotations

import subprocess
import sys


def main() -> int:
    """Install pip, and what is asked for."""
    asked = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
    subprocess.run([sys.executable, "-m", "ensurepip", "--default-pip"], check=True, stdout=subprocess.DEVNULL)
    return subprocess.run([sys.executable, "-m", "pip", "install", *asked], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
