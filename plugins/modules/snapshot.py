#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: snapshot
short_description: Create, list, search, prune, check and repair the dated snapshots of a backup
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Keeps the snapshots of a job in C(<repository>/<host>/<job>/<UTC time>/). Files that did not change since the
    previous snapshot are hard links to it, so each snapshot is a complete tree and takes only the space of what
    changed.
  - A snapshot is filled under a temporary name by M(longhaul.fleet.transfer), and renamed in one step when it is
    complete and on the disk. A run that is killed at any moment leaves complete snapshots unchanged, and the next run
    resumes the unfinished one.
  - Each snapshot has a manifest with the path, type, size, time, owner, mode, extended attributes and hash of every
    entry. Checks find damage, and report where the contents are still intact.
  - C(history.jsonl) in the folder of the job has a line for each act. It says which snapshot was made, set aside, accepted,
    discarded, pruned or restored, when, and by whom.
  - Runs on the host that has the repository. One run at a time changes the snapshots of a job.
extends_documentation_fragment:
  - longhaul.fleet._attributes
attributes:
  check_mode:
    support: full
    details:
      - With O(action=finish) there is nothing to inspect if O(action=begin) ran in check mode, too. Then RV(name) is
        empty.
      - With O(action=check) the result is not recorded, so the next run reads the same subset.
  diff_mode:
    support: full
    details:
      - Shows the names in the folder of the job and their states.
  idempotent:
    support: full
    details:
      - O(action=begin) and O(action=finish) with the same O(run) change nothing the second time.
options:
  action:
    description:
      - V(begin) creates an unfinished snapshot, or takes over the one that an interrupted run left, and returns where
        the tree belongs and which trees its files can be linked to. Files that an interrupted run had linked to an
        older snapshot are unlinked, so that the transfer cannot change that one; they are linked again at no cost.
      - V(finish) reads the new files, writes the manifest, syncs everything to the disk, gives the snapshot its name,
        and points C(latest) to it. A snapshot beyond O(shrink_limit) or O(change_limit) is set aside instead.
      - V(list) lists the snapshots.
      - V(find) lists the entries of all snapshots of a job, of a host or of the whole repository that O(match) describes.
      - V(history) lists the versions of the path O(path) with different contents, each with the first and the last snapshot that has
        it, and tells after which snapshot the path vanished.
      - V(diff) tells what differs between the snapshots O(old) and O(new), the largest first.
      - These three read manifests alone, no tree. V(find) and V(history) search snapshots that are complete or set aside, and skip with
        a warning what cannot be read.
      - V(prune) removes the complete snapshots that O(keep) does not keep, and remains of earlier removals. It fails
        while a snapshot is set aside. A snapshot from which a restore reads is left to the next prune.
      - V(check) compares snapshots with their manifests, and fails if one is damaged. Damage that an earlier check found and that the
        newest snapshot does not have is a warning. It fails, too, if a snapshot is gone that nothing of this collection removed, and warns
        of that from then on.
      - V(repair) replaces the files that checks found damaged, unreadable or missing, as far as another snapshot of the job has the contents at
        the same path. The new file is read from the disk and compared with the manifest before it takes the place of the damaged one, for
        all names and snapshots that share it. With C(copies) of a job, the role P(longhaul.fleet.backup#role) repairs from other
        repositories, too.
      - V(accept) makes the snapshot O(name), which was set aside, a complete one.
      - V(discard) removes the snapshot O(name), which was set aside, or the unfinished one. Only V(prune) removes
        complete ones. If O(name) is gone already, it says that this was meant, and no check tells of it any more.
      - V(protect) keeps the snapshot O(name), complete or set aside, until O(until), for O(reason), as a legal hold does.
        Whoever asks, V(prune) keeps it, and V(accept) and V(discard) refuse it. It ends by itself when O(until) has passed
        by the clock of this host and by that of the control node, and a complete snapshot is newer, so that a clock that is
        ahead releases nothing. A hold can be made longer, and not shorter.
      - V(unprotect) ends that before, for O(reason).
      - V(adopt_rsnapshot) creates snapshots from those of rsnapshot, as hard links, so that the job continues from
        there.
    type: str
    choices: [begin, finish, list, find, history, diff, prune, check, repair, accept, discard, protect, unprotect,
      adopt_rsnapshot]
    required: true
  repository:
    description:
      - Folder of all backups. It must exist, so that an unmounted disk is not mistaken for an empty repository, and
        must not be a symbolic link.
    type: path
    required: true
  host:
    description:
      - Host that is backed up, as the name of its folder. Required but for O(action=find), which searches all hosts without it.
    type: str
  job:
    description:
      - Backup job of the host, as the name of its folder. Required but for O(action=find), which searches all jobs without it.
    type: str
  run:
    description:
      - Unique token of this run, for O(action=begin) and O(action=finish). Only the run that began a snapshot last can
        finish it.
    type: str
  ended_run:
    description:
      - With O(action=begin), the O(run) of a run that you know to have been aborted by its control node. If its
        transfer is still running, this run takes it over. Without this option that is refused, since the other run may
        be active.
    type: str
  shrink_limit:
    description:
      - With O(action=finish), maximum percentage of the previous snapshot's files that may be missing. If more are
        missing, the snapshot is set aside, C(latest) stays, and nothing is pruned until the snapshot is accepted or
        discarded. V(100) allows everything.
      - So is a snapshot with that many files fewer than the most in the seven complete ones before, and fewer than any of them,
        back to the last one that was accepted, also if these were pruned meanwhile.
      - A first snapshot without any file is refused, since most likely a file system is not mounted; not with V(100).
      - The next run is again compared with the last complete snapshot, and links to the one that was set aside, too.
    type: float
    default: 50
  change_limit:
    description:
      - With O(action=finish), maximum percentage of the previous snapshot's files that may have other contents. If more have, the
        snapshot is set aside as with O(shrink_limit).
      - What is usual for the job is allowed. Up to twice the second largest share in the seven snapshots before, back to the
        last one that was accepted, is no reason, and with fewer than three such shares nothing is judged.
      - V(100) allows everything.
    type: float
    default: 50
    version_added: 0.3.0
  expected_entries:
    description:
      - With O(action=finish), number of entries that the tree must have, from
        RV(longhaul.fleet.transfer#module:files_total) of a transfer.
    type: int
  expected_bytes:
    description:
      - With O(action=finish), number of bytes that its files must have, from
        RV(longhaul.fleet.transfer#module:bytes_apparent) of a transfer. It may include the targets of symbolic links, as
        with the methods of rsync.
    type: int
  keep:
    description:
      - With O(action=prune), which snapshots to keep. A snapshot stays if any rule keeps it. An empty policy is
        refused.
      - The newest complete snapshot always stays, and so do those with a time in the future, since they come from a
        wrong clock. All other rules ignore these.
    type: dict
    suboptions:
      last:
        description: Number of newest snapshots to keep.
        type: int
        default: 0
      hourly:
        description: The newest of each of this many most recent hours that have a snapshot.
        type: int
        default: 0
      daily:
        description: The same for days.
        type: int
        default: 0
      weekly:
        description: The same for weeks, which begin on Monday.
        type: int
        default: 0
      monthly:
        description: The same for months.
        type: int
        default: 0
      yearly:
        description: The same for years.
        type: int
        default: 0
      within:
        description:
          - Keep all that are not older than this, counted back from the newest snapshot, so a job that stopped keeps
            its snapshots.
          - Hours, days (of 24 hours) and weeks, such as V(36h), V(14d) or V(1w2d).
        type: str
        default: ""
  timezone:
    description:
      - Time zone for the calendar of O(keep), such as V(Europe/Berlin). The names of snapshots are always in UTC.
    type: str
    default: UTC
  lazy:
    description:
      - With O(action=prune), only rename the snapshots to names that mark them as removed, which takes a moment. The
        next prune that is not lazy removes them.
    type: bool
    default: false
  control_time:
    description:
      - Seconds since 1970 by the clock of the control node. The task sets it by itself.
      - If the clock of this host is more than a day away, O(action=prune) fails and removes nothing, because a wrong date makes O(keep) keep the
        wrong snapshots. More than an hour is a warning.
    type: int
    version_added: 0.2.0
  by:
    description:
      - Who runs this, for C(history.jsonl). The task sets it by itself, to the user and the name of the control node.
    type: str
    default: ""
    version_added: 0.3.0
  check_level:
    description:
      - How thorough O(action=check) is; each level includes those before it.
      - V(structure) reads facts and manifests, and takes seconds. V(files) looks at every name, its type, size, time, owner, mode and
        attributes. V(contents) reads files.
    type: str
    choices: [structure, files, contents]
    default: contents
  check_subset:
    description:
      - Subset of the contents that one run of O(action=check) reads. With V(1/7), seven consecutive runs read
        everything, each file once. A file that snapshots share is read once for all of them.
      - Such a run looks at all names of the newest snapshot, and of the others in turn, so that seven runs look at all. With V(1/1),
        and of those that O(snapshots) names, it looks at all names.
    type: str
    default: 1/1
  snapshots:
    description:
      - Names of the snapshots to check with O(action=check). By default all that are complete or set aside.
    type: list
    elements: str
  name:
    description:
      - Snapshot for O(action=accept), O(action=discard), O(action=protect) and O(action=unprotect), as in
        RV(snapshots[].name). O(action=discard) also takes V(unfinished).
    type: str
  reason:
    description:
      - With O(action=protect) and O(action=unprotect), why, in one line. C(history.jsonl) keeps it.
    type: str
    default: ""
    version_added: 0.3.0
  until:
    description:
      - With O(action=protect), the last day in UTC, such as V(2027-12-31), a time, such as V(2027-12-31T17:30:00Z), or
        V(forever), which is until O(action=unprotect).
    type: str
    default: ""
    version_added: 0.3.0
  read_only:
    description:
      - With O(action=finish), make the folders of the tree immutable (C(chattr +i)) once the snapshot is complete. Then
        nobody, not even root, can remove, replace or add a file in it by mistake. O(action=prune) and O(action=discard)
        take the flag off.
      - Files have no flag, since later snapshots are linked to them, so root can still write into one.
      - A snapshot that is set aside becomes read-only with the next one that is finished after its acceptance.
      - This needs Linux, root, and a file system that has the flag, such as ext4, XFS or btrfs. Elsewhere a warning says so,
        and the snapshot is complete all the same.
    type: bool
    default: false
    version_added: 0.3.0
  match:
    description:
      - With O(action=find), which entries to list. All conditions that are given must hold; at least one must be.
    type: dict
    version_added: 0.3.0
    suboptions:
      path:
        description: This path in the tree, and all that is below it.
        type: str
      glob:
        description:
          - Pattern of names, such as V(*.conf), or with a slash of whole paths, such as V(etc/**/*.conf). C(*) and C(?) stand for no
            slash, C(**) for any number of folders.
        type: str
      regex:
        description: Regular expression of Python that is found somewhere in the path.
        type: str
      type:
        description: V(f) files, V(d) folders, V(l) symbolic links, V(p) FIFOs, V(s) sockets, V(b) and V(c) devices.
        type: str
        choices: [f, d, l, p, s, b, c]
      size_min:
        description: Files of at least this many bytes, such as V(1048576), V(1M) or V(10G).
        type: str
      size_max:
        description: Files of at most this many bytes.
        type: str
      owner:
        description: Number of the owner. Snapshots have no names of users.
        type: int
      group:
        description: Number of the group.
        type: int
      newer:
        description: Modified at this time or later, in UTC, such as V(2026-11-21), V(2026-11-21 17:30) or V(2026-11-21T17:30:09Z).
        type: str
      older:
        description: Modified before this time.
        type: str
  path:
    description:
      - With O(action=history), a path in the tree, as the results of this module show it.
    type: str
    version_added: 0.3.0
  old:
    description:
      - With O(action=diff), the name of the older snapshot. By default the complete one before O(new).
    type: str
    version_added: 0.3.0
  new:
    description:
      - With O(action=diff), the name of the newer snapshot. By default the newest complete one.
    type: str
    version_added: 0.3.0
  limit:
    description:
      - How many paths, versions, or differences of each kind a result lists at most, up to 5000. It tells how many there are in all.
    type: int
    default: 200
    version_added: 0.3.0
  rsnapshot_root:
    description:
      - rsnapshot's C(snapshot_root), for O(action=adopt_rsnapshot). It must be on the file system of the repository.
        Nothing in it is changed. Do not run rsnapshot on it any more, because without its C(link_dest) it sets modes
        and owners of files that are now shared.
    type: path
  rsnapshot_path:
    description:
      - Path of this job's tree below each of rsnapshot's folders, such as V(localhost/srv/data). Empty for the whole
        folder.
    type: str
    default: ""
  rsnapshot_levels:
    description:
      - Names of rsnapshot's levels (its C(retain) lines).
    type: list
    elements: str
    default: [hourly, daily, weekly, monthly, yearly, alpha, beta, gamma, delta, epsilon]
seealso:
  - module: longhaul.fleet.transfer
  - name: The format of snapshots
    description: What each name in a repository means, and how each step is made safe.
    link: https://github.com/longhaul-fleet/longhaul.fleet/blob/main/docs/snapshot-format.md
"""

EXAMPLES = r"""
- name: Begin a snapshot on the backup host
  longhaul.fleet.snapshot:
    action: begin
    repository: /srv/backup
    host: web1
    job: data
    run: "{{ backup_run }}"
  delegate_to: vault
  register: begun

- name: Fill it
  longhaul.fleet.transfer:
    src_host: web1
    src: /srv/data/
    dest_host: vault
    dest: "{{ begun.path }}"
    link_dest: "{{ begun.link_dest }}"
    link_dest_exclude: "{{ begun.link_dest_exclude }}"
    delete: true
  register: transferred

- name: Finish it
  longhaul.fleet.snapshot:
    action: finish
    repository: /srv/backup
    host: web1
    job: data
    run: "{{ backup_run }}"
    expected_entries: "{{ transferred.files_total }}"
    expected_bytes: "{{ transferred.bytes_apparent }}"
  delegate_to: vault

- name: Find all versions of a configuration file, on all hosts
  longhaul.fleet.snapshot:
    action: find
    repository: /srv/backup
    match: {glob: etc/**/nginx.conf}

- name: List the versions of one file
  longhaul.fleet.snapshot:
    action: history
    repository: /srv/backup
    host: web1
    job: data
    path: photos/one.jpg

- name: Tell what the last backup changed
  longhaul.fleet.snapshot:
    action: diff
    repository: /srv/backup
    host: web1
    job: data

- name: Keep a week, five weeks and a year
  longhaul.fleet.snapshot:
    action: prune
    repository: /srv/backup
    host: web1
    job: data
    keep:
      daily: 7
      weekly: 5
      monthly: 12
    timezone: Europe/Berlin

- name: Read a seventh of everything each night
  longhaul.fleet.snapshot:
    action: check
    repository: /srv/backup
    host: web1
    job: data
    check_subset: 1/7

- name: Keep a snapshot for a court, whatever the retention is
  longhaul.fleet.snapshot:
    action: protect
    repository: /srv/backup
    host: web1
    job: data
    name: 2026-11-21T173009Z
    until: "2031-12-31"
    reason: "case 4711, asked for by the legal department"

- name: Adopt the snapshots of rsnapshot
  longhaul.fleet.snapshot:
    action: adopt_rsnapshot
    repository: /srv/backup
    host: web1
    job: data
    rsnapshot_root: /srv/rsnapshot
    rsnapshot_path: web1/srv/data
"""

RETURN = r"""
name:
  description: Name that the snapshot will get, or has got.
  returned: with O(action=begin) and O(action=finish)
  type: str
  sample: 2026-11-21T173009Z
path:
  description: Path for the tree of the snapshot. It stays the same from run to run, so an interrupted transfer is found
    again.
  returned: with O(action=begin)
  type: str
  sample: /srv/backup/web1/data/.unfinished/data
link_dest:
  description: Trees whose unchanged files can be linked to, that of a newer snapshot that was set aside before that of RV(base). Empty
    for the first snapshot, and if nothing says what the contents of the files before must be or too many of them are damaged.
  returned: with O(action=begin)
  type: list
  elements: str
  sample: [/srv/backup/web1/data/2026-11-20T173002Z/data]
link_dest_exclude:
  description: Paths in them of files that are known to be damaged, for O(longhaul.fleet.transfer#module:link_dest_exclude).
  returned: with O(action=begin)
  type: list
  elements: str
  sample: [photos/2026/0001.jpg]
base:
  description: Name of the previous snapshot whose manifest is intact. Empty for the first.
  returned: with O(action=begin)
  type: str
  sample: 2026-11-20T173002Z
finished:
  description:
    - Whether this O(run) finished its snapshot already. Then there is nothing to transfer, RV(name) is that snapshot, RV(path) its tree,
      and O(action=finish) changes nothing.
  returned: with O(action=begin)
  type: bool
  sample: false
resumed:
  description: Whether there was an unfinished snapshot.
  returned: with O(action=begin)
  type: bool
  sample: false
aside:
  description: Why the snapshot was set aside. Empty if it is complete.
  returned: with O(action=finish)
  type: str
  sample: ""
unproven:
  description: Paths of a copy of another repository's snapshot that its manifest does not describe, at most 1000. Empty for any other
    snapshot.
  returned: with O(action=finish)
  type: list
  elements: str
  sample: []
figures:
  description: Totals of the snapshot. Empty in check mode if nothing was begun.
  returned: with O(action=finish)
  type: dict
  contains:
    entries:
      description: The entries of the tree, with its root.
      type: int
      sample: 54344
    files:
      description: The regular files among them.
      type: int
      sample: 50000
    bytes:
      description: The bytes in these.
      type: int
      sample: 2684354560
    new_files:
      description: Regular files that are not shared with the previous snapshot, at any path.
      type: int
      sample: 12
    new_bytes:
      description: The bytes in these, without holes. A file system that shares parts of files (btrfs, XFS) may store fewer; see
        RV(longhaul.fleet.transfer#module:bytes_shared) of the transfer.
      type: int
      sample: 1048576
    before:
      description: Names in the previous snapshot that are not folders.
      type: int
      sample: 49991
    gone:
      description: Those of them that are missing in this one.
      type: int
      sample: 3
    unreadable:
      description: The files that have no hash because this user may not read them.
      type: int
      sample: 0
    healed:
      description: The files that a check had found damaged in the previous snapshot, and that the source sent again.
      type: int
      sample: 0
    changed:
      description: Regular files that the previous snapshot has with other contents.
      type: int
      sample: 12
    files_before:
      description: Regular files in the previous snapshot.
      type: int
      sample: 49980
    moved:
      description: Regular files that are shared with the previous snapshot, where they have another path.
      type: int
      sample: 75
space:
  description: The room on the file system of the repository.
  returned: with O(action=list)
  type: dict
  version_added: 0.3.0
  contains:
    bytes_total:
      description: Its size.
      type: int
      sample: 4000787030016
    bytes_free:
      description: The bytes that users other than root can still write.
      type: int
      sample: 1200236109004
    files_total:
      description: The number of inodes, V(null) if it is not fixed.
      type: int
      sample: 244195328
    files_free:
      description: The inodes that are free, V(null) if their number is not fixed.
      type: int
      sample: 230112233
snapshots:
  description: The snapshots, the oldest first, then the unfinished one.
  returned: with O(action=list)
  type: list
  elements: dict
  contains:
    name:
      description: The name in the folder of the job.
      type: str
      sample: 2026-11-21T173009Z
    path:
      description: The tree.
      type: str
      sample: /srv/backup/web1/data/2026-11-21T173009Z/data
    state:
      description:
        - V(complete); V(aside), if suspiciously much is gone or has changed; V(unfinished); or V(removing), if its removal
          was interrupted or postponed.
      type: str
      sample: complete
    complete:
      description: Whether it is complete.
      type: bool
      sample: true
    latest:
      description: Whether C(latest) points to it.
      type: bool
      sample: true
    time:
      description: When it began.
      type: str
      sample: "2026-11-21T17:30:09Z"
    age:
      description: Seconds since then. Negative if it is in the future.
      type: int
      sample: 3600
    entries:
      description: Number of entries. V(null) if it is not finished.
      type: int
      sample: 54344
    size:
      description: The bytes of its files.
      type: int
      sample: 2684354560
    new_data:
      description: Bytes of the files that it does not share with the previous snapshot as a whole. A file system that
        shares parts of files (btrfs, XFS) may store fewer.
      type: int
      sample: 1048576
    origin:
      description: Where its tree came from, V(transfer), V(rsnapshot), or V(copy) for one of another repository.
      type: str
      sample: transfer
    reason:
      description: Why it was set aside.
      type: str
      sample: ""
    verified:
      description: When all its contents were last verified. With subsets, the oldest time of a subset. V(null) if never.
      type: str
      sample: "2026-11-21T18:00:00Z"
    checked:
      description: When it was last checked, at any level. V(null) if never.
      type: str
      sample: "2026-11-21T18:00:00Z"
    damaged:
      description: Up to 20 paths that checks found damaged or changed.
      type: list
      elements: str
      sample: []
    problem:
      description: Why its details cannot be read. Usually empty.
      type: str
      sample: ""
    protected:
      description: Whether it must stay, by O(action=protect).
      type: bool
      sample: true
    hold:
      description: The protection, also if it has ended, with C(reason), C(until) (a time in UTC or V(forever)), C(by) and C(since). Empty
        if there is none.
      type: dict
      sample: {reason: case 4711, until: "2032-01-01T00:00:00Z", by: alice on control, since: "2026-11-22T08:00:00Z"}
    read_only:
      description: Whether it was finished with O(read_only).
      type: bool
      sample: false
hold:
  description: The protection of the snapshot that there is now, as in RV(snapshots[].hold).
  returned: with O(action=protect) and O(action=unprotect)
  type: dict
  sample: {reason: case 4711, until: "2032-01-01T00:00:00Z", by: alice on control, since: "2026-11-22T08:00:00Z"}
found:
  description: What was found, by host, job and path. Each stands once, as the newest snapshot has it that does.
  returned: with O(action=find)
  type: list
  elements: dict
  contains: &entry
    host:
      description: With O(action=find), the host.
      type: str
      sample: web1
    job:
      description: With O(action=find), the job.
      type: str
      sample: data
    path:
      description: The path in the tree. Characters that cannot be printed are escaped, as in rsync's output.
      type: str
      sample: photos/one.jpg
    type:
      description: As in O(match.type).
      type: str
      sample: f
    size:
      description: The bytes of a file.
      type: int
      sample: 1048576
    mtime:
      description: When it was modified.
      type: str
      sample: "2026-11-20T09:12:44Z"
    mode:
      description: Its permissions, in octal.
      type: str
      sample: "0644"
    owner:
      description: Number of its owner.
      type: int
      sample: 1000
    group:
      description: Number of its group.
      type: int
      sample: 1000
    content:
      description: Hash of its contents. Empty if it is no file, or could not be read.
      type: str
      sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    first:
      description: The oldest snapshot that has it, or this version of it.
      type: str
      sample: 2026-11-18T013000Z
    last:
      description: The newest snapshot that has it, or this version of it.
      type: str
      sample: 2026-11-21T013000Z
    snapshots:
      description: How many snapshots have it, or this version of it.
      type: int
      sample: 4
    versions:
      description: With O(action=find), how many different contents it has in them.
      type: int
      sample: 2
found_total:
  description: How many paths were found in all. V(null) if there are more than 200000 in a job.
  returned: with O(action=find)
  type: int
  sample: 1
matches:
  description: How many entries match, in all snapshots together.
  returned: with O(action=find)
  type: int
  sample: 4
searched:
  description: How many snapshots were searched.
  returned: with O(action=find) and O(action=history)
  type: int
  sample: 12
unsearched:
  description: Up to 50 snapshots that were not searched, or not to their end, each with C(host), C(job), C(snapshot) (empty for the
    folder of the job; so is C(job) for the folder of the host) and C(reason).
  returned: with O(action=find) and O(action=history)
  type: list
  elements: dict
  sample: []
versions:
  description: The versions of the path, the oldest first. Contents that come back are no new version.
  returned: with O(action=history)
  type: list
  elements: dict
  contains: *entry
versions_total:
  description: How many versions there are.
  returned: with O(action=history)
  type: int
  sample: 2
vanished:
  description: Empty if the newest snapshot has the path. Else C(last), the newest one that has it, and C(gone_in), the one after that.
  returned: with O(action=history)
  type: dict
  sample: {}
old:
  description: The older snapshot.
  returned: with O(action=diff)
  type: str
  sample: 2026-11-20T013000Z
new:
  description: The newer snapshot.
  returned: with O(action=diff)
  type: str
  sample: 2026-11-21T013000Z
differences:
  description:
    - Lists of entries, the largest first. C(added), C(removed), C(changed) (contents or type), C(renamed) (files with the same contents
      at another path) and C(attributes).
    - Entries are as in RV(found), without C(first), C(last), C(snapshots) and C(versions). Renamed ones have C(old_path), changed ones
      C(old_size), and those with other attributes a list of them, C(attributes).
  returned: with O(action=diff)
  type: dict
  sample: {added: [], removed: [], changed: [], renamed: [], attributes: []}
totals:
  description: For each list in RV(differences), how many there are in all (C(entries)), and the bytes of their files (C(bytes)).
  returned: with O(action=diff)
  type: dict
  sample: {added: {entries: 3, bytes: 1048576}}
kept:
  description:
    - Snapshots that stay, each with the rules that keep it. V(being read) marks one that stays only because a restore
      is reading it; a warning names it. One that O(action=protect)
      keeps has V(protected until) and the time, or V(protected forever).
  returned: with O(action=prune)
  type: dict
  sample: {2026-11-21T173009Z: [latest, daily, weekly, monthly]}
removed:
  description: The snapshots that were removed.
  returned: with O(action=prune)
  type: list
  elements: str
  sample: [2026-11-10T173001Z]
leftovers:
  description: Remains of an earlier removal that this run removed, unless it was O(lazy).
  returned: with O(action=prune)
  type: list
  elements: str
  sample: []
sound:
  description: Whether no problem was found.
  returned: with O(action=check)
  type: bool
  sample: true
checked:
  description: What was checked.
  returned: with O(action=check)
  type: dict
  contains:
    snapshots:
      description: The names of the snapshots.
      type: list
      elements: str
      sample: [2026-11-20T173002Z, 2026-11-21T173009Z]
    entries:
      description: Entries that were checked, in all snapshots together.
      type: int
      sample: 108688
    files_read:
      description: The files whose contents were read.
      type: int
      sample: 7160
    bytes_read:
      description: The bytes in them.
      type: int
      sample: 383479222
    not_permitted:
      description: Files and folders that this user may not read, and that were skipped.
      type: int
      sample: 0
    parts:
      description: Parts of the contents that were read, of RV(checked.of), counted from 0.
      type: list
      elements: int
      sample: [3]
    of:
      description: Number of parts.
      type: int
      sample: 7
problems:
  description: Problems that were found. At most 200 are listed.
  returned: with O(action=check)
  type: list
  elements: dict
  contains:
    kind:
      description:
        - V(structure), V(missing), V(extra), V(differs) (type, size, time, owner, mode, attributes), V(damaged) (contents) or V(unreadable).
      type: str
      sample: damaged
    path:
      description: Path in the tree. V(null) for the snapshot itself.
      type: str
      sample: photos/2026/0001.jpg
    detail:
      description: What was found.
      type: str
      sample: its contents are 5f3c0d2a9b17e846… and were 0d2a9b17e8465f3c… (sha256)
    snapshots:
      description: Snapshots with this problem.
      type: list
      elements: str
      sample: [2026-11-20T173002Z, 2026-11-21T173009Z]
    intact_in:
      description: Snapshots that have the same contents in another file, which was read in this run and is intact.
      type: list
      elements: str
      sample: [2026-11-10T173001Z]
    known:
      description: Whether an earlier check found it in all these snapshots, and the newest snapshot is not among them. Such a problem
        does not fail the task.
      type: bool
      sample: false
problems_total:
  description: Number of problems. The same one in several snapshots counts once.
  returned: with O(action=check)
  type: int
  sample: 2
repaired:
  description: Paths whose damaged files were replaced. At most 200 are listed.
  returned: with O(action=repair)
  type: list
  elements: dict
  contains:
    path:
      description: The path in the tree.
      type: str
      sample: photos/2026/0001.jpg
    snapshots:
      description: The snapshots in which it was replaced.
      type: list
      elements: str
      sample: [2026-11-20T173002Z, 2026-11-21T173009Z]
    source:
      description: The snapshot that had the contents.
      type: str
      sample: 2026-11-10T173001Z
wanted:
  description: Contents that no snapshot of the job has intact.
  returned: with O(action=repair)
  type: list
  elements: dict
  contains:
    path:
      description: The path in the tree.
      type: str
      sample: photos/2026/0002.jpg
    snapshots:
      description: The snapshots whose manifests have these contents at the path.
      type: list
      elements: str
      sample: [2026-11-21T173009Z]
    size:
      description: The bytes of the file.
      type: int
      sample: 1048576
left:
  description: How much is known to be wrong still, counted for each snapshot.
  returned: with O(action=repair)
  type: int
  sample: 0
adopted:
  description: Snapshots that were created, each with its folder in rsnapshot.
  returned: with O(action=adopt_rsnapshot)
  type: dict
  sample: {2026-11-20T040001Z: daily.0}
present:
  description: The same for those that existed already.
  returned: with O(action=adopt_rsnapshot)
  type: dict
  sample: {}
skipped:
  description: Folders of rsnapshot without O(rsnapshot_path).
  returned: with O(action=adopt_rsnapshot)
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.longhaul.fleet.plugins.module_utils._job.state import destination_holder, source_reader
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot import policy
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.actions import DEFAULTS, Holders, do_action
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.conditions import CONDITIONS, TYPES
from ansible_collections.longhaul.fleet.plugins.module_utils._snapshot.errors import Refused

_COUNT = {"type": "int", "default": 0}


def main() -> None:
    """Do the one thing that was asked for."""
    module = AnsibleModule(
        argument_spec={
            "action": {
                "type": "str",
                "choices": [
                    *("begin", "finish", "list", "find", "history", "diff"),
                    *("prune", "check", "repair", "accept", "discard", "protect", "unprotect", "adopt_rsnapshot"),
                ],
                "required": True,
            },
            "repository": {"type": "path", "required": True},
            "host": {"type": "str"},
            "job": {"type": "str"},
            "run": {"type": "str"},
            "ended_run": {"type": "str"},
            "shrink_limit": {"type": "float", "default": DEFAULTS["shrink_limit"]},
            "change_limit": {"type": "float", "default": DEFAULTS["change_limit"]},
            "expected_entries": {"type": "int"},
            "expected_bytes": {"type": "int"},
            "keep": {
                "type": "dict",
                "options": {**dict.fromkeys(policy.COUNTS, _COUNT), "within": {"type": "str", "default": ""}},
            },
            "timezone": {"type": "str", "default": DEFAULTS["timezone"]},
            "control_time": {"type": "int"},
            "by": {"type": "str", "default": DEFAULTS["by"]},
            "lazy": {"type": "bool", "default": DEFAULTS["lazy"]},
            "check_level": {
                "type": "str",
                "choices": ["structure", "files", "contents"],
                "default": DEFAULTS["check_level"],
            },
            "check_subset": {"type": "str", "default": DEFAULTS["check_subset"]},
            "snapshots": {"type": "list", "elements": "str"},
            "name": {"type": "str"},
            "reason": {"type": "str", "default": DEFAULTS["reason"]},
            "until": {"type": "str", "default": DEFAULTS["until"]},
            "read_only": {"type": "bool", "default": DEFAULTS["read_only"]},
            "match": {
                "type": "dict",
                "options": {
                    **{name: {"type": "str"} for name in CONDITIONS},
                    "type": {"type": "str", "choices": list(TYPES)},
                    "owner": {"type": "int"},
                    "group": {"type": "int"},
                },
            },
            "path": {"type": "str"},
            "old": {"type": "str"},
            "new": {"type": "str"},
            "limit": {"type": "int", "default": DEFAULTS["limit"]},
            "rsnapshot_root": {"type": "path"},
            "rsnapshot_path": {"type": "str", "default": DEFAULTS["rsnapshot_path"]},
            "rsnapshot_levels": {"type": "list", "elements": "str", "default": DEFAULTS["rsnapshot_levels"]},
        },
        required_if=[
            ("action", "begin", ("host", "job", "run")),
            ("action", "finish", ("host", "job", "run")),
            ("action", "list", ("host", "job")),
            ("action", "find", ("match",)),
            ("action", "history", ("host", "job", "path")),
            ("action", "diff", ("host", "job")),
            ("action", "prune", ("host", "job", "keep")),
            ("action", "check", ("host", "job")),
            ("action", "repair", ("host", "job")),
            ("action", "accept", ("host", "job", "name")),
            ("action", "discard", ("host", "job", "name")),
            ("action", "protect", ("host", "job", "name", "until", "reason")),
            ("action", "unprotect", ("host", "job", "name", "reason")),
            ("action", "adopt_rsnapshot", ("host", "job", "rsnapshot_root")),
        ],
        supports_check_mode=True,
    )
    params = module.params
    place = params["repository"], params["host"], params["job"]
    holders = Holders(destination_holder, source_reader)
    try:
        done = do_action(params["action"], place, params, holders, module.check_mode)
    except Refused as refused:
        module.fail_json(msg=str(refused))
    for text in done.warnings:
        module.warn(text)
    if done.failed:
        module.fail_json(msg=done.failed, **done.result)
    module.exit_json(**done.result)


if __name__ == "__main__":
    main()
