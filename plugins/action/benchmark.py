# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action behind longhaul.fleet.benchmark: files that cannot be compressed go from one host to the other."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ansible_collections.longhaul.fleet.plugins.modules import transfer
from ansible_collections.longhaul.fleet.plugins.modules.benchmark import DOCUMENTATION
from ansible_collections.longhaul.fleet.plugins.plugin_utils.actions.pair_action import PairAction
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.argument_spec import (
    spec_from_documentation,
    validate_options,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.common.memory import Memory
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.host_runner import (
    HostFailed,
    HostRunner,
    fails_alone,
)
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.preload import prepare
from ansible_collections.longhaul.fleet.plugins.plugin_utils.hosts.trust import decide_trust
from ansible_collections.longhaul.fleet.plugins.plugin_utils.transfer.session import Session

prepare(transfer.DOCUMENTATION)

_MIB = 1 << 20
_STEPS = (8, 64, 512)  # MiB: eight times as much takes at most eight times as long
_CIPHER = re.compile(r"[a-z0-9][a-z0-9@.-]*")
# The exit code of a script, and all that it printed: the module's own answer to a failure has no reason.
_WRAPPED = 'said=$( { %s; } 2>&1 ); printf "%%s %%s" "$?" "$said"'
_MAKE = '{ [ -d "$1" ] || mkdir -m 700 -- "$1"; } && df -Pk "$1"'  # it may run again after a connection that broke
_FILL = 'dd if=/dev/urandom of="$1" bs=1048576 count="$2"'
_REMOVE = 'rm -rf -- "$1"'
_FILL_SECONDS = 600.0  # longer than any other question


class Figure(NamedTuple):
    """A measurement."""

    speed: int  # bytes a second
    mib: int
    cipher: str


class ActionModule(PairAction):
    """Measure how fast one inventory host sends to another."""

    documentation = DOCUMENTATION

    def run_pair(
        self, source: HostRunner, dest: HostRunner, options: Mapping[str, Any], say: Callable[[str], None]
    ) -> Mapping[str, object]:
        if self._task.check_mode:
            return {"skipped": True, "msg": "nothing is measured in check mode"}
        if not options["folder"].startswith("/"):
            raise ValueError(f"folder is {options['folder']!r}: give an absolute path")
        folder = f"{options['folder'].rstrip('/')}/longhaul-tune-{secrets.token_hex(8)}"
        free: dict[str, int] = {}
        try:
            for runner in (source, dest):
                free[runner.name] = parse_free(run_script(runner, _MAKE, folder))
            most = min(options["most_mib"], min(free.values()) // 4)
            if most < _STEPS[0]:
                raise ValueError(f"There is too little room in {options['folder']}. Name another folder")
            ciphers = fails_alone(lambda: find_ciphers(source, dest.name))
            figure = None
            for size in [min(options["mib"], most)] if options["mib"] else sizes(most):
                if figure is not None and not may_grow(figure, options["seconds"]):
                    break
                figure = self._measure(source, dest, folder, size, ciphers, say)
        finally:
            for runner in (source, dest):
                try:
                    run_script(runner, _REMOVE, folder)
                except HostFailed as error:
                    if runner.name in free:  # else it was most likely not made
                        say(f"{folder} on {runner.name} could not be removed; remove it there. {error}")
        return dict(figure._asdict()) if figure is not None else {}

    def _measure(
        self,
        source: HostRunner,
        dest: HostRunner,
        folder: str,
        mib: int,
        ciphers: list[str],
        say: Callable[[str], None],
    ) -> Figure:
        file = f"{folder}/{mib}"
        run_script(source, _FILL, file, str(mib), seconds=_FILL_SECONDS)
        ends = {"src_host": source.name, "src": file, "dest_host": dest.name, "dest": f"{folder}/"}
        how = {"method": "rsync", "connect": "push", "compress": "none", "verify": "size"}
        given = {**ends, **how, **({"ssh_ciphers": ciphers} if ciphers else {})}
        options = validate_options(given, spec_from_documentation(transfer.DOCUMENTATION), (), "benchmark")
        trust = decide_trust(options["trust"], {one.name: one.variables for one in (source, dest)})
        session = Session(source, dest, {**options, "trust": trust}, False, say, self.interruption, Memory())
        return fails_alone(lambda: figure_of(session.run(), mib))


def sizes(most: int) -> list[int]:
    """Return the sizes of files, in MiB, that are tried one after the other."""
    return sorted({min(size, most) for size in _STEPS})


def may_grow(figure: Figure, seconds: float) -> bool:
    """Return whether a larger file is worth it, and takes at most twice the seconds."""
    return figure.mib * _MIB / max(1, figure.speed) < seconds / 4


def figure_of(result: Mapping[str, Any], mib: int) -> Figure:
    """Return what the result of a transfer says."""
    named = re.search(r' -c ([^ ,"]+)', " ".join(result["cmd"]["source"]))
    return Figure(int(result["throughput"]), mib, named.group(1) if named else "?")


def find_ciphers(source: HostRunner, peer: str) -> list[str]:
    """Return the ciphers that a plain ssh from the source would offer to a peer. Raises HostFailed and ValueError."""
    asked = {"peers": [{"name": peer}], "measure": "never"}
    found = source.run_module("longhaul.fleet.ssh_local_offer", asked, {"peers": dict})["peers"]
    return parse_ciphers(found.get(peer, {}).get("ciphers", []))


def parse_ciphers(found: Iterable[object]) -> list[str]:
    """Return names of ciphers that a host says. Untrusted input. Raises ValueError for what cannot be one."""
    names = [one for one in found if isinstance(one, str) and _CIPHER.fullmatch(one)]
    if len(names) != len(list(found)):
        raise ValueError("the answer of a host names ciphers that cannot be any")
    return names


def run_script(runner: HostRunner, script: str, *words: str, seconds: float = 0.0) -> str:
    """Run a script of the shell on a host, which may run twice, and return what it printed. Raises HostFailed."""
    asked = {"argv": ["sh", "-c", _WRAPPED % script, "sh", *words]}
    answer = runner.run_module("ansible.builtin.command", asked, {"stdout": str}, {}, seconds)["stdout"]
    code, _blank, said = answer.partition(" ")
    if code != "0":
        raise HostFailed((said.strip().splitlines() or ["it gave no reason"])[-1], runner.name)
    return str(said)


def parse_free(said: str) -> int:
    """Return the free MiB in the last line of ``df -Pk``. Untrusted input. Raises ValueError."""
    words = (said.splitlines() or [""])[-1].split()
    if len(words) < 4 or not words[3].isdigit():
        raise ValueError(f"df does not say how much room there is, but {said[:200]!r}")
    return int(words[3]) >> 10
