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
  - Copies a file tree, or a single file, directly from one inventory host to another one; the data does not pass through the
    control node.
  - Both ends are started through Ansible's own connection and privilege escalation. The two hosts need no trust in each other
    beforehand; what they need for one transfer is made for that transfer and removed afterwards.
  - The destination is the truth. A transfer that was interrupted goes on when the task is run again, and a transfer that is
    complete sends nothing and changes nothing when the task is run again.
  - Every entry is accounted for. A transfer that cannot account for every entry fails, and says for which ones.
extends_documentation_fragment:
  - longhaul.fleet._attributes
  - longhaul.fleet._attributes.action
  - longhaul.fleet._attributes.change
  - longhaul.fleet._owner_map
attributes:
  check_mode:
    details:
      - The counts and the changes are those that the transfer would have. Nothing is written at the destination.
      - RV(bytes_sent) is then the size of all files that would be sent, since only the transfer itself finds out which parts of a
        changed file differ.
      - Contents are not read. A file that differs in its content alone, neither in size nor in time, counts only with
        O(checksum=true), though a transfer with O(verify=checksum) finds and repairs it.
  diff_mode:
    details:
      - Lists the changes, itemized as rsync does it, and no more of them than RV(changes) holds.
  idempotent:
    details:
      - By size and modification time, as rsync does it; with O(checksum=true) by content.
  platform:
    details:
      - Both hosts need Python 3.8 or newer, and the programs of the chosen O(method).
options:
  src_host:
    description:
      - The inventory host that has the tree.
      - Without it, the host that the task runs for.
    type: str
  src:
    description:
      - The absolute path of a directory or of a file on O(src_host). A C(host:path), an rsync URL and a C(~) are refused.
      - As in rsync, a trailing slash means the contents of the directory. Without one the directory itself is made inside O(dest).
      - A path that ends in V(/.) or V(/..) means the contents, too, of the directory that O(src_host) finds there.
      - A single file is possible where O(dest) is a directory, ends with a slash, or ends with the same name as the file.
    type: str
    required: true
  dest_host:
    description:
      - The inventory host that shall have the tree.
      - Without it, the host that the task runs for.
    type: str
  dest:
    description:
      - The absolute path of a directory on O(dest_host). It is made where it is missing, and so are its parents.
      - On the same machine it must be neither the source nor inside the source, and with O(delete=true) not contain the source.
    type: str
    required: true
  method:
    description:
      - How the bytes travel. RV(method_reason) says why a method was taken.
      - V(auto) takes the first method that the pair can use, of V(stream), V(rsync); and with
        O(encryption=none) of V(stream), V(rsyncd) (where its daemon can be root), V(tar_nc), V(rsync). An option
        that only some methods know, such as O(rsync_opts), leaves it these. Where no port for V(stream) can be reached it takes
        one of the methods that use the port of ssh.
      - V(stream) is the collection's own engine, over TCP connections from host to host. It is encrypted by TLS 1.3 with
        certificates made for this transfer, unless O(encryption=none) says that the network is trusted. It needs nothing but
        Python on both hosts, spreads one large file over all streams, and resumes inside a file.
      - V(rsync) is rsync over ssh. It is encrypted. Of a file that has changed it sends the parts that differ, and it resumes
        inside a file.
      - V(rsyncd) is the rsync daemon's protocol, either to the daemon that O(rsyncd_module) names or to one that is started for
        this transfer, for this one peer, with a secret for one use. It is B(not encrypted). It sends and resumes as V(rsync)
        does.
      - V(tar_nc) is tar through netcat. It is B(not encrypted). It needs no rsync, and where there is no netcat the collection's
        own takes its place. It sends a changed file as a whole, and resumes at a shard of the tree (64 MiB, or one larger file).
      - V(scp) and V(sftp) are the programs of OpenSSH, for hosts that offer nothing else and that trust each other. They are never
        chosen by V(auto), and warn. With V(sftp) the connecting host can read, and where it is the source also write, whatever
        the other host's user may; with V(scp) only scp itself keeps what arrives in its folder. They are encrypted. They send a
        changed file as a whole; V(scp) resumes at a file, V(sftp) inside a file.
      - What O(preserve) names is kept by all of them. With V(tar_nc), V(scp) and V(sftp) the program carries the contents of the
        files, and the collection makes all the rest.
    type: str
    choices: [auto, stream, rsync, rsyncd, tar_nc, scp, sftp]
    default: auto
  encryption:
    description:
      - Whether the data must be encrypted on its way.
      - V(auto) lets O(method=auto) choose among the encrypted methods only. A method without encryption that is chosen by name
        runs, with a warning.
      - V(required) refuses a method without encryption.
      - V(none) says that the network is trusted. O(method=auto) may then take a faster method without encryption.
    type: str
    choices: [auto, required, none]
    default: auto
  delete:
    description:
      - Delete what is at the destination and not at the source. What the filter rules exclude is protected.
      - Nothing is deleted when the source could not be read completely. When it is empty, as it is when its file system is not
        mounted, the transfer fails unless O(max_delete) allows the deletions.
    type: bool
    default: false
  max_delete:
    description:
      - With O(delete=true), the most entries that may be deleted. When there are more, nothing is deleted and the transfer fails.
      - An entry whose place something else takes is not deleted but replaced. What was in a directory that is replaced counts.
    type: int
  filter:
    description:
      - Filter rules in rsync's syntax, for example V(- *.tmp) or V(+ /etc/***). The first rule that matches decides.
      - These rules come first, then those of O(include), then those of O(exclude).
      - Include (V(+)), exclude (V(-)), protect (V(P)), risk (V(R)), hide (V(H)) and show (V(S)) rules are known; rules that read
        files are refused.
      - A leading slash in a pattern means O(src) itself, whether or not O(src) ends in a slash, and so in O(include) and
        O(exclude). With rsync it means the directory above, where there is no slash at the end; a rule that begins with the name
        of O(src), as rsync would need it, is refused, and the message says how to write it.
    type: list
    elements: str
  include:
    description:
      - Patterns in rsync's syntax of what is transferred although a pattern in O(exclude) matches it.
      - Each is a pattern and nothing else. What rsync's lists take for a rule (a V(!), or V(+) or V(-) and a space before a
        pattern) is refused; such rules belong into O(filter), in their order.
    type: list
    elements: str
  exclude:
    description:
      - Patterns in rsync's syntax of what is not transferred. A leading slash means O(src) itself, as in O(filter).
      - Each is a pattern and nothing else, as in O(include).
    type: list
    elements: str
  checksum:
    description:
      - Decide by content what differs. Without it size and modification time decide.
      - Reads every file of the same size on both hosts.
    type: bool
    default: false
  compress:
    description:
      - Whether the data is compressed on its way.
      - V(auto) compresses where the line is known to be slow, by O(bwlimit) or by the speed of a network interface, and not
        otherwise. With V(stream) it measures both ways during the transfer, and compresses what gets there sooner so.
      - V(rsync) and V(rsyncd) offer what rsync offers on both hosts, V(tar_nc) offers V(zlib), V(scp) and V(sftp) offer
        nothing. V(stream) offers V(zlib), and V(zstd) where both hosts have it, as C(libzstd.so.1), which nearly every
        system has, or in their Python (from 3.14 on); V(auto) takes V(zstd) then, which is several times as quick.
        An algorithm that is not offered is refused.
    type: str
    choices: [auto, none, zstd, lz4, zlibx, zlib]
    default: auto
  compress_level:
    description:
      - The level of the compression, in the algorithm's own terms.
    type: int
  bwlimit:
    description:
      - The most bytes a second, over all streams together. V(0) means no limit.
      - Units are V(K), V(M), V(G) and V(T), powers of 1024, for example V(50M).
    type: str
    default: "0"
  streams:
    description:
      - How many streams share the tree, with the methods V(stream), V(rsync), V(rsyncd) and V(tar_nc). Two fill a line that one
        cannot fill. V(auto) is one. V(scp) and V(sftp) have one, and warn where more are asked for.
      - With V(stream) V(auto) begins with as many as the smaller host has cores, and four at most. Where the transfer then waits
        for the network while large files are under way, it tries more, up to 16, and keeps them as long as the measured rate
        grows by a tenth. A number stays that number. As many processes as it begins with write small files at the destination.
      - Hard links, the times of directories and deletions are right whatever the number.
    type: str
    default: auto
  preserve:
    description:
      - What is kept of every entry. Without it everything that the user on the destination may set, and RV(warnings) says what
        that leaves out.
      - Asking by name for something that cannot be kept fails before anything is written. V(group) is kept of every entry whose
        group the user on the destination is a member of; RV(warnings) counts the others.
      - A user who is not root on the destination cannot make device nodes, so V(devices) cannot be asked for. FIFOs and sockets
        are kept all the same where this option is not set.
      - Without V(times), files of the same size and another time are compared by content. With the methods V(rsync) and V(rsyncd)
        they are sent again each time.
      - Access times are not kept, and reading the source changes its own, as its mount options have it.
      - V(permissions) is the mode, V(times) the modification time, V(devices) device nodes and other special files, V(sparse)
        the holes of sparse files. Without V(sparse) holes are stored as zeros and take their full size at the destination.
      - Setuid, setgid and file capabilities are kept only where owner and group at the destination are those of the source.
        Else they are left out, which RV(warnings) counts.
      - What is not preserved is as rsync leaves it. A new entry gets the mode that the umask of the user on the destination
        allows, the group of a setgid folder, and the default ACL of its folder.
    type: list
    elements: str
    choices: [owner, group, permissions, times, acls, xattrs, hardlinks, devices, sparse]
  numeric_ids:
    description:
      - Keep the numbers of owners and groups, in ACLs as well. A warning says which of them belong to somebody else at the
        destination, and how many entries that are; see RV(owner_mismatches).
      - With V(false) names are kept instead, where both hosts have the name. Where the destination lacks one, its number is kept,
        and a warning says so. With the methods V(rsync) and V(rsyncd) the owners of the source are counted first, which takes as
        long as listing it.
    type: bool
    default: true
  owner_warnings:
    description:
      - Whether RV(warnings) speaks of RV(owner_mismatches). A copy that nobody uses where it lies, such as a backup, is meant to
        have the numbers of its source, whoever has them at the destination.
    type: bool
    default: true
  one_file_system:
    description:
      - Do not cross into other file systems that are mounted inside the source.
    type: bool
    default: false
  link_dest:
    description:
      - Absolute paths of directories on O(dest_host). A file that is the same there is linked instead of sent.
      - What was linked is never changed in place. Where the attributes of such a file change at the source, a copy with the new
        ones takes its place in O(dest). With V(rsync) and V(rsyncd) this does not hold for files that are in O(dest) already,
        so begin with an empty O(dest).
      - With O(method=rsyncd) it is refused where the source connects to a daemon that is started for the transfer, which could write
        to these directories, too.
      - Except with V(rsync) and V(rsyncd), symlinks and special files are made anew, and a file that is in O(dest) already and is
        right stays as it is.
    type: list
    elements: str
  partial:
    description:
      - Keep what an interrupted transfer has of a file, so that the next run goes on from there.
    type: bool
    default: true
  delta:
    description:
      - What travels of a large file of which the destination has another version.
      - V(auto) is V(blocks) with V(stream). V(rsync) and V(rsyncd) send the parts that differ, wherever they are; V(tar_nc),
        V(scp) and V(sftp) send the whole.
      - V(none) sends the whole. That saves reading the old version, where most of it is known to differ.
      - V(blocks) compares blocks in their places, which is quick and finds what was changed in place or appended. Only with
        V(stream).
      - V(rsync) does that too, but leaves files of a similar size of which hardly a block is in its place to rsync, which finds
        content that moved within the file. It runs over ssh after V(stream) has sent the rest, in the same task. Only with
        V(stream). Where it cannot be used, a warning says so, and blocks are compared.
    type: str
    choices: [auto, none, blocks, rsync]
    default: auto
  inplace:
    description:
      - Write what differs into the file that is at the destination, instead of building a new file and putting it in its place.
        For large files of which little changes and for which there is no room twice, such as images of virtual machines.
      - While it is written to, and after a transfer that was interrupted, such a file is a B(mixture of the old and the new
        version). Whoever reads it then reads the mixture, and there is no way back to the old version. Use it only where nothing
        has these files open. The next run goes on from what was written, and until then the file's time says that it is not
        complete.
      - V(stream) does so with files above 256 KiB that have one name only, others are replaced as without this option.
        V(rsync) and V(rsyncd) do so with all files (C(--inplace)), new ones too. V(tar_nc), V(scp) and V(sftp) cannot.
      - Needs C(times) in O(preserve), and cannot be combined with O(link_dest).
    type: bool
    default: false
  verify:
    description:
      - What is compared on both hosts after the transfer. The transfer fails where something differs, and RV(differences) says
        what.
      - With V(size) it succeeds, with a warning, where each of the entries that differ has changed at the source since the
        transfer began, as in a tree that is in use. RV(unstable) counts them.
      - V(size) compares names, types, sizes, times, links and what else O(preserve) names. V(checksum) also reads all the files
        on both hosts at the same time and compares their content. V(none) compares nothing.
      - V(checksum) repairs, too. What differs is sent again, of a large file the parts that differ with V(stream), V(rsync) and
        V(rsyncd), and what was in doubt is compared once more. After three rounds the transfer fails, and names what still
        differs. RV(repaired) says what was repaired.
    type: str
    choices: [none, size, checksum]
    default: size
  timeout:
    description:
      - After how many seconds without any progress the transfer fails.
    type: int
    default: 300
  connect:
    description:
      - Which of the two hosts opens the connection for the data.
      - With V(push) the source connects to the destination, with V(pull) the destination to the source.
      - V(auto) is V(push), and V(pull) where only that direction is open.
    type: str
    choices: [auto, push, pull]
    default: auto
  port:
    description:
      - The port that the connecting host connects to.
      - For V(rsync), V(scp) and V(sftp) the port of the other host's ssh server. Without it that host's C(longhaul_ssh_port),
        else its C(ansible_port), else 22.
      - For V(stream), V(rsyncd) and V(tar_nc) the port at which the other host listens. Without it a free one is taken. With
        O(rsyncd_module) the port of the daemon, 873 without this option.
    type: int
  port_range:
    description:
      - The ports among which a transfer takes a free one to listen at, for example V(50000-50100). For hosts behind a firewall.
      - With V(rsync), V(scp) and V(sftp) it means that an ssh server is started for this transfer, instead of using the host's.
    type: str
  rsync_opts:
    description:
      - More options for rsync, each one an element of its own, with its value in the same element (C(--max-size=1G)).
      - Options after which the destination is the same as the source are accepted, such as C(--fuzzy), C(--whole-file) and
        C(--fsync).
      - Options after which it is not the same on purpose, such as C(--copy-links), C(--existing), C(--max-size), C(--chmod) or
        C(--chown), need O(verify=none), because the comparison after the transfer would call it failed.
      - Options that would break what a transfer promises are refused, and so are those that have an option here and those that
        are not known. The guide to choosing a method lists all of them.
    type: list
    elements: str
  ssh_ciphers:
    description:
      - The ciphers for the methods V(rsync), V(scp) and V(sftp), the preferred one first.
      - Without it the fastest that both hosts offer. An old cipher such as V(arcfour) is used only when it is named here and both
        hosts still offer it.
    type: list
    elements: str
  sftp_buffer_size:
    description:
      - The bytes in one request of V(sftp), its option C(-B).
    type: int
  sftp_requests:
    description:
      - The number of requests that V(sftp) has under way, its option C(-R). More of them help on a long line.
    type: int
  rsyncd_module:
    description:
      - The module of an rsync daemon that runs already on the host that is connected to, with O(method=rsyncd).
      - Without it a daemon is started for this transfer and ended after it.
    type: str
  rsyncd_user:
    description:
      - The user for O(rsyncd_module).
    type: str
  rsyncd_password:
    description:
      - The password for O(rsyncd_module). It stands in no command line, log or result.
    type: str
  wait:
    description:
      - Wait until the transfer is complete.
      - With V(false) the task ends when the transfer runs. The M(longhaul.fleet.transfer_info) module says how far it is, and the
        same task with O(wait=true) attaches to it, waits for its end and gives its result.
    type: bool
    default: true
notes:
  - The host variable C(longhaul_address) is the address at which the other host reaches this one. Without it C(ansible_host)
    counts, and else the host's default address. Set it where bulk data has a network of its own.
  - The methods over ssh use the ssh server of the host that is connected to. Where none answers, or where it would not let a
    one-time key in, one is started for this transfer, if the program is there.
  - The transfer runs as detached jobs on the hosts. When the control node is lost, the transfer goes on; the same task then
    finds it and attaches to it. To stop it, use M(longhaul.fleet.transfer_control).
  - While a transfer runs there is a folder C(/var/lib/longhaul) (C(/var/db/longhaul) on FreeBSD, C(~/.local/state/longhaul)
    for users other than root) on each host, and a folder C(.longhaul-*) in the destination. Both go when the transfer is
    complete.
  - To see the progress of the transfer, look at the lines that the task prints, or use M(longhaul.fleet.transfer_info).
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

- name: Use the fastest way through a network that is trusted, and compare the content on both hosts afterwards
  longhaul.fleet.transfer:
    src_host: old.example.com
    src: /srv/data/
    dest: /srv/data
    encryption: none
    streams: 2
    verify: checksum

- name: Copy one file, by day with no more than 20 MiB a second
  longhaul.fleet.transfer:
    src_host: db1.example.com
    src: /var/backups/dump.sql.zst
    dest_host: archive.example.com
    dest: /srv/dumps/
    bwlimit: 20M

- name: Let the destination fetch, since the source cannot reach it
  longhaul.fleet.transfer:
    src_host: dmz.example.com
    src: /var/log/app/
    dest_host: archive.example.com
    dest: /srv/logs/dmz
    connect: pull

- name: Start a long transfer and go on with the play
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
"""

RETURN = r"""
transfer_id:
  description:
    - The name of the transfer on both hosts. It is the same whenever the same tree goes to the same place.
  returned: always
  type: str
  sample: 5f3c0d2a9b17e846
state:
  description:
    - Whether the transfer is V(finished), or still V(running) with O(wait=false).
    - While it is running, the counts are those of the moment.
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
  description: Whether the data was encrypted on its way.
  returned: success
  type: bool
  sample: true
preserved:
  description: What was kept of every entry, as in O(preserve).
  returned: success
  type: list
  elements: str
  sample: [permissions, times, acls, xattrs, hardlinks, sparse]
bytes_total:
  description:
    - The bytes in all the files of the tree that the filter rules let through.
    - With V(rsync) and V(rsyncd) the text of symbolic links is among them, as rsync itself counts.
  returned: success
  type: int
  sample: 2684354560
bytes_sent:
  description:
    - The bytes of file content that travelled, before compression.
    - In check mode the size of all files that would be sent. Of a changed file the transfer itself may send less (O(delta)).
  returned: success
  type: int
  sample: 1048576
bytes_matched:
  description: The bytes of file content that the destination had already.
  returned: success
  type: int
  sample: 2683305984
files_total:
  description: The entries of the tree that the filter rules let through, of every type.
  returned: success
  type: int
  sample: 54344
files_created:
  description: The entries that the destination did not have.
  returned: success
  type: int
  sample: 12
files_updated:
  description: The entries whose content was replaced.
  returned: success
  type: int
  sample: 3
files_deleted:
  description: The entries that were deleted at the destination.
  returned: success
  type: int
  sample: 0
deleted:
  description: The paths of the first 20 of them, however many changes are listed before.
  returned: always
  type: list
  elements: str
  sample: []
files_unchanged:
  description: The entries that were right already.
  returned: success
  type: int
  sample: 54327
attributes_changed:
  description: The entries whose content was right and whose owner, mode, times or other attributes were set.
  returned: success
  type: int
  sample: 2
vanished:
  description: The files that were gone from the source before they could be read. This is not a failure.
  returned: success
  type: int
  sample: 0
errors:
  description: What went wrong with single paths. At most 200 are listed.
  returned: always
  type: list
  elements: dict
  contains:
    path:
      description: The path, relative to the root of the transfer.
      type: str
      sample: private/key.pem
    reason:
      description: What went wrong.
      type: str
      sample: Permission denied
errors_total:
  description: How many paths something went wrong with.
  returned: always
  type: int
  sample: 0
errors_unstable:
  description:
    - How many of those are files that changed at the source each time they were read.
    - Such a file is sent once more up to three times, a large one less often, and one of more than 32 MiB once.
  returned: always
  type: int
  sample: 0
only_unstable:
  description: Whether the transfer failed for those alone. A pass that others follow may go on in that case.
  returned: always
  type: bool
  sample: false
source_missing:
  description: Whether the transfer was refused since there is nothing at O(src).
  returned: when the source was refused
  type: bool
  sample: false
changes:
  description:
    - What changed, each line itemized as with C(rsync --itemize-changes), then the path.
    - As with rsync, the line of a file begins with V(<) where the source connects (O(connect=push)), and with V(>) where the
      destination does. To look for changed files whichever way it went, match V([<>]f).
    - The first 20, or in diff mode the first 200.
  returned: success
  type: list
  elements: str
  sample:
    - ">f+++++++++ photos/2026/0001.jpg"
    - ".d..t...... photos/2026/"
changes_total:
  description: How many changes there were.
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
    - The users and groups that own entries of the tree, or stand in their ACLs, and are not the same on both hosts. RV(warnings)
      names those whose entries somebody else gets, or for whom the destination has another number.
    - With O(method=rsync) and O(method=rsyncd) they are known from the comparison (O(verify)), in check mode, and with
      O(numeric_ids=false).
    - Who is in O(owner_map) is not among them.
  returned: success
  type: list
  elements: dict
  contains:
    type:
      description: V(user) or V(group).
      type: str
      sample: user
    id:
      description: The number on O(src_host), which is also the one that the destination's entries have.
      type: int
      sample: 103
    name:
      description: The name that O(src_host) has for it. Empty where it has none.
      type: str
      sample: mysql
    name_there:
      description: The name that O(dest_host) has for the same number. Empty where it has none.
      type: str
      sample: ""
    id_there:
      description: The number that the name has on O(dest_host), V(null) where it does not exist there.
      type: int
      sample: 101
    numeric_ids:
      description: Whether numbers were kept, as in O(numeric_ids).
      type: bool
      sample: true
    entries:
      description: How many entries of the tree that are.
      type: int
      sample: 214
    path:
      description: The first of them, relative to the root of the transfer.
      type: str
      sample: var/lib/mysql
owner_hints:
  description:
    - With RV(owner_mismatches), what in the tree has users of its own, so that the hosts' names mean nothing for it. A system with
      an C(etc/passwd), the storage of containers, and numbers in the ranges of C(/etc/subuid) and C(/etc/subgid).
  returned: success
  type: list
  elements: str
  sample: [/srv/chroot has an etc/passwd of its own]
resumed:
  description:
    - Whether the transfer continued files that an interrupted one had left in part.
    - Files that had arrived as a whole are not sent again either. They count in RV(files_unchanged), whatever brought them.
  returned: success
  type: bool
  sample: false
streams:
  description:
    - How many streams shared the tree.
    - With V(stream) the connections that there were at the end, which are more than at the beginning where O(streams=auto)
      found that they carry more.
  returned: success
  type: int
  sample: 2
attached:
  description: Whether the transfer was already running and the task attached to it.
  returned: success
  type: bool
  sample: false
verified:
  description:
    - What was compared on both hosts after the transfer and found the same, as in O(verify), but for the entries that RV(unstable)
      counts.
    - In check mode, and while the transfer is running, it is V(none).
  returned: success
  type: str
  sample: size
by_rsync:
  description: How many files were left to rsync, with O(delta=rsync).
  returned: success
  type: int
  sample: 0
repaired:
  description:
    - The paths that differed after the transfer and were sent again, with O(verify=checksum). At most 100 are listed.
    - RV(warnings) says whether that points at a failing disk or memory, or at something that writes to one of the trees.
  returned: success
  type: list
  elements: str
  sample: [photos/2026/0001.jpg]
repaired_total:
  description: How many entries that were.
  returned: success
  type: int
  sample: 1
differences:
  description: What differs between the two hosts after the transfer, when something does. At most 100 are listed.
  returned: when the comparison after the transfer found some
  type: list
  elements: dict
  contains:
    path:
      description: The path, relative to the root of the transfer.
      type: str
      sample: photos/2026/0001.jpg
    kind:
      description: V(missing) at the destination, V(extra) there, or V(differs).
      type: str
      sample: differs
    fields:
      description: What is different.
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
    - How many of the entries that differ changed at the source after the transfer began, by their C(ctime) there.
    - Where RV(differences_total) is the same number and O(verify=size), the transfer succeeded. A play that needs equal trees checks
      that RV(differences_total) is 0.
  returned: when the trees were compared
  type: int
  sample: 0
duration:
  description: Seconds from the start of the task to its end.
  returned: success
  type: float
  sample: 81.4
throughput:
  description: Bytes of content sent in a second, while the transfer ran.
  returned: success
  type: int
  sample: 118489088
bottleneck:
  description:
    - What the transfer waited for, as far as both ends can tell.
    - V(stream) accounts for what its threads do. Of the other methods only the processor time of the programs that the jobs
      start is known, and how much went over the line, so that V(none) often is all that can be said of them.
  returned: when the transfer has ended
  type: dict
  contains:
    name:
      description:
        - V(source_disk), V(source_cpu), V(network), V(destination_cpu) or V(destination_disk). V(network) includes O(bwlimit).
        - V(none) where the transfer was too short to tell, or where nothing stands out or can be seen.
      type: str
      sample: network
    evidence:
      description: What says so, in one sentence.
      type: str
      sample: >-
        the source spent 2% of its time reading, 4% with the processor and 94% waiting to send; the destination spent 95%
        waiting for data, 4% with the processor and 1% writing; large files travelled over 2 connections
    advice:
      description: What to do about it, in one sentence.
      type: str
      sample: "The line is full: only compress, or a faster line, makes it quicker"
    source:
      description:
        - What the source's time went into, in seconds. C(wall) is how long it took, C(processor) what all its threads and
          programs used; with V(stream) C(reading), C(waiting_to_send) and C(throttled) (by O(bwlimit)) are waits, added up over
          all its threads.
      type: dict
      sample: {wall: 78.1, processor: 6.2, reading: 3.1, waiting_to_send: 147.0, throttled: 0.0}
    dest:
      description:
        - The same of the destination. With V(stream) the waits are C(waiting_to_receive), C(writing) and C(syncing).
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
    finish: 0.4
cmd:
  description: The programs that ran on each host, each with its arguments, without secrets.
  returned: success
  type: dict
  contains:
    source:
      description: What ran on the source host.
      type: list
      elements: str
    dest:
      description: What ran on the destination host.
      type: list
      elements: str
stderr:
  description: The last lines of what the programs said.
  returned: always
  type: str
  sample: ""
warnings:
  description: What the user should know although the transfer succeeded, for example that it was not encrypted.
  returned: when there are any
  type: list
  elements: str
  sample:
    - The data is not encrypted on its way, since method tar_nc was chosen by name.
"""
