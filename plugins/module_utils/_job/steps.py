# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that the control node asks of a host, as they are sent. ``commands`` runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Union, cast

from .._core.json_shape import WrongShape, as_object, check_members, member

if TYPE_CHECKING:
    from typing import Literal, TypedDict

    from .request import DigestRequest

    class JobKey(TypedDict):
        """Which job is meant: that of this transfer or comparison, on this side of it."""

        id: str
        side: str

    class _MayProbe(JobKey, total=False):
        child: str  # a name inside the path that is described, too; empty: none
        rsyncd_module: str | None
        link_dest: list[str] | None
        owners: Names | None
        expected: str  # the fingerprint of an earlier probe
        then: list[Step]  # that follow at once where this one has the same

    class Probe(_MayProbe):
        """The results of ``then`` stand among the facts under that name, where they were done."""

        do: Literal["probe"]
        path: str  # absolute
        methods: list[str]  # whose programs are looked at
        ssh_ports: list[int]  # at which an sshd is looked for, where one of the methods uses ssh

    class _MayDescribe(TypedDict, total=False):
        child: str
        rules: list[str]  # what they leave out is not looked at
        owners: Names | None

    class Describe(_MayDescribe):
        do: Literal["describe"]
        path: str

    class _MayStart(JobKey, total=False):
        secrets: list[str]  # names of those that came along and that the job gets
        replace: int | None  # the process of a job that the probe found and that makes way
        then: list[Step]  # that follow at once where the job has finished by now

    class Start(_MayStart):
        """The results of ``then`` stand in the status under that name, and how long they took under then_seconds."""

        do: Literal["start"]
        kind: str  # job, digest, owners, benchmark, consistent, load or drill
        request: Mapping[str, object]  # see request.py
        until: list[str]  # states of a living job that are waited for
        wait: float  # seconds, at most

    class _MayPoll(JobKey, total=False):
        until: list[str]

    class Poll(_MayPoll):
        do: Literal["poll"]
        wait: float

    class Stop(JobKey):
        do: Literal["stop"]
        succeeded: bool  # lets it drop partial files

    class Clear(JobKey):
        do: Literal["clear"]

    class Sync(TypedDict):
        """Its answer has the ``seconds`` that it took."""

        do: Literal["sync"]
        path: str  # of the tree that has to be on the disk

    class _MayControl(TypedDict, total=False):
        state: str | None  # running, paused or cancelled; None: as it is
        bwlimit: str | None  # as transfer has it; None: as it is

    class Control(_MayControl):
        do: Literal["control"]
        ids: list[str] | None  # of transfers; None: all of this user on this host

    class _MayDiscover(TypedDict, total=False):
        tree: str  # whose users are looked for, too, unless that transfer runs; absent: none are

    class Discover(_MayDiscover):
        """What a migration asks of a host; see _migrate/preflight.py."""

        do: Literal["discover"]
        side: str
        path: str
        peer: str  # an address whose port is tried; empty: none is
        port: int
        transfer_id: str  # whose record and lease are returned, too; empty: none

    class FindTreeUsers(TypedDict):
        """See _migrate/tree_users.py."""

        do: Literal["find_tree_users"]
        tree: str
        transfer_id: str  # that writes there itself

    class OverviewStep(TypedDict):
        do: Literal["overview"]
        interval: float  # seconds between two looks at what runs, for its rate; 0: one look

    class KeepRecord(TypedDict):
        do: Literal["keep_record"]
        id: str  # of the job's transfer
        record: Mapping[str, object]

    class _MayHave(TypedDict, total=False):
        firm: bool | None  # whether it expires by nothing; None: as it is
        record: Mapping[str, object] | None  # see KeepRecord: kept first, if the control node has the lease

    class LeaseStep(_MayHave):
        """See leases.py. With ``guard`` no step after it is done where the control node has no lease."""

        do: Literal["lease"]
        id: str  # of the job's transfer
        act: str  # take, renew, release or look
        holder: str
        who: str
        life: float  # seconds
        takeover: bool
        guard: bool

    class Compare(TypedDict):
        """What the tree of a snapshot must be equal to."""

        request: DigestRequest
        sums: str  # of the digest of the source

    class _MayCheck(TypedDict, total=False):
        check: bool  # change nothing, and return what would be
        compare: Compare  # with finish, which completes only a tree that is equal; ``differs`` says that it is not
        then: list[Step]  # that follow where this one was not refused, and found no difference

    class SnapshotStep(_MayCheck):
        """What the module snapshot does; see _snapshot/actions.py. The results of ``then`` stand under that name."""

        do: Literal["snapshot"]
        action: str
        place: list[str]  # the repository, the host and the job
        options: Mapping[str, object]  # that are not as the module has them by default

    class _MayProbeSource(TypedDict, total=False):
        probe: Probe  # of the path as a source; the path that the step itself has does not count

    class InspectSnapshot(_MayProbeSource):
        """See _snapshot/inspect_path.py. What the probe found stands in the result under its name."""

        do: Literal["inspect_snapshot"]
        place: list[str]  # the repository, the host and the job
        name: str  # of the snapshot, or unfinished or latest
        path: str  # in its tree; empty: all of it
        level: str  # structure, files or contents

    class InspectDestination(TypedDict):
        """See _snapshot/overlap.py."""

        do: Literal["inspect_destination"]
        repository: str  # need not exist on this host
        dest: str  # the folder in which the files would arrive
        occupies: str  # the path that must not be there yet

    class ChooseShare(TypedDict):
        """See _snapshot/drill.py."""

        do: Literal["choose_share"]
        place: list[str]  # the repository, the host and the job
        which: str  # newest or random
        seed: str
        share: list[int]  # how many of how many parts
        room: int  # bytes
        entries: int  # that can be made
        always: list[str]  # folders of the tree, all files of which are chosen, too

    class _MayCompare(TypedDict, total=False):
        avoid: list[str]  # make: repositories and sources on this host
        manifest: str  # compare: as base64

    class Scratch(_MayCompare):
        """The scratch folder of a drill; see _snapshot/drill.py."""

        do: Literal["scratch"]
        act: str  # look, make, add (a further one, for a server), compare or remove
        place: str  # the folder that it is in
        name: str
        owner: str  # whose drills may remove it

    class QuickDigest(TypedDict):
        do: Literal["quick_digest"]
        request: DigestRequest
        seconds: float
        then: list[Step]  # that follow where the tree was read

    class LookUpOwners(TypedDict):
        do: Literal["look_up_owners"]
        counted: Mapping[str, list[list[object]]]  # as the source counted them

    class _Question(TypedDict, total=False):
        changed_after_ns: int | None
        buckets: list[int]  # listing
        listing: Mapping[str, object]  # absent, explain
        limit: int  # explain, as the next two
        extras: bool
        absent: list[str]
        keys: list[str]  # details

    class DrillDown(JobKey, _Question):
        do: Literal["drill_down"]
        ask: str  # listing, absent, explain or details

    Names = Mapping[str, list[str]]  # of users and groups
    Step = Union[
        Probe,
        Describe,
        Start,
        Poll,
        Stop,
        Clear,
        Sync,
        Control,
        Discover,
        FindTreeUsers,
        OverviewStep,
        KeepRecord,
        LeaseStep,
        SnapshotStep,
        InspectSnapshot,
        InspectDestination,
        ChooseShare,
        Scratch,
        QuickDigest,
        LookUpOwners,
        DrillDown,
    ]
else:  # making such classes takes time at each execution
    Step = dict

_FOLDER: Mapping[str, type] = {"id": str, "side": str}
_MEMBERS: Mapping[str, Mapping[str, type]] = {
    "probe": {**_FOLDER, "path": str, "methods": list, "ssh_ports": list},
    "describe": {"path": str},
    "start": {**_FOLDER, "kind": str, "request": dict, "until": list},
    "poll": _FOLDER,
    "stop": {**_FOLDER, "succeeded": bool},
    "clear": _FOLDER,
    "sync": {"path": str},
    "control": {},
    "discover": {"side": str, "path": str, "peer": str, "port": int, "transfer_id": str},
    "find_tree_users": {"tree": str, "transfer_id": str},
    "overview": {},
    "keep_record": {"id": str, "record": dict},
    "lease": {"id": str, "act": str, "holder": str, "who": str, "takeover": bool, "guard": bool},
    "snapshot": {"action": str, "place": list, "options": dict},
    "inspect_snapshot": {"place": list, "name": str, "path": str, "level": str},
    "inspect_destination": {"repository": str, "dest": str, "occupies": str},
    "choose_share": {
        "place": list,
        "which": str,
        "seed": str,
        "share": list,
        "room": int,
        "entries": int,
        "always": list,
    },
    "scratch": {"act": str, "place": str, "name": str, "owner": str},
    "quick_digest": {"request": dict, "then": list},
    "look_up_owners": {"counted": dict},
    "drill_down": {**_FOLDER, "ask": str},
}


def parse_step(value: object) -> Step:
    """Return a step; raise WrongShape for one that is unknown here, or that lacks what it must have."""
    values = as_object(value, "a step")
    name = member(values, "do", str)
    if name not in _MEMBERS:
        raise WrongShape(f"there is no step {name} in this version of the engine")
    check_members(values, _MEMBERS[name])
    return cast(Step, values)
