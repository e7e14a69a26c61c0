# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep the engine on a host as this Python compiled it. Private to the collection.

Python keeps no compiled code of what it imports out of an archive, so each start of a job would compile it again: half
of the processor time that a job takes before it does its work. The source is left out; what a traceback says of a line
is its number. It stays an archive that Python runs and imports from, whose one package finds all modules. It ends with
the digest of everything before, which the module checks before it runs anything of it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import os
import time
import zipfile

from .._core.archives import build_archive
from .._core.state_folder import StateError, private_folder, replace_file

_UNUSED = 30 * 86400  # seconds after which another version, or that of another Python, is removed
_HEADER = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)  # PEP 552: by hash, and not to be checked
_SEAL = 56  # characters of the digest at its end; the module endpoint knows it, too
_MAIN = "__main__.py"
_FOUND = "__init__.py"  # of the package that all modules are in, which Python itself finds in the archive
# What runs there: to find a module in an archive takes Python longer than to run most of ours, and a job needs sixty.
# INDEX has by the name of a module its place, whether it is a package, and where in the file its code is.
_FINDER = """\
import sys
from marshal import loads
from _frozen_importlib import ModuleSpec

INDEX = {index!r}
ARCHIVE = __file__[: -len({found!r}) - 1]


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in INDEX:
            return None
        place, is_package, _offset, _size = INDEX[name]
        spec = ModuleSpec(name, Finder, origin=ARCHIVE + "/" + place, is_package=is_package)
        spec.has_location = True
        return spec

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        _place, _is_package, offset, size = INDEX[module.__name__]
        with open(ARCHIVE, "rb", 0) as file:
            file.seek(offset)
            code = file.read(size)
        exec(loads(code), module.__dict__)


sys.meta_path.insert(0, Finder)
"""


def compile_archive(packed: bytes) -> bytes:
    """Return an archive of sources, all but ``__main__`` in one package, as one of compiled code without docstrings.

    The modules are in front of the archive proper, where Python does not look.
    """
    index: dict[str, tuple[str, bool, int, int]] = {}
    front, main, top = b"", b"", ""
    with zipfile.ZipFile(io.BytesIO(packed)) as sources:
        for name in sources.namelist():
            code = _compiled(sources.read(name), name)
            is_package = name.endswith(f"/{_FOUND}")
            module = name[: -len(f"/{_FOUND}" if is_package else ".py")].replace("/", ".")
            if name == _MAIN:
                main = code
            elif is_package and "." not in module:
                top = f"{name}c"
            else:
                index[module] = (f"{name}c", is_package, len(front), len(code))
                front += code
    finder = _compiled(_FINDER.format(index=index, found=top).encode(), top[: -len("c")])
    files = {f"{_MAIN}c": _HEADER + main, top: _HEADER + finder}
    whole = front + build_archive(files, zipfile.ZIP_STORED, comment=bytes(_SEAL))
    return whole[:-_SEAL] + hashlib.sha224(whole[:-_SEAL]).hexdigest().encode()


def _compiled(source: bytes, name: str) -> bytes:
    return marshal.dumps(compile(source, f"engine.pyz/{name}", "exec", dont_inherit=True, optimize=2))


def keep(archive: str, place: str) -> None:
    """Keep the engine in ``archive`` compiled at ``place``, and remove what nobody used for long. Raises OSError.

    It is there as a whole or not at all, after a loss of power, too: a damaged one would stop each transfer.
    """
    folder = os.path.dirname(place)
    try:
        private_folder(folder)
    except StateError as error:
        raise OSError(str(error)) from error
    with open(archive, "rb") as stream:
        compiled = compile_archive(stream.read())
    replace_file(place, compiled, f"{place}.{os.getpid()}")
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith("engine-") and os.lstat(path).st_mtime < time.time() - _UNUSED:
            os.unlink(path)
