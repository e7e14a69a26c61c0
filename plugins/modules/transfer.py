#!/usr/bin/python

# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: transfer
short_description: Move a file tree from one inventory host to another
version_added: 0.1.0
author:
  - longhaul.fleet maintainers (@longhaul-fleet)
description:
  - Copies a file tree, or a single file, directly from one inventory host to another; the data does not pass through
    the control node.
  - Both hosts are reached through Ansible's own connection and privilege escalation. They need no permanent
    credentials for each other; some are created for one transfer and removed afterwards. O(trust) says whether the
    hosts trust each other.
  - A transfer compares with what the destination has. An interrupted transfer resumes when the task is run again, and a
    complete one then sends nothing and changes nothing.
  - Every entry is accounted for. A transfer that cannot account for every entry fails, and lists the missing ones.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.action
  - longhaul.fleet._attributes.change
  - longhaul.fleet._owner_map
attributes:
  check_mode:
    details:
      - Predicts the counts and the changes. Nothing is written at the destination.
      - RV(bytes_sent) is then the size of all files that would be sent, since only the transfer itself determines which
        parts of a changed file differ.
      - Contents are not read. A file that differs only in its content, neither in size nor in time, is counted only
        with O(checksum=true), although a transfer with O(verify=checksum) finds and repairs it.
  diff_mode:
    details:
      - Lists the changes in RV(changes), itemized like rsync's.
  idempotent:
    details:
      - By size and modification time, like rsync; with O(checksum=true) by content.
  platform:
    details:
      - Both hosts need Python 3.8 or newer, and the programs of the chosen O(method).
options:
  src_host:
    description:
      - Inventory host that has the tree.
      - The default is the host of the task.
    type: str
  src:
    description:
      - Absolute path of a directory or of a file on O(src_host). A C(host:path), an rsync URL and a C(~) are refused.
      - As in rsync, a trailing slash means the contents of the directory. Without one the directory itself is created
        inside O(dest).
      - A path that ends in V(/.) or V(/..) also means the contents of the directory that O(src_host) finds there.
      - A single file is possible if O(dest) is a directory, ends with a slash, or ends with the same name as the file.
      - A symbolic link in the path, as in O(dest) and O(link_dest), is followed if it belongs to root or to the user as
        whom the transfer runs there, or if all folders to which it leads belong to its owner. Any other is refused.
    type: str
    required: true
  dest_host:
    description:
      - Inventory host that receives the tree.
      - The default is the host of the task.
    type: str
  dest:
    description:
      - Absolute path of a directory on O(dest_host). If it is missing, it is created together with its parents.
      - On the same machine it must be neither the source nor inside the source, and with O(delete=true) must not
        contain the source.
    type: str
    required: true
  method:
    description:
      - How the data is transferred. RV(method_reason) says why a method was chosen.
      - V(auto) takes the first method that the pair can use, of V(stream), V(rsync); and with O(encryption=none) of
        V(stream), V(rsyncd) (if its daemon can be root), V(tar_nc), V(rsync). An option that only some methods support,
        such as O(rsync_opts), limits it to these. If no port for V(stream) can be reached, it takes one of the methods
        that use the port of ssh.
      - V(stream) is the collection's own engine, over TCP connections from host to host. It is encrypted by TLS 1.3
        with one-time certificates, unless O(encryption=none) declares that the network is trusted. It needs only Python
        on both hosts, spreads one large file over all streams, and resumes inside a file.
      - V(rsync) is rsync over ssh. It is encrypted. It sends only the differing parts of a changed file, and resumes
        inside a file.
      - V(rsyncd) is the rsync daemon's protocol, either to the daemon that O(rsyncd_module) names or to one that is
        started for this transfer, for one peer, with a one-time secret. It is B(not encrypted). It sends and resumes
        like V(rsync).
      - V(tar_nc) is tar through netcat. It is B(not encrypted). It needs no rsync, and if there is no netcat, the
        collection's own is used. It sends a changed file as a whole, and resumes at a shard of the tree (64 MiB, or one
        larger file).
      - V(scp) and V(sftp) are the programs of OpenSSH, for hosts that offer nothing else. V(auto) never chooses them.
        Only the connecting host needs them; the other one answers with a server of the collection that knows the files
        of this transfer alone. They are encrypted. They send a changed file as a whole; V(scp) resumes at a file,
        V(sftp) inside a file.
      - All methods preserve what O(preserve) names. With V(tar_nc), V(scp) and V(sftp) the program transfers the
        contents of the files, and the collection does the rest.
    type: str
    choices: [auto, stream, rsync, rsyncd, tar_nc, scp, sftp]
    default: auto
  encryption:
    description:
      - Whether the data must be encrypted in transit.
      - With V(auto), O(method=auto) chooses only among the encrypted methods. A method without encryption that you name
        runs, with a warning.
      - V(required) refuses a method without encryption.
      - V(none) declares that the network is trusted. O(method=auto) may then take a faster method without encryption.
        An attacker on the network path can read the contents of files and change them.
    type: str
    choices: [auto, required, none]
    default: auto
  trust:
    description:
      - How far the two hosts are trusted. Only the control node decides that, nothing that a host says changes it.
      - With V(full) neither host is expected to attack the other.
      - With V(none) root on either host may try to harm the other one, to read or to change there what is not part of
        the transfer, older copies in O(link_dest) among it. With O(method=auto) only V(stream) is used then, and if a
        host does not support it, the transfer fails instead of using another method.
      - With V(none), V(rsync) can be named if O(link_dest) is not set and the rsync of the host that is connected to can
        be confined to the tree (the job is root there, or rsync is 3.5.0 or newer), without filter rules if that host is
        the destination. It is refused if a known vulnerability of its version is not fixed; see O(rsync_floor). V(sftp)
        can be named if O(link_dest) is not set. V(rsyncd), V(tar_nc) and V(scp) are refused.
      - If this option is not set, it is V(full). The host variable C(longhaul_trust) with the value V(none), of either
        host, means V(none) whatever the task says. Set it in the inventory; among the facts of a host it is refused.
      - The source still decides what arrives in O(dest), with its owners, modes and attributes as far as O(preserve)
        names them. By default these include set-id bits, file capabilities and all extended attributes. With V(none) the
        extended attributes C(trusted.*) and C(security.*), other than capabilities, are neither set nor removed; RV(warnings)
        counts the entries (not with V(rsync)), and they are not compared.
    type: str
    choices: [full, none]
    version_added: 0.2.0
  rsync_floor:
    description:
      - The oldest version of rsync that you accept on both hosts, such as V(3.2.7).
      - If this option is not set, the known vulnerabilities of each host's version count, but for those that the
        changelog of its package names as fixed. With O(trust=full) they cause a warning; with V(none) the method V(rsync)
        is refused.
      - Set it to the version of your hosts if their distribution has fixed the vulnerabilities without a new version, and
        their packages bring no changelog.
    type: str
    version_added: 0.2.0
  delete:
    description:
      - Delete entries at the destination that the source does not have. Entries that the filter rules exclude are
        protected.
      - Nothing is deleted if the source could not be read completely. If it is empty, for example because its file
        system is not mounted, the transfer fails unless O(max_delete) allows the deletions.
      - Entries are deleted at the end. So the contents of a file that was moved at the source are not sent, but taken
        from its old path if its owner is the same and there are new files of 4 MiB or more in all. It is linked to the
        old file, which needs no space, or copied if its attributes have changed or O(max_delete) is set. Not with
        V(rsync) and V(rsyncd).
    type: bool
    default: false
  max_delete:
    description:
      - With O(delete=true), maximum number of entries to delete. If there are more, nothing is deleted and the transfer
        fails.
      - An entry that is replaced by another one is not counted as deleted, but the contents of a replaced directory
        are.
      - Without it, nothing is deleted for an empty source, and O(delete) is refused if O(dest) is the root directory.
    type: int
  filter:
    description:
      - Filter rules in rsync's syntax, for example V(- *.tmp) or V(+ /etc/***). The first rule that matches decides.
      - These rules come first, then those of O(include), then those of O(exclude).
      - Include (V(+)), exclude (V(-)), protect (V(P)), risk (V(R)), hide (V(H)) and show (V(S)) rules are supported;
        rules that read files are refused.
      - A leading slash in a pattern means O(src) itself, whether or not O(src) ends in a slash, also in O(include) and
        O(exclude). With rsync it means the parent directory if there is no trailing slash; a rule that begins with the
        name of O(src), as rsync would need it, is refused, and the message says how to write it.
    type: list
    elements: str
  include:
    description:
      - Patterns in rsync's syntax of entries to transfer even if a pattern in O(exclude) matches them.
      - Each is only a pattern. What rsync's lists interpret as a rule (a V(!), or V(+) or V(-) and a space before a
        pattern) is refused; put such rules into O(filter), in their order.
    type: list
    elements: str
  exclude:
    description:
      - Patterns in rsync's syntax of entries to skip. A leading slash means O(src) itself, as in O(filter).
      - Each is only a pattern, as in O(include).
    type: list
    elements: str
  exclude_if_present:
    description:
      - Names of files, for example V(.nobackup). Of a directory that contains such a regular file, only the directory itself
        and that file are transferred, as by C(tar --exclude-tag). What the file contains does not matter.
      - A file in O(src) itself does not count, so that one file cannot empty a whole transfer.
      - Who may write to a directory of the source can hide the contents of that directory in this way, and nothing else.
      - Nothing in such a directory is deleted at the destination with O(delete), unless a rule in O(filter) says so (V(R)).
      - With the methods V(stream), V(tar_nc), V(scp) and V(sftp); rsync has no such option.
    type: list
    elements: str
    version_added: 0.3.0
  exclude_caches:
    description:
      - The same as O(exclude_if_present) for directories with a file C(CACHEDIR.TAG) that begins with the signature of the
        Cache Directory Tagging Specification. Many programs mark their caches in this way.
    type: bool
    default: false
    version_added: 0.3.0
  checksum:
    description:
      - Compare files by content instead of size and modification time.
      - Reads every file of the same size on both hosts.
    type: bool
    default: false
  compress:
    description:
      - Whether and how the data is compressed in transit.
      - V(auto) compresses only if the link is known to be slow, from O(bwlimit) or the speed of a network interface.
        With V(stream) it measures both alternatives during the transfer, and compresses only when that is faster.
      - V(rsync) and V(rsyncd) support what rsync supports on both hosts, V(tar_nc) supports V(zlib), V(scp) and V(sftp)
        do not compress. V(stream) supports V(zlib), and V(zstd) if both hosts have it, as C(libzstd.so.1), which nearly
        every system has, or in their Python (3.14 and newer); V(auto) then takes V(zstd), which is several times as
        fast. An unsupported algorithm is refused.
    type: str
    choices: [auto, none, zstd, lz4, zlibx, zlib]
    default: auto
  compress_level:
    description:
      - Compression level of the algorithm.
    type: int
  bwlimit:
    description:
      - Maximum rate in bytes per second, over all streams together. V(0) means no limit.
      - With V(stream), the kernel of the source also spaces out the packets of each connection.
      - Units are V(K), V(M), V(G) and V(T), powers of 1024, for example V(50M).
    type: str
    default: "0"
  streams:
    description:
      - Number of parallel streams, with the methods V(stream), V(rsync), V(rsyncd) and V(tar_nc). Use more than one
        when a single stream cannot saturate the link. V(auto) is one. V(scp) and V(sftp) use one, and warn if you
        request more.
      - With V(stream), V(auto) begins with as many as the smaller host has cores, and four at most; with four if the
        round trip is 10 ms or more. If the network is the bottleneck, it tries more, up to 16, and keeps them as long
        as the measured rate grows by a tenth.
      - On a line with a round trip of 10 ms or more, V(auto) closes the connections without which the line stays full,
        so that others have their share. If packets are lost although the line is not full, it makes 16 at once. The
        next transfer between these hosts begins with what the last one found.
      - A fixed number stays that number.
      - As many processes write small files at the destination as V(stream) is told to have streams. With V(auto) these
        are as many as the smaller host has cores, and four at most.
      - Hard links, the times of directories and deletions are correct for any number.
    type: str
    default: auto
  congestion:
    description:
      - TCP congestion control of the connections that carry large files with the method V(stream). It is that of the
        source that counts, since it sends.
      - V(auto) tries BBR on two connections at most where packets are lost although the line is not full, and keeps it
        where they then carry at least a fifth more. It does so only if BBR is loaded on the source and listed in the
        sysctl C(net.ipv4.tcp_allowed_congestion_control). What it found is remembered for a week. V(none) leaves the
        source's default alone.
      - A name, such as V(bbr) or V(cubic), applies to all of these connections. The transfer fails if the source does
        not offer it, and other methods refuse a name. A transfer never loads a kernel module or changes a sysctl.
    type: str
    default: auto
    version_added: 0.2.0
  preserve:
    description:
      - Attributes to preserve. By default everything that the user on the destination may set; RV(warnings) says what
        that leaves out.
      - If you name something that cannot be preserved, the transfer fails before anything is written. V(group) is
        preserved for entries whose group the user on the destination is a member of; RV(warnings) counts the others.
      - A user who is not root on the destination cannot create device nodes, so V(devices) is refused. FIFOs and
        sockets are still preserved if this option is not set.
      - Without V(times), files of the same size and another time are compared by content. With the methods V(rsync) and
        V(rsyncd) they are sent again each time.
      - Access times are not preserved, and reading the source changes its access times, depending on its mount options.
      - V(permissions) is the mode, V(times) the modification time, V(devices) device nodes and other special files, V(sparse)
        the holes of sparse files. Without V(sparse) holes are stored as zeros and take their full size at the destination.
      - Setuid, setgid and file capabilities are preserved only if owner and group at the destination are those of the
        source. Otherwise they are left out, which RV(warnings) counts.
      - V(xattrs) is all extended attributes, as root those of the namespaces trusted and security (such as labels of
        SELinux) among them, unless O(trust=none).
      - If a file at the destination has names outside O(dest), or more names there than the source has of it, its
        attributes are set on a copy that replaces it, so that the other names keep theirs. V(rsync) and V(rsyncd) change
        it for all its names.
      - Attributes that are not preserved are set as by rsync. A new entry gets the mode that the umask of the user on
        the destination allows, the group of a setgid folder, and the default ACL of its folder.
    type: list
    elements: str
    choices: [owner, group, permissions, times, acls, xattrs, hardlinks, devices, sparse]
  numeric_ids:
    description:
      - Keep the numbers of owners and groups, also in ACLs. A warning lists the numbers that belong to another user at
        the destination, with the number of entries; see RV(owner_mismatches).
      - With V(false) names are kept instead, if both hosts have the name. If the destination lacks one, its number is
        kept, with a warning. With the methods V(rsync) and V(rsyncd) the owners of the source are counted first, which
        takes as long as listing it.
    type: bool
    default: true
  owner_warnings:
    description:
      - Whether RV(warnings) includes RV(owner_mismatches). A copy that is not used in place, such as a backup, should
        keep the numbers of its source, regardless of who has them at the destination.
    type: bool
    default: true
  one_file_system:
    description:
      - Do not enter other file systems that are mounted inside the source.
      - What is mounted inside O(dest) is written to in any case. With O(delete), a mount point that the source does not
        have is kept, with all that is in it.
    type: bool
    default: false
  link_dest:
    description:
      - Absolute paths of directories on O(dest_host). A file that is identical there is hard-linked instead of sent.
      - Of a large file that changed, only the changed parts are sent if one of these directories has an older version at
        the same path (O(delta)); the first directory that has one counts. The new file shares the unchanged parts with
        the older one where the file system can do that (btrfs, XFS with reflinks), and is a full copy elsewhere. The
        older version is only read. See RV(bytes_from_basis) and RV(bytes_shared).
      - A linked file is never changed in place. If the attributes of such a file change at the source, it is replaced
        in O(dest) by a copy with the new ones. With V(rsync) and V(rsyncd) this does not apply to files that are in
        O(dest) already, so begin with an empty O(dest).
      - With O(method=rsyncd) it is refused if the source connects to a daemon that is started for the transfer, which
        could write to these directories, too.
      - Except with V(rsync) and V(rsyncd), symlinks and special files are created, not linked, and a correct file that
        is in O(dest) already is left alone.
      - A file is identical if its size, modification time and attributes are. From a snapshot into one that
        M(longhaul.fleet.snapshot) has begun, the change time (ctime) at the source must be the same as well, or the
        contents are compared; not with V(rsync) and V(rsyncd).
      - If one of these directories is the tree of a snapshot, a file that was moved or touched since then is not sent
        either. It is found by its size and time, or by its size and name, its contents are compared, and it is linked
        if its attributes are the same, else copied. Not with V(rsync) and V(rsyncd).
    type: list
    elements: str
  link_dest_exclude:
    description:
      - Paths of files, from the root of O(dest) on and spelled as in RV(errors[].path), that are neither linked to O(link_dest) nor take
        parts from a file there. Such a file is sent whole.
      - Name here what RV(longhaul.fleet.snapshot#module:link_dest_exclude) returns, which is what is known to be damaged.
      - In check mode V(rsync) and V(rsyncd) predict them as if they were linked.
    type: list
    elements: str
    version_added: 0.2.0
  partial:
    description:
      - Keep the received part of a file when a transfer is interrupted, so that the next run resumes it.
    type: bool
    default: true
  delta:
    description:
      - What is sent of a large file if the destination has another version of it, in O(dest) or in O(link_dest).
      - V(auto) is V(blocks) with V(stream). V(rsync) and V(rsyncd) send the parts that differ, wherever they are;
        V(tar_nc), V(scp) and V(sftp) send the whole file.
      - V(none) sends the whole file. That avoids reading the old version, if most of it is known to differ.
      - V(blocks) compares blocks at the same offset, which is fast and finds data that was changed in place or
        appended. Only with V(stream).
      - V(rsync) does that too, but leaves files of a similar size in which hardly any block is at the same offset to
        rsync, which finds content that moved within the file. It runs over ssh after V(stream) has sent the rest, in
        the same task. Only with V(stream). If it cannot be used, a warning says so, and blocks are compared.
    type: str
    choices: [auto, none, blocks, rsync]
    default: auto
  inplace:
    description:
      - Write differences into the existing file at the destination, instead of replacing it with a new file. For large
        files with few changes if there is not enough space for a second copy, such as images of virtual machines.
      - While it is written, and after an interrupted transfer, such a file is a B(mixture of the old and the new
        version). Every reader then sees the mixture, and the old version cannot be restored. Use this option only if
        nothing has these files open. The next run resumes from what was written; until then the file's time marks it as
        incomplete.
      - V(stream) does so with files above 256 KiB that have only one name and keep their owner, others are replaced as
        without this option. One that only changes its owner, and is open for writing, is an error.
      - V(rsync) and V(rsyncd) do so with all files (C(--inplace)), including new ones and those with other names, whose
        content B(changes for all names, also outside) O(dest). V(tar_nc), V(scp) and V(sftp) cannot.
      - Needs C(times) in O(preserve), and cannot be combined with O(link_dest).
    type: bool
    default: false
  verify:
    description:
      - How the trees on both hosts are compared after the transfer. The transfer fails if they differ, and
        RV(differences) lists the differences.
      - With V(size) it succeeds with a warning if every differing entry has changed at the source since the transfer
        began, as in a tree that is in use. RV(unstable) counts them.
      - V(size) compares names, types, sizes, times, links and everything else that O(preserve) names. V(checksum) also
        reads all files on both hosts at the same time and compares their content. V(none) compares nothing.
      - V(checksum) also repairs. Differences are sent again (with V(stream), V(rsync) and V(rsyncd) only the differing
        parts of a large file), and the entries in doubt are compared once more. After three rounds the transfer fails,
        and lists the remaining differences. RV(repaired) lists the repaired files.
    type: str
    choices: [none, size, checksum]
    default: size
  sync:
    description:
      - What the destination's disk must have when the task ends.
      - With V(none) the last data may still be in the destination's memory. If the host loses power within the next
        half minute or so, files that were reported as transferred may be incomplete, with the right size and time, so
        that a rerun overlooks them. A run with O(verify=checksum) finds and repairs them.
      - With V(data) the task ends when everything is on the disk, and fails if the disk did not take it. It waits for
        all that was written to the file systems of O(dest), by other programs, too. C(sync) in RV(phases) says how long. On
        other systems than Linux this is C(sync(8\)), which on FreeBSD returns before UFS has written everything.
    type: str
    choices: [none, data]
    default: none
    version_added: 0.2.0
  timeout:
    description:
      - Seconds without any progress after which the transfer fails. Hashing a large file is progress; signs of life of a
        host that waits are not.
    type: int
    default: 300
  connect:
    description:
      - Which of the two hosts opens the connection for the data.
      - With V(push) the source connects to the destination, with V(pull) the destination to the source.
      - V(auto) is V(push), or V(pull) if only that direction is open.
    type: str
    choices: [auto, push, pull]
    default: auto
  port:
    description:
      - Port that the connecting host connects to.
      - For V(rsync), V(scp) and V(sftp) the port of the other host's ssh server. The default is that host's
        C(longhaul_ssh_port), else its C(ansible_port), else 22.
      - For V(stream), V(rsyncd) and V(tar_nc) the port at which the other host listens. By default a free one is taken.
        With O(rsyncd_module) the port of the daemon, by default 873.
    type: int
  port_range:
    description:
      - Range of ports from which a transfer takes a free one to listen at, for example V(50000-50100). For hosts behind
        a firewall.
      - With V(rsync), V(scp) and V(sftp) an ssh server is then started for this transfer, instead of using the host's.
    type: str
  rsync_opts:
    description:
      - Further options for rsync, each as a separate element, with its value in the same element (C(--max-size=1G)).
      - Options that keep the destination identical to the source are accepted, such as C(--fuzzy), C(--whole-file) and
        C(--fsync).
      - Options that make it differ on purpose, such as C(--copy-links), C(--existing), C(--max-size), C(--chmod) or
        C(--chown), need O(verify=none), because the comparison after the transfer would fail.
      - Options that would break a guarantee of the transfer are refused, and so are those that correspond to an option
        here and unknown ones. The guide to choosing a method lists all of them.
    type: list
    elements: str
  ssh_ciphers:
    description:
      - Ciphers for the methods V(rsync), V(scp) and V(sftp), the preferred one first.
      - By default the fastest that both hosts support. An old cipher such as V(arcfour) is used only if it is named
        here and both hosts still support it.
    type: list
    elements: str
  sftp_buffer_size:
    description:
      - Bytes in one request of V(sftp), its option C(-B).
    type: int
  sftp_requests:
    description:
      - Number of outstanding requests of V(sftp), its option C(-R). More of them help with a long round trip.
    type: int
  rsyncd_module:
    description:
      - With O(method=rsyncd), the module of an existing rsync daemon on the listening host.
      - By default a daemon is started for this transfer and stopped afterwards.
    type: str
  rsyncd_user:
    description:
      - User for O(rsyncd_module).
    type: str
  rsyncd_password:
    description:
      - Password for O(rsyncd_module). It never appears in a command line, log or result.
      - Write a variable here, not the password itself. Ansible's setting C(DISPLAY_ARGS_TO_STDOUT) prints the arguments
        of tasks as they stand in the playbook, those of this option among them, unless C(no_log=true) is set for the task.
    type: str
  wait:
    description:
      - Wait until the transfer is complete.
      - With V(false) the task ends as soon as the transfer runs. The M(longhaul.fleet.transfer_info) module shows its
        progress, and the same task with O(wait=true) attaches to it, waits for its end and returns its result.
    type: bool
    default: true
  collect:
    description:
      - Where the same task ran with O(wait=false) and its transfer has ended by now, return its result, compare as
        O(verify) says, and leave nothing of it on the hosts. Nothing is transferred, so that what changed at the source
        since then is for the next run.
      - With V(false) the trees are gone through again, and what changed since is sent as well.
      - If the transfer still runs, the task attaches to it. If there is none, it is made.
    type: bool
    default: false
    version_added: 0.2.0
notes:
  - The host variable C(longhaul_address) is the address at which the other host reaches this one. The default is
    C(ansible_host) (or its old name C(ansible_ssh_host)), else the host's default address. Set it if bulk data has a
    network of its own.
  - The methods over ssh use the ssh server of the listening host. If none answers, or if it would not admit a one-time
    key, one is started for this transfer, if the program exists.
  - The transfer runs as detached jobs on the hosts. If the control node is lost, the transfer continues; the same task
    then finds it and attaches to it. To stop it, use M(longhaul.fleet.transfer_control).
  - While a transfer runs there is a folder C(/var/lib/longhaul) (C(/var/db/longhaul) on FreeBSD,
    C(~/.local/state/longhaul) for users other than root) on each host, and a folder C(.longhaul-*) in the destination.
    Both are removed when the transfer is complete.
  - The task prints the progress of the transfer; M(longhaul.fleet.transfer_info) shows it, too.
seealso:
  - module: longhaul.fleet.transfer_info
  - module: longhaul.fleet.transfer_control
  - module: longhaul.fleet.verify
  - name: Guides
    description: How to migrate, how to choose a method, what failures mean, and what is encrypted.
    link: https://github.com/longhaul-fleet/longhaul.fleet/tree/main/docs
"""

EXAMPLES = r"""
- name: Copy the contents of /srv/data from the old host to the new one
  longhaul.fleet.transfer:
    src_host: old.example.com
    src: /srv/data/
    dest_host: new.example.com
    dest: /srv/data

- name: Make the destination an exact copy, but never delete more than 1000 entries
  longhaul.fleet.transfer:
    src_host: old.example.com
    src: /srv/data/
    dest: /srv/data
    delete: true
    max_delete: 1000
    exclude:
      - "*.tmp"
      - /cache/

- name: Use the fastest method in a trusted network, and compare the content on both hosts afterwards
  longhaul.fleet.transfer:
    src_host: old.example.com
    src: /srv/data/
    dest: /srv/data
    encryption: none
    streams: 2
    verify: checksum

- name: Collect files from a host that may have been broken into
  longhaul.fleet.transfer:
    src_host: web1.example.com
    src: /srv/uploads/
    dest_host: archive.example.com
    dest: /srv/uploads/web1
    trust: none

- name: Copy one file with at most 20 MiB per second
  longhaul.fleet.transfer:
    src_host: db1.example.com
    src: /var/backups/dump.sql.zst
    dest_host: archive.example.com
    dest: /srv/dumps/
    bwlimit: 20M

- name: Connect from the destination, since the source cannot reach it
  longhaul.fleet.transfer:
    src_host: dmz.example.com
    src: /var/log/app/
    dest_host: archive.example.com
    dest: /srv/logs/dmz
    connect: pull

- name: Start a long transfer and continue the play
  longhaul.fleet.transfer:
    src_host: old.example.com
    src: /srv/media/
    dest: /srv/media
    wait: false

- name: Later, wait for its end
  longhaul.fleet.transfer:
    src_host: old.example.com
    src: /srv/media/
    dest: /srv/media
    collect: true
"""

RETURN = r"""
transfer_id:
  description:
    - Id of the transfer on both hosts. It is the same for the same tree and destination.
  returned: always
  type: str
  sample: 5f3c0d2a9b17e846
state:
  description:
    - Whether the transfer is V(finished), or still V(running) with O(wait=false).
    - While it is running, the counts are preliminary.
  returned: success
  type: str
  sample: finished
method:
  description: The method that was used.
  returned: success
  type: str
  sample: rsync
method_reason:
  description: Why this method was used.
  returned: success
  type: str
  sample: both hosts have rsync, and ssh encrypts
encrypted:
  description: Whether the data was encrypted in transit.
  returned: success
  type: bool
  sample: true
trust:
  description: How far the two hosts were trusted, by O(trust) and the host variable C(longhaul_trust).
  returned: success
  type: str
  sample: full
confinement:
  description:
    - What protected each host in case a program or this collection has a defect, on Linux alone. It is what the hosts say of
      themselves, so the word of a hostile host says nothing. It does not replace O(trust), and what a kernel or a
      container does not offer is missing here, and fails no transfer.
    - C(no_new_privs), no program that ran there could gain rights, as a setuid program does; C(capabilities), root had
      lost the capabilities that the transfer does not need; C(landlock_write), files could only be written below the
      destination directory and in the folder of the transfer's state; C(landlock_read), files could only be read below
      the source directory and where programs and their settings are; C(landlock_scope), signals and connections to
      abstract Unix sockets reached only what the transfer itself had started; C(chroot) and C(confine_root), the rsync of the
      listening side could reach nothing but the directory.
    - A list is empty if a side could not be confined, and on the connecting side, for methods that use ssh, if the
      system's ssh configuration runs programs (C(Match exec), C(KnownHostsCommand)), which may need any right.
  returned: success
  type: dict
  contains:
    source:
      description: On the source.
      type: list
      elements: str
    dest:
      description: On the destination.
      type: list
      elements: str
  sample:
    source: [no_new_privs, capabilities, landlock_write, landlock_read, landlock_scope]
    dest: [no_new_privs, capabilities, landlock_write, landlock_scope]
preserved:
  description: Attributes that were preserved, as in O(preserve).
  returned: success
  type: list
  elements: str
  sample: [permissions, times, acls, xattrs, hardlinks, sparse]
bytes_apparent:
  description:
    - Sum of the sizes of all files of the tree that the filter rules include, as C(ls -l) shows them, with holes.
    - With V(rsync) and V(rsyncd) this and RV(bytes_total) include the targets of symbolic links, as rsync itself counts.
    - V(0) while the transfer is running and the source has not listed the whole tree.
  returned: success
  type: int
  version_added: 0.2.0
  sample: 5905580032
bytes_total:
  description:
    - Content of these files, without holes. Of files up to 256 KiB, holes count.
    - With V(rsyncd) and O(connect=pull), and with filter rules that only rsync can follow, holes count.
  returned: success
  type: int
  sample: 2684354560
bytes_content:
  description:
    - The part of RV(bytes_total) that was sent, before compression. The rest is RV(bytes_matched).
    - With V(rsync) and V(rsyncd), which count holes among what they send, it is the most that it can be.
  returned: success
  type: int
  version_added: 0.2.0
  sample: 1048576
bytes_sent:
  description:
    - Bytes that went over the wire as file content, after compression, without the overhead of ssh, TLS and protocols.
    - V(stream) and V(tar_nc) (with C(sparse) in O(preserve), or bsdtar) leave holes out. V(rsync), V(rsyncd), V(scp) and
      V(sftp) send them as zeros, and these are counted.
    - V(stream) and V(tar_nc) count what they send, V(rsync) and V(rsyncd) take it from C(rsync --stats) (literal data, or,
      if compressed, all bytes sent without the file list), V(scp) and V(sftp) send the sizes of the files.
    - In check mode the space that the files which would be sent will take, RV(bytes_content) if C(sparse) is in
      O(preserve), otherwise their sizes. The transfer itself may send only parts of a changed file (O(delta)), and less
      if it compresses.
  returned: success
  type: int
  sample: 524288
bytes_matched:
  description: The part of RV(bytes_total) that the destination had already.
  returned: success
  type: int
  sample: 2683305984
bytes_from_basis:
  description:
    - Bytes of changed files that were taken from an older version at the destination instead of being sent; part of
      RV(bytes_matched). The older version is the one in O(dest), or else the one at the same path in the first
      O(link_dest) directory that has it.
    - With V(rsync) and V(rsyncd) this is what rsync calls matched data. V(0) with the other methods.
  returned: success
  type: int
  sample: 1063004405
bytes_shared:
  description:
    - Those of RV(bytes_from_basis) that take no additional space, because the file system shares them between the older
      version and the new one (reflinks, as on btrfs and XFS). Only with V(stream).
    - Parts of resumed files are not counted, although the file system may share them, too.
  returned: success
  type: int
  sample: 1063004405
files_total:
  description: Entries of the tree that the filter rules include, of every type.
  returned: success
  type: int
  sample: 54344
files_created:
  description: Entries that the destination did not have.
  returned: success
  type: int
  sample: 12
files_updated:
  description: Entries whose content was replaced.
  returned: success
  type: int
  sample: 3
files_deleted:
  description: Entries that were deleted at the destination.
  returned: success
  type: int
  sample: 0
deleted:
  description: Paths of the first 20 deleted entries, however many changes are listed.
  returned: always
  type: list
  elements: str
  sample: []
files_unchanged:
  description: Entries that were up to date.
  returned: success
  type: int
  sample: 54327
attributes_changed:
  description: Entries with unchanged content whose owner, mode, times or other attributes were set.
  returned: success
  type: int
  sample: 2
vanished:
  description: Files that were removed from the source before they could be read. This is not a failure.
  returned: success
  type: int
  sample: 0
left_out:
  description: Directories whose contents were left out by O(exclude_if_present) or O(exclude_caches).
  returned: success
  type: int
  sample: 3
errors:
  description: Errors for single paths. At most 20 are listed, in diff mode 200.
  returned: always
  type: list
  elements: dict
  contains:
    path:
      description: Path relative to the root of the transfer.
      type: str
      sample: private/key.pem
    reason:
      description: What went wrong.
      type: str
      sample: Permission denied
errors_total:
  description: Number of paths with errors.
  returned: always
  type: int
  sample: 0
errors_unstable:
  description:
    - Number of these that are files that changed at the source each time they were read.
    - Such a file is sent again up to three times, a large one less often, and one of more than 32 MiB once.
  returned: always
  type: int
  sample: 0
only_unstable:
  description: Whether the transfer failed only because of these. If further passes follow, that may be acceptable.
  returned: always
  type: bool
  sample: false
source_missing:
  description: Whether the transfer was refused because O(src) does not exist.
  returned: when the source was refused
  type: bool
  sample: false
changes:
  description:
    - Changes, each line itemized as with C(rsync --itemize-changes), followed by the path.
    - As with rsync, the line of a file begins with V(<) if the source connects (O(connect=push)), and with V(>) if the
      destination does. To find changed files for both directions, match V([<>]f).
    - With a folder of O(link_dest), an entry that this has as well is not listed. It counts as created all the same.
    - At most the first 20, or in diff mode the first 200.
  returned: success
  type: list
  elements: str
  sample:
    - ">f+++++++++ photos/2026/0001.jpg"
    - ".d..t...... photos/2026/"
changes_total:
  description: Number of changes.
  returned: success
  type: int
  sample: 2
changes_truncated:
  description: Whether there were more changes than RV(changes) lists.
  returned: success
  type: bool
  sample: false
owner_mismatches:
  description:
    - Users and groups that own entries of the tree, or occur in their ACLs, and differ between the hosts. RV(warnings)
      lists those whose entries would belong to another user, or for whom the destination has another number.
    - With O(method=rsync) and O(method=rsyncd) they are known from the comparison (O(verify)), in check mode, and with
      O(numeric_ids=false).
    - Owners in O(owner_map) are not included.
  returned: success
  type: list
  elements: dict
  contains:
    type:
      description: V(user) or V(group).
      type: str
      sample: user
    id:
      description: Number on O(src_host), which is also the number of the entries at the destination.
      type: int
      sample: 103
    name:
      description: Name on O(src_host). Empty if it has none.
      type: str
      sample: mysql
    name_there:
      description: Name of the same number on O(dest_host). Empty if it has none.
      type: str
      sample: ""
    id_there:
      description: Number of the name on O(dest_host), V(null) if it does not exist there.
      type: int
      sample: 101
    numeric_ids:
      description: Whether numbers were kept, as in O(numeric_ids).
      type: bool
      sample: true
    entries:
      description: Number of entries.
      type: int
      sample: 214
    path:
      description: Path of the first one, relative to the root of the transfer.
      type: str
      sample: var/lib/mysql
owner_hints:
  description:
    - With RV(owner_mismatches), parts of the tree that have their own users, so that the hosts' names do not apply. A
      system with an C(etc/passwd), the storage of containers, and numbers in the ranges of C(/etc/subuid) and
      C(/etc/subgid).
  returned: success
  type: list
  elements: str
  sample: [/srv/chroot has an etc/passwd of its own]
resumed:
  description:
    - Whether the transfer resumed partial files of an interrupted one.
    - Files that had arrived completely are not sent again either. They count in RV(files_unchanged).
  returned: success
  type: bool
  sample: false
streams:
  description:
    - Number of streams.
    - With V(stream) the number of connections at the end, which is higher than at the beginning if O(streams=auto)
      found that more increase the rate.
  returned: success
  type: int
  sample: 2
attached:
  description: Whether an earlier run had begun the transfer, and this task waited for its end or collected its result.
  returned: success
  type: bool
  sample: false
verified:
  description:
    - Comparison that was made after the transfer and found no difference, as in O(verify), apart from the entries that
      RV(unstable) counts.
    - In check mode, and while the transfer is running, it is V(none).
  returned: success
  type: str
  sample: size
compared:
  description: What the comparison after the transfer looked at.
  returned: when the trees were compared
  type: dict
  version_added: 0.2.0
  contains:
    algorithm:
      description: Hash function that was used to compare content. Empty unless O(verify=checksum).
      type: str
      sample: blake2b
    source:
      description: Totals on O(src_host), as RV(longhaul.fleet.verify#module:source).
      type: dict
      sample: {entries: 54344, bytes: 9642123456, types: {d: 4022, f: 49100, l: 1222}, digest: 5e884898da28047151d0e56f8dc62927}
    dest:
      description: Totals on O(dest_host).
      type: dict
      sample: {entries: 54344, bytes: 9642123456, types: {d: 4022, f: 49100, l: 1222}, digest: 5e884898da28047151d0e56f8dc62927}
by_rsync:
  description: Number of files that were left to rsync, with O(delta=rsync).
  returned: success
  type: int
  sample: 0
repaired:
  description:
    - Paths that differed after the transfer and were sent again, with O(verify=checksum). At most 20 are listed, in diff
      mode 100.
    - RV(warnings) says whether that indicates a failing disk or memory, or something that writes to one of the trees.
  returned: success
  type: list
  elements: str
  sample: [photos/2026/0001.jpg]
repaired_total:
  description: Number of repaired entries.
  returned: success
  type: int
  sample: 1
differences:
  description: Differences between the two trees after the transfer. At most 20 are listed, in diff mode 100.
  returned: when the comparison after the transfer found some
  type: list
  elements: dict
  contains:
    path:
      description: Path relative to the root of the transfer.
      type: str
      sample: photos/2026/0001.jpg
    kind:
      description: V(missing) at the destination, V(extra) there, or V(differs).
      type: str
      sample: differs
    fields:
      description: Fields that differ.
      type: list
      elements: str
      sample: [size, mtime]
differences_total:
  description: How many entries differ.
  returned: when the trees were compared
  type: int
  sample: 0
unstable:
  description:
    - Number of differing entries that changed at the source after the transfer began, by their C(ctime) there.
    - If RV(differences_total) is the same number and O(verify=size), the transfer succeeded. A play that needs
      identical trees must check that RV(differences_total) is 0.
  returned: when the trees were compared
  type: int
  sample: 0
duration:
  description:
    - Seconds from the start of the task to its end.
    - If an earlier run began the transfer, the whole time of the transfer counts.
  returned: success
  type: float
  sample: 81.4
throughput:
  description: RV(bytes_sent) per second while the transfer ran.
  returned: success
  type: int
  sample: 118489088
bottleneck:
  description:
    - What limited the transfer, as far as both hosts can tell.
    - V(stream) accounts for the time of its threads. For the other methods only the processor time of their programs,
      the bytes sent and the use of the disks are known, so the result is often V(none).
    - On Linux the kernel counts how long the disks of both hosts were busy. Of file systems without a device (FUSE, NFS,
      overlay, ZFS) only the time that V(stream) spends in calls is known. Of a ZFS pool its state and fill are said.
  returned: when the transfer has ended
  type: dict
  contains:
    name:
      description:
        - V(source_disk), V(source_cpu), V(network), V(destination_cpu) or V(destination_disk). V(network) includes O(bwlimit).
        - V(none) if the transfer was too short to tell, if nothing stands out or is known, or if nothing was sent, as in
          check mode.
      type: str
      sample: network
    cause:
      description:
        - What made the network or a processor slow, as far as the system tells, with V(stream) on Linux. Over a round trip
          of 10 ms or more, it is V(receive_window) of the destination, V(send_buffer) of the source, V(loss) of packets
          although none waits in a queue, or V(full_line). V(contention) means that the processors had other work, too,
          V(cipher) that they mostly encrypt, V(bwlimit) that O(bwlimit) is reached. Otherwise empty.
      type: str
      sample: full_line
      version_added: 0.2.0
    sentence:
      description: What was slow, for how long, and what would help, in one sentence.
      type: str
      sample: >-
        The destination's disk was busy for 94 % of 312 s (18.0 MiB/s written): a faster disk there, or less other work for
        it (iostat -x), would help; more streams would not.
      version_added: 0.3.0
    evidence:
      description: Evidence, in one sentence.
      type: str
      sample: >-
        the source spent 2 % of its time reading, 4 % with the processor and 94 % waiting to send; the destination spent
        95 % waiting for data, 4 % with the processor and 1 % writing; large files travelled over 2 connections
    advice:
      description: Advice, in one sentence.
      type: str
      sample: The line is full, so only compress, or a faster line, would help
    source:
      description:
        - How the source spent its time, in seconds. C(wall) is the elapsed time, C(processor) the processor time of all
          its threads and programs; with V(stream), C(reading), C(waiting_to_send) and C(throttled) (by O(bwlimit)) are
          waits, summed over all its threads. On Linux C(waiting_for_a_processor) is a part of all of them, and
          C(disk_busy) is the time in which the disk below the tree was busy, with this or anything else.
      type: dict
      sample:
        {wall: 78.1, processor: 6.2, reading: 3.1, waiting_to_send: 147.0, throttled: 0.0, waiting_for_a_processor: 0.4}
    dest:
      description:
        - The same for the destination. With V(stream) the waits are C(waiting_to_receive), C(writing) and C(syncing).
      type: dict
      sample: {wall: 78.1, processor: 7.0, waiting_to_receive: 148.2, writing: 1.3, syncing: 12.5}
phases:
  description: Seconds for each phase of the transfer.
  returned: success
  type: dict
  sample:
    probe: 1.1
    transfer: 78.2
    verify: 2.0
    sync: 0.9
cmd:
  description: Programs that ran on each host, with their arguments, without secrets.
  returned: success
  type: dict
  contains:
    source:
      description: Programs on the source host.
      type: list
      elements: str
    dest:
      description: Programs on the destination host.
      type: list
      elements: str
stderr:
  description: Last lines of the programs' output.
  returned: always
  type: str
  sample: ""
warnings:
  description: Warnings of a successful transfer, for example that it was not encrypted.
  returned: when there are any
  type: list
  elements: str
  sample:
    - The data is not encrypted on its way, since method tar_nc was chosen by name.
"""
