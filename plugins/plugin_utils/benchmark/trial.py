# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run each method between two hosts with made data, to see how fast it really is.

The data is one file that cannot be compressed, in a temporary folder of the source. It goes to a temporary folder
beside the destination, so that the destination's own disk counts. Both folders are removed in the end.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.longhaul.fleet.plugins.modules import transfer

from ..common.argument_spec import spec_from_documentation, validate_options
from ..common.refusal import Refusal
from ..common.units import format_bytes
from ..hosts.host_runner import HostFailed, HostRunner, fails_alone
from ..hosts.interruption import Interruption
from ..transfer.diagnosis import SOURCE_DISK
from ..transfer.report import TransferError
from ..transfer.session import Session
from .abilities import PLAIN, Ability
from .candidates import find_parts
from .measurement import Candidate, PairMeasurement
from .recommend import describe

_MIB = 1 << 20
_SIZES = (8, 64, 512, 2048)  # MiB of the file: the largest that a method sends within its time
_LONGEST = 6.0  # seconds that a method should send
_OF_FREE = 4  # the part of the free room that a file may take, in both folders
# Seconds of a module's start in the phase "transfer": docs/benchmarks.md, "start", phase less the job itself.
_MODULE = 0.18
# The exit code of a script, and all that it printed: the module's own answer to a failure has no reason.
_WRAPPED = 'said=$( { %s; } 2>&1 ); printf "%%s %%s" "$?" "$said"'
_MAKE = '{ [ -d "$1" ] || mkdir -m 700 -- "$1"; } && df -Pk "$1"'  # it may run again after a connection that broke
_FILL = 'dd if=/dev/urandom of="$1" bs=1048576 count="$2"'
_REMOVE = 'rm -rf -- "$1"'
_FILL_SECONDS = 600.0  # longer than any other question


@dataclass(frozen=True)
class TrialRequest:
    """Where the made data is on each host, how much it may be, and the options of transfer that apply."""

    folders: Mapping[str, str]  # by side: folders that exist
    bytes: int
    trust: str
    connect: str
    ports: Mapping[str, object]  # the options port and port_range


class Trial:
    """The trial of all methods between two hosts."""

    def __init__(
        self,
        source: HostRunner,
        dest: HostRunner,
        request: TrialRequest,
        say: Callable[[str], None],
        interruption: Interruption,
    ) -> None:
        self._runners = {"source": source, "dest": dest}
        self._request, self._say, self._interruption = request, say, interruption
        name = f"longhaul-benchmark-{secrets.token_hex(8)}"
        self._folders = {side: f"{request.folders[side].rstrip('/')}/{name}" for side in self._runners}
        self._made: set[int] = set()  # sizes in MiB
        self._sent = 0

    def run(
        self, measured: PairMeasurement, abilities: tuple[Ability, ...], candidates: tuple[Candidate, ...]
    ) -> tuple[PairMeasurement, tuple[Candidate, ...]]:
        """Return the candidates as they ran, and the measurement with the gaps that are new.

        A method that fails is not allowed, and says why. Nothing stays on the hosts. Raises HostFailed.
        """
        made: list[str] = []
        try:
            free = {side: self._make_folder(side, made) for side in self._runners}
            most = min(self._request.bytes // _MIB, min(free.values()) // _OF_FREE)
            if most < _SIZES[0]:
                gap = (
                    f"No method was run, since there is room for {most} MiB of made data only; the speeds are derived."
                )
                return replace(measured, gaps=(*measured.gaps, gap)), candidates
            tried = [
                self._try(measured, ability, candidate, most) if ability.runs else candidate
                for ability, candidate in zip(abilities, candidates, strict=True)
            ]
            return replace(measured, bytes_sent=measured.bytes_sent + self._sent), tuple(tried)
        finally:
            self._remove(made)

    def _try(self, measured: PairMeasurement, ability: Ability, candidate: Candidate, most: int) -> Candidate:
        """Return a candidate as it ran."""
        size = choose_size(candidate.plain, most)
        self._say(f"{self._label}: {describe(ability)} sends {format_bytes(size * _MIB)} of made data")
        try:
            file = self._make_file(size)
            result = fails_alone(lambda: self._session(ability, file).run())
        except (HostFailed, Refusal, TransferError) as error:
            return replace(candidate, allowed=False, refused=f"it was tried, and failed: {error}")
        self._sent += size * _MIB
        return apply_trial(measured, ability, candidate, size * _MIB, float(result["phases"].get("transfer", 0.0)))

    def _session(self, ability: Ability, file: str) -> Session:
        source, dest = self._runners["source"], self._runners["dest"]
        given = {
            "src_host": source.name,
            "src": file,
            "dest_host": dest.name,
            "dest": f"{self._folders['dest']}/{secrets.token_hex(4)}/",
            "method": ability.method,
            "encryption": "none" if ability.variant == PLAIN or not ability.cipher else "required",
            "connect": self._request.connect,
            "compress": "none",
            "verify": "size",
            **{name: value for name, value in self._request.ports.items() if value},
            **({"ssh_ciphers": [ability.variant]} if ability.method == "rsync" and ability.variant else {}),
        }
        options = validate_options(given, spec_from_documentation(transfer.DOCUMENTATION), (), "benchmark")
        told = {**options, "trust": self._request.trust}
        return Session(source, dest, told, False, _say_nothing, self._interruption)

    def _make_folder(self, side: str, made: list[str]) -> int:
        """Make the folder of a side, and return the free MiB there."""
        made.append(side)
        return parse_free(run_script(self._runners[side], _MAKE, self._folders[side]))

    def _make_file(self, size: int) -> str:
        """Return the path of a file of so many MiB at the source."""
        file = f"{self._folders['source']}/{size}"
        if size not in self._made:
            run_script(self._runners["source"], _FILL, file, str(size), seconds=_FILL_SECONDS)
            self._made.add(size)
        return file

    def _remove(self, made: list[str]) -> None:
        for side in made:
            folder, runner = self._folders[side], self._runners[side]
            try:
                run_script(runner, _REMOVE, folder)
            except HostFailed as error:
                self._say(f"{folder} on {runner.name} could not be removed; remove it there. {error}")

    @property
    def _label(self) -> str:
        return " -> ".join(runner.name for runner in self._runners.values())


def _say_nothing(_line: str) -> None:
    """Show no progress of a trial."""


def choose_size(rate: float, most: int) -> int:
    """Return the MiB that a method of this derived rate sends in its time, and at most ``most``. Pure."""
    sizes = [min(size, most) for size in _SIZES if size * _MIB <= max(rate * _LONGEST, _SIZES[0] * _MIB)]
    return max(sizes)


def apply_trial(
    measured: PairMeasurement, ability: Ability, candidate: Candidate, sent: int, seconds: float
) -> Candidate:
    """Return a candidate with the speed that was seen when it sent so many bytes. Pure.

    ``seconds`` are those of the phase "transfer", with the start of the method. The made file was in the source's
    memory, so that the source's own disk may still be slower.
    """
    moving = max(seconds - candidate.first_byte - _MODULE, seconds / 4, 1e-3)
    disk = find_parts(measured, ability).rates.get(SOURCE_DISK, 0.0)
    seen = min(sent / moving, disk) if disk else sent / moving
    gain = seen / candidate.plain if candidate.plain else 1.0
    return replace(
        candidate,
        plain=seen,
        processor={side: round(used * gain, 3) for side, used in candidate.processor.items()},
        derived=False,
        limited_by=SOURCE_DISK if disk and seen >= disk else candidate.limited_by,
    )


def run_script(runner: HostRunner, script: str, *words: str, seconds: float = 0.0) -> str:
    """Run a script of the shell on a host, which may run twice, and return what it printed. Raises HostFailed."""
    asked: dict[str, Any] = {"argv": ["sh", "-c", _WRAPPED % script, "sh", *words]}
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
