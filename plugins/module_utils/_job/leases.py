# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Leases: the control node that may work on a job, as its destination keeps it. Private to the collection.

One small file a job, ``<state root>/leases/<id of its transfer>.json``. It expires by the boot id and the clock of this
host, never by that of a control node; a ``firm`` one expires by nothing. The file stays for a month when the lease is
released, so that a control node that was away notices that another one had it meanwhile.

``decide`` is pure; ``do_lease`` reads, decides and writes under a lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import stat
import time
from typing import TYPE_CHECKING, Any, Iterator, Mapping, NamedTuple, cast

from .._core.boot import boot_id, boot_seconds
from .._core.json_shape import WrongShape, as_object, member, number, optional
from .._core.state_folder import StateError, private_folder, replace_file, state_root

if TYPE_CHECKING:
    from typing import TypedDict

    from . import steps

    class StoredLease(TypedDict):
        """What the file holds. Times are seconds of the clock of this boot."""

        holder: str  # the id of a control node's state folder
        who: str  # for people
        boot: str
        since: float
        renewed: float
        life: float  # seconds from the last renewal on
        firm: bool
        released: bool

    class LeaseView(TypedDict):
        """A lease as this host sees it now."""

        holder: str
        who: str
        age: float | None  # seconds since it was taken; None: before this boot
        left: float  # seconds until it expires, 0 if it has
        firm: bool
        released: bool

    class LeaseRow(LeaseView):
        """One of the leases at this host."""

        id: str

    class LeaseResult(TypedDict):
        """What became of a request."""

        held: bool  # by the control node that asked
        found: LeaseView | None  # as it was before; None if there was none
        problem: str  # why the lease cannot be read or kept

else:
    StoredLease = LeaseView = LeaseRow = LeaseResult = dict

LARGEST = 4 << 10  # bytes of a file
LONGEST = 86400.0  # seconds that a lease may live without a renewal
_TEXT = 200  # characters
_HELD = 30.0  # seconds that a process may hold the lock
_RARELY = 0.1  # of its life after which a renewal is written down
_MOST = 1000  # leases that are listed


class Clock(NamedTuple):
    """The clock of this boot. It runs while the host sleeps."""

    boot: str  # empty if the system has no id of it
    now: float


class LeaseDecision(NamedTuple):
    """Answer to a request, and the new content of the file; None: unchanged."""

    held: bool
    written: StoredLease | None = None


def read_clock() -> Clock:
    """Return the time of this host since it was booted."""
    return Clock(boot_id(), boot_seconds())


def parse_lease(value: object) -> StoredLease:
    """Return what a file holds; raise WrongShape for what is no lease."""
    values = as_object(value, "the lease")
    lease: StoredLease = {
        "holder": member(values, "holder", str),
        "who": member(values, "who", str),
        "boot": member(values, "boot", str),
        "since": number(values, "since"),
        "renewed": number(values, "renewed"),
        "life": number(values, "life"),
        "firm": member(values, "firm", bool),
        "released": member(values, "released", bool),
    }
    _check(lease["holder"], lease["who"], lease["life"])
    if not (0 <= lease["since"] < 1e12 and 0 <= lease["renewed"] < 1e12 and len(lease["boot"]) <= 64):
        raise WrongShape("its times or its boot id are out of bounds")
    return lease


def _check(holder: str, who: str, life: float) -> None:
    if not (holder.isascii() and holder.isalnum() and len(holder) <= 64):
        raise WrongShape(f"holder is {holder[:40]!r}, and letters and digits are expected")
    if len(who) > _TEXT or not 0 < life <= LONGEST:
        raise WrongShape("the name of the holder or the life of the lease is out of bounds")


def seconds_left(lease: StoredLease, clock: Clock) -> float:
    """Return the seconds until a lease expires, as if it were not firm; 0 if it has, or was released.

    A clock that stands before the last renewal was started again, whether or not the system names its boots.
    """
    if lease["released"] or lease["boot"] != clock.boot or clock.now < lease["renewed"]:
        return 0.0
    return max(0.0, lease["renewed"] + lease["life"] - clock.now)


def see(lease: StoredLease, clock: Clock) -> LeaseView:
    """Return a lease as it is now."""
    is_of_boot = lease["boot"] == clock.boot and clock.now >= lease["since"]
    return {
        "holder": lease["holder"],
        "who": lease["who"],
        "age": clock.now - lease["since"] if is_of_boot else None,
        "left": seconds_left(lease, clock),
        "firm": lease["firm"],
        "released": lease["released"],
    }


def decide(found: StoredLease | None, asked: steps.LeaseStep, clock: Clock) -> LeaseDecision:
    """Return what becomes of a request.

    ``take`` gets a lease that nobody has, that has expired and is not firm, or with ``takeover`` any. ``renew`` gets
    only what its holder still has: after a lease was another's, its former holder must begin again. ``release`` lets
    others have it at once, unless it is firm. ``look`` changes nothing.
    """
    is_mine = found is not None and found["holder"] == asked["holder"]
    firm = asked.get("firm")
    if asked["act"] == "look":
        return LeaseDecision(is_mine)
    if found is not None and is_mine:
        kept = found["firm"] if firm is None else firm
        released = asked["act"] == "release" and not kept
        return LeaseDecision(True, _renewed(found, asked, clock, kept, released))
    if asked["act"] != "take":
        return LeaseDecision(False)
    is_free = found is None or found["released"] or (not found["firm"] and not seconds_left(found, clock))
    if not is_free and not asked["takeover"]:
        return LeaseDecision(False)
    # What another control node had stopped stays so until somebody says that it is not.
    was_firm = found is not None and found["firm"] and not found["released"]
    new: StoredLease = {
        "holder": asked["holder"],
        "who": asked["who"],
        "boot": clock.boot,
        "since": clock.now,
        "renewed": clock.now,
        "life": asked["life"],
        "firm": was_firm if firm is None else firm,
        "released": False,
    }
    return LeaseDecision(True, new)


def _renewed(
    found: StoredLease, asked: steps.LeaseStep, clock: Clock, firm: bool, released: bool
) -> StoredLease | None:
    """Return the lease of its holder as it is from now on; None if the disk need not know.

    That a host had it a moment ago, too, is not worth a write: many executions begin with a renewal.
    """
    is_other_boot = found["boot"] != clock.boot or clock.now < found["renewed"]
    renewed: StoredLease = {
        **found,
        "who": asked["who"],
        "boot": clock.boot,
        "since": clock.now if is_other_boot or found["released"] else found["since"],
        "renewed": clock.now,
        "life": asked["life"],
        "firm": firm,
        "released": released,
    }
    is_fresh = not is_other_boot and clock.now - found["renewed"] < _RARELY * found["life"]
    is_same = {**renewed, "renewed": 0.0} == {**found, "renewed": 0.0}
    return None if is_same and (is_fresh or released) else renewed


def may_stay(found: StoredLease, written: StoredLease, clock: Clock) -> bool:
    """Return whether a lease may stay if a renewal cannot be written: its holder still has it, and as firm."""
    is_same = all(found[name] == written[name] for name in ("holder", "firm", "released"))
    return is_same and (found["firm"] or seconds_left(found, clock) > 0)


def parse_request(step: Mapping[str, Any]) -> steps.LeaseStep:
    """Return a request of the control node; raise StateError for one that makes no sense."""
    try:
        if step["act"] not in ("take", "renew", "release", "look"):
            raise WrongShape(f"there is no {step['act']!r} of a lease")
        _check(step["holder"], step["who"], number(step, "life"))
        optional(step, "firm", bool)
        optional(step, "record", dict)
    except WrongShape as error:
        raise StateError(f"the lease of job {step['id']} cannot be asked for: {error}") from error
    return cast("steps.LeaseStep", step)


def do_lease(step: Mapping[str, Any]) -> LeaseResult:
    """Do what the control node asks of a lease. What cannot be read or kept is told as a problem."""
    asked, found = parse_request(step), None
    try:
        if asked["act"] == "look":
            found = read_lease(asked["id"])
            return _answer(decide(found, asked, read_clock()).held, found)
        with _locked() as folder:
            try:
                found = read_lease(asked["id"])
            except StateError:
                if asked["act"] != "take" or not asked["takeover"]:
                    raise
            clock = read_clock()
            decision = decide(found, asked, clock)
            if decision.written is not None:
                try:
                    _write(folder, asked["id"], decision.written)
                except StateError:  # such as a full disk: what is there counts as long as it does
                    if found is None or not may_stay(found, decision.written, clock):
                        raise
        return _answer(decision.held, found)
    except StateError as error:
        return {"held": False, "found": None, "problem": str(error)}


def look_at_lease(identity: str) -> LeaseResult:
    """Return the lease of a job without changing it."""
    try:
        return _answer(False, read_lease(identity))
    except StateError as error:
        return {"held": False, "found": None, "problem": str(error)}


def list_leases() -> list[LeaseRow]:
    """Return the leases of all jobs of this user, those that cannot be read left out."""
    clock = read_clock()
    listed: list[LeaseRow] = []
    for name in _names()[:_MOST]:
        with contextlib.suppress(StateError):
            found = read_lease(name)
            if found is not None:
                listed.append({**see(found, clock), "id": name})
    return listed


def remove_forgotten_leases(before: float) -> None:
    """Remove leases that nobody has, and that were not asked for since ``before`` (seconds since 1970)."""
    old = [name for name in _names() if _changed_at(name) < before]
    if not old:
        return
    with contextlib.suppress(OSError, StateError), _locked() as folder:
        clock = read_clock()
        for identity in old:
            with contextlib.suppress(OSError, StateError):  # for a person to look at: see read_lease
                found = read_lease(identity)
                if found is not None and (found["released"] or not (found["firm"] or seconds_left(found, clock))):
                    os.unlink(_path(folder, identity))


def _names() -> list[str]:
    """Return the ids of all jobs that have a lease."""
    try:
        names = sorted(os.listdir(_folder()))
    except OSError:
        return []
    return [name[: -len(".json")] for name in names if name.endswith(".json")]


def _changed_at(identity: str) -> float:
    try:
        return os.lstat(_path(_folder(), identity)).st_mtime
    except (OSError, StateError):
        return math.inf


def read_lease(identity: str) -> StoredLease | None:
    """Return the lease of a job, None if there is none. Raises StateError for what is there and is none."""
    path = _path(_folder(), identity)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            found = os.fstat(stream.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size > LARGEST:
                raise WrongShape("it is no small file of this user")
            return parse_lease(json.loads(stream.read(LARGEST)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise StateError(
            f"{path} cannot be read as the lease of this job: {getattr(error, 'strerror', None) or error}. If no other "
            "control node works on the job, remove that file"
        ) from error


def _answer(held: bool, found: StoredLease | None) -> LeaseResult:
    return {"held": held, "found": None if found is None else see(found, read_clock()), "problem": ""}


def _folder() -> str:
    return os.path.join(state_root(), "leases")


def _path(folder: str, identity: str) -> str:
    if not (identity.isascii() and identity.isalnum() and len(identity) <= 64):
        raise StateError(f"there can be no lease of job {identity[:64]!r}: its id is none")
    return os.path.join(folder, f"{identity}.json")


@contextlib.contextmanager
def _locked() -> Iterator[str]:
    """Hold the lock of all leases of this user, and yield their folder. Processes hold it for a moment only."""
    private_folder(state_root())
    folder = private_folder(_folder())
    path = os.path.join(folder, ".lock")
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(os.open(path, flags, 0o600), "rb") as stream:
            _wait_for_lock(stream.fileno())
            yield folder
    except OSError as error:
        raise StateError(f"{path} cannot be locked: {error.strerror}") from error


def _wait_for_lock(lock: int) -> None:
    deadline = time.monotonic() + _HELD
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES) or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _write(folder: str, identity: str, lease: StoredLease) -> None:
    """Replace a lease, on the disk when this returns. Only who holds the lock may."""
    path = _path(folder, identity)
    try:
        replace_file(path, json.dumps(lease).encode(), f"{path}.part")
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from error
