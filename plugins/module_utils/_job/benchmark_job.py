# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure one host of a pair, or the line to the other one, at idle priority. Private to the collection.

A benchmark is a few such jobs, one after the other, under one id. The first one on a host looks for what forbids it, a
transfer or another benchmark, and claims the host, both under one lock. What it writes is in one folder,
``.longhaul-benchmark-<id>`` in the file system of the destination, whose place is noted before it is made; the next
benchmark removes what a killed one left.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import signal
import ssl
import stat
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Iterator, cast

from .._benchmark import disk, processor, tree
from .._benchmark.line_facts import read_host
from .._benchmark.link import BenchmarkStop, LineDriver, LineServer
from .._core.context import Context
from .._core.errors import TransferFailed
from .._core.json_shape import WrongShape, as_object, member
from .._core.mounts import place_of
from .._engine.net import tls
from .._model.filters import FilterError
from .._tree.content_hash import common_algorithm, speeds
from .._tree.descent import DIRECTORY_FLAGS
from .._tree.dirfd import Root
from .._tree.held_root import open_held
from .._tree.resolve import resolve
from .confine_job import confine_reader
from .reporter import Reporter
from .request import BenchmarkRequest, parse_benchmark_request
from .state import BENCHMARK, JobFolder, all_folders, benchmark_lock
from .transfer_job import own_address

if TYPE_CHECKING:
    from types import FrameType
    from typing import TypedDict

    from .._core.settings import Settings

    class HostMeasured(TypedDict, total=False):
        """What a job found; ``gaps`` are sentences on what could not be measured."""

        disk: disk.DiskRates
        tree: tree.TreeCount
        ratio: float
        processor: processor.ProcessorRates
        gaps: list[str]

else:  # making such classes takes time at each job's start
    HostMeasured = dict

_NOTE = "temporary"  # in the job's folder: where the folder with what was written is
_CLAIM = "claim"  # in the job's folder: this benchmark found nothing that forbids it
_MADE_BYTES = 8 << 20  # of data that are written again and again
_FRESH = 60.0  # seconds in which the next job of a benchmark begins
_IDLE = 3 << 13  # the class of I/O priority, ioprio_set(2)
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "riscv64": 30, "ppc64le": 273, "s390x": 282}
_WALK_SHARE = 0.2  # of the seconds, for the tree
PROCESSOR_SHARE = 0.25  # of the seconds at the source, for its processor


def run_benchmark(folder: JobFolder, secrets: dict[str, str], reporter: Reporter) -> int:
    """Be the job that does one part of a benchmark; return the exit code."""
    request = parse_benchmark_request(folder.request)
    signal.signal(signal.SIGTERM, _stop)
    be_idle()
    claim_host(folder)
    if request["work"] in ("serve", "drive"):
        _measure_line(folder, request, secrets, reporter)
        return 0
    reporter.set(state="running")
    reporter.set(state="finished", benchmark=measure(folder, request, secrets))
    return 0


def _measure_line(folder: JobFolder, request: BenchmarkRequest, secrets: dict[str, str], reporter: Reporter) -> None:
    """Be one end of a measurement of the line."""
    context = Context(
        side=request["side"],
        part=request["work"],
        root=os.fsencode(folder.path),
        settings=cast("Settings", {"encrypt": True, "timeout": 0}),
        folder=folder.path,
        peer=request.get("peer"),
        serve=request.get("serve"),
        secrets=secrets,
    )
    host = read_host()
    context.serve["address"] = own_address(context.serve.get("address", ""))
    confine_reader(os.fsencode(folder.path), folder.path, xattrs=False)
    if request["work"] == "drive":
        driver = LineDriver(context, host, request["streams"], request["seconds"], request["bytes"])
        reporter.set(state="running")
        reporter.set(state="finished", benchmark=driver.run())
        return
    server = LineServer(context, host, request["seconds"], request["bytes"])
    try:
        reporter.set(state="serving", ready={"address": server.address, "port": server.port})
        server.wait()
    finally:
        server.close()
    reporter.set(state="finished")


def measure(folder: JobFolder, request: BenchmarkRequest, secrets: dict[str, str]) -> HostMeasured:
    """Do the part of a benchmark that a request asks for. Raises TransferFailed."""
    if request["work"] == "disk" and request["side"] == "source":
        return measure_source(request, partial(_tls_context, folder, secrets))
    if request["work"] == "disk":
        return measure_dest(folder, request)
    if request["work"] == "processor":
        gaps: list[str] = []
        data = tree.made_like(request["ratio"], _MADE_BYTES)
        make = partial(_tls_context, folder, secrets)
        return {"processor": processor.measure(data, make, request["seconds"], gaps.append), "gaps": gaps}
    raise TransferFailed(f"there is no measurement {request['work']} in this version of the engine")


def _tls_context(folder: JobFolder, secrets: dict[str, str], serves: bool) -> ssl.SSLContext:
    """Return what either end of a connection in memory uses; both show the same certificate.

    Raises ValueError if this Python has no TLS 1.3, which is a gap.
    """
    if not ssl.HAS_TLSv1_3:
        raise ValueError("the Python of this host has no TLS 1.3")
    settings = cast("Settings", {})
    own = {**secrets, tls.PEER: secrets.get(tls.CERTIFICATE, "")}
    return tls.make(Context("source", "serve" if serves else "drive", b"", settings, folder.path, secrets=own))


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise BenchmarkStop("the benchmark was stopped")


def be_idle() -> None:
    """Let everything else on this host go first, to the processor and to the disk."""
    with contextlib.suppress(OSError):
        os.nice(19)
    call = _IOPRIO_SET.get(platform.machine())
    if sys.platform == "linux" and call is not None:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).syscall(call, 1, 0, _IDLE)  # of this process


def claim_host(folder: JobFolder) -> None:
    """Have no other benchmark of this user begin here before this one ends; its later jobs have done so.

    Raises TransferFailed beside a transfer or a benchmark that has done so before.
    """
    if os.path.exists(folder.file(_CLAIM)):
        return
    with benchmark_lock():
        refuse_beside(folder)
        with open(folder.file(_CLAIM), "w", encoding="ascii"):
            pass


def refuse_beside(folder: JobFolder) -> None:
    """Raise TransferFailed beside a transfer, or a benchmark that has claimed this host.

    Removes what killed benchmarks left. Called under the lock of all benchmarks.
    """
    for other in all_folders():
        if other.transfer_id == folder.transfer_id:
            continue
        request, status, runs = other.request, other.status, other.is_running()
        of = f"{other.transfer_id} ({other.side} here, with {request.get('peer_name', '')})"
        if request.get("part") != BENCHMARK:
            if runs:
                raise TransferFailed(
                    f"transfer {of} is running on this host, and a benchmark would slow it and measure it: nothing was "
                    "measured. Wait for its end, or cancel it with longhaul.fleet.transfer_control"
                )
            continue
        is_fresh, has_claimed = _last_change(other) > time.time() - _FRESH, os.path.exists(other.file(_CLAIM))
        if has_claimed and (runs or (is_fresh and status.get("state") in (None, "finished"))):
            raise TransferFailed(
                f"benchmark {of} is running on this host, and two of them would measure each other: nothing was "
                "measured. Wait for its end, and run the task again"
            )
        if runs or (is_fresh and not status):
            continue  # it is just being started, and will find this one
        if not remove_temporary(other):
            other.remove()


def _last_change(folder: JobFolder) -> float:
    try:
        return folder.last_change()
    except OSError:  # its benchmark has just ended
        return 0.0


def measure_source(request: BenchmarkRequest, make: processor.MakeContext) -> HostMeasured:
    """Count the tree, read from its disk, and measure the processor on a sample of it.

    The sample stays in this process. Raises TransferFailed if the tree cannot be read.
    """
    path = os.fsencode(request["root"]).rstrip(b"/") or b"/"
    gaps: list[str] = []
    found = resolve(path)
    try:
        if found.status is None or found.error is not None:
            raise TransferFailed(f"there is no {request['root']} to measure, or it cannot be looked at: name another")
        only = None if stat.S_ISDIR(found.status.st_mode) else os.path.basename(found.real)
        root = os.open(b".", DIRECTORY_FLAGS, dir_fd=found.fd)
    except OSError as error:
        raise TransferFailed(f"{request['root']} cannot be read: {error.strerror}. Use become") from error
    finally:
        os.close(found.fd)
    try:
        seen = tree.survey(root, request["rules"], request["one_file_system"], request["seconds"] * _WALK_SHARE, only)
        if seen.unreadable:
            gaps.append(f"{seen.unreadable} entries at the source could not be read, and are not counted.")
        with Root(root) as opened:
            sample = tree.take_sample(opened, seen.large, seen.small, _share_of_large(seen.counted))
            rates = disk.measure_source(
                opened,
                found.folder,
                seen.large,
                seen.small,
                seen.rate,
                request["seconds"] * (1 - _WALK_SHARE - PROCESSOR_SHARE),
                request["bytes"],
                common_algorithm(speeds()),
                gaps.append,
            )
    except FilterError as error:
        raise TransferFailed(str(error)) from error
    finally:
        os.close(root)
    return {
        "tree": seen.counted,
        "ratio": tree.ratio_of(sample),
        "disk": rates,
        "processor": processor.measure(
            sample or tree.made_like(1.0, _MADE_BYTES), make, request["seconds"] * PROCESSOR_SHARE, gaps.append
        ),
        "gaps": gaps,
    }


def _share_of_large(count: tree.TreeCount) -> float:
    return count["large_bytes"] / count["bytes_on_disk"] if count["bytes_on_disk"] else 0.0


def measure_dest(folder: JobFolder, request: BenchmarkRequest) -> HostMeasured:
    """Write to the disk on which the destination is, or will be, and read that back."""
    gaps: list[str] = []
    data = tree.made_like(request["ratio"], _MADE_BYTES)
    try:
        with temporary_folder(folder, request["root"]) as (opened, path):
            rates = disk.measure_dest(
                opened, path, data, request["seconds"], request["bytes"], common_algorithm(speeds()), gaps.append
            )
    except OSError as error:
        rates = disk.unmeasured()
        gaps.append(
            f"The file system of {request['root']} failed while it was measured ({error.strerror}): look at its free "
            "room, its permissions and dmesg."
        )
    return {"disk": rates, "gaps": gaps}


@contextlib.contextmanager
def temporary_folder(folder: JobFolder, dest: str) -> Iterator[tuple[int, bytes]]:
    """Make a private folder in the file system of a destination, and remove it; yields it open, with its path.

    It is beside the destination, or inside, where that is the root of its mount. Raises OSError.
    """
    found = resolve(os.fsencode(dest).rstrip(b"/") or b"/")
    above, path = found.fd, found.folder
    try:
        if found.status is not None and found.real == found.folder:
            beside = os.open(b"..", DIRECTORY_FLAGS, dir_fd=found.fd)
            if place_of(beside) == place_of(found.fd) and os.access(b".", os.W_OK | os.X_OK, dir_fd=beside):
                os.close(above)
                above, path = beside, os.path.dirname(found.folder)
            else:
                os.close(beside)
        name = _temporary_name(folder)
        with open(folder.file(_NOTE), "w", encoding="ascii") as stream:
            json.dump({"folder": os.fsdecode(path)}, stream)
        os.mkdir(name, 0o700, dir_fd=above)
        try:
            opened = os.open(name, DIRECTORY_FLAGS | os.O_NOFOLLOW, dir_fd=above)
            try:
                if os.fstat(opened).st_uid != os.geteuid():
                    raise TransferFailed(
                        f"somebody exchanged the folder that the benchmark made in {os.fsdecode(path)}"
                    )
                yield opened, os.path.join(path, name)
            finally:
                os.close(opened)
        finally:
            _remove(above, name)
            os.unlink(folder.file(_NOTE))
    finally:
        os.close(above)


def _temporary_name(folder: JobFolder) -> bytes:
    return b".longhaul-benchmark-" + folder.transfer_id.encode()


def _remove(above: int, name: bytes) -> None:
    with contextlib.suppress(FileNotFoundError), Root(above) as opened:
        opened.remove(name)


def remove_temporary(folder: JobFolder) -> str:
    """Remove what a killed job wrote; return why it stays, empty if nothing does."""
    try:
        with open(folder.file(_NOTE), encoding="ascii") as stream:
            above = open_held(os.fsencode(member(as_object(json.load(stream), "the note"), "folder", str)))
    except (FileNotFoundError, json.JSONDecodeError):  # it is written before anything is made: half of it means nothing
        return ""
    except (OSError, ValueError, WrongShape, TransferFailed) as error:
        return str(error)
    try:
        _remove(above, _temporary_name(folder))
        os.unlink(folder.file(_NOTE))
    except OSError as error:
        return str(error)
    finally:
        os.close(above)
    return ""
