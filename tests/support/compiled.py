# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Have the tests' hosts compile a module's source once, and not in each of thousands of executions.

Python keeps no compiled code of what it imports out of a zip file, and Ansible sends modules as such: half of the
processor time that a host spends on a small transfer goes into compiling the same files again. What is compiled, and
how it then runs, stays the same. For tests only, and not for those that measure: a real host has no such thing.

This file is put on the hosts as it is, and imported at each start of their Python: so it imports next to nothing.
"""

import marshal
import os
import zipimport

KEPT = "/var/cache/longhaul-tests"  # made by who puts this on a host: everybody may write to it
NAME = "longhaul_tests_compiled"
AT_START = f"import {NAME}; {NAME}.keep()\n"  # of a .pth file beside it


def keep(folder: str = KEPT) -> None:
    """Have zipimport keep what it compiles in a folder, under a name made of the source."""
    import _imp

    compile_source = zipimport._compile_source  # type: ignore[attr-defined]

    def kept(path: str, source: bytes) -> object:
        place = os.path.join(folder, f"{_imp.source_hash(0, source).hex()}-{len(source)}")
        try:
            with open(place, "rb") as stream:
                code = marshal.loads(stream.read())
        except FileNotFoundError:
            code = compile_source(path, source)
            own = f"{place}-{os.getpid()}"
            with open(own, "wb") as stream:
                stream.write(marshal.dumps(code))
            os.rename(own, place)
            return code
        _imp._fix_co_filename(code, path)  # type: ignore[attr-defined]
        return code

    zipimport._compile_source = kept  # type: ignore[attr-defined]
