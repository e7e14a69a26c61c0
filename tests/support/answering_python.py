# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A Python on a host that adds members to what each module answers, as a host that was taken over can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..testbed import Testbed

_PROGRAM = """#!/usr/bin/python3
import json, subprocess, sys
ran = subprocess.run(["/usr/bin/python3", *sys.argv[1:]], stdout=subprocess.PIPE)
try:
    answer = json.loads(ran.stdout)
    for name, added in json.loads({added!r}).items():
        answer[name] = {{**answer.get(name, {{}}), **added}} if isinstance(added, dict) else added
    print(json.dumps(answer))
except (ValueError, AttributeError):
    sys.stdout.buffer.write(ran.stdout)
sys.exit(ran.returncode)
"""


def add_to_answers(bed: Testbed, inventory: Path, host: str, **members: Any) -> None:
    """Have all modules on a host answer with these members besides, from now on."""
    program = bed.root(host) / "data/answering-python"
    program.write_text(_PROGRAM.format(added=json.dumps(members)))
    program.chmod(0o755)
    content = json.loads(inventory.read_text())
    content["all"]["hosts"][host]["ansible_python_interpreter"] = "/data/answering-python"
    inventory.write_text(json.dumps(content, indent=2))


def touching(canary: Path) -> list[dict[str, Any]]:
    """Return a list of hooks that would create a file on the control node."""
    return [{"host": "localhost", "command": ["/usr/bin/touch", str(canary)]}]
