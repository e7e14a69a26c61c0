# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One line in a user's authorized_keys, and every other byte as it was."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import stat
import subprocess
import time

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._core.errors import TransferFailed
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh import authorized_keys
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.ssh.authorized_keys import Key, revise
from hypothesis import given
from hypothesis import strategies as st

ID, OTHER = "0123456789abcdef", "fedcba9876543210"
NOW = 1_763_670_000
UID, GID = os.geteuid(), os.getegid()


def key(transfer_id: str = ID, until: int | None = None, **fields) -> Key:
    values = {
        "transfer_id": transfer_id,
        "public_key": "ssh-ed25519 AAAA comment",
        "command": "/usr/bin/python3 '/a b/engine.pyz' gate /x",
        "addresses": ("192.0.2.1", "2001:db8::1"),
        "until": int(time.time()) + 3600 if until is None else until,
        "version": (9, 2),
    }
    return Key(**{**values, **fields})


def test_the_line_allows_one_command_from_one_place_until_a_moment():
    assert key(until=NOW).line() == (
        b'restrict,from="192.0.2.1,2001:db8::1",expiry-time="20251120202000Z",'
        b"command=\"/usr/bin/python3 '/a b/engine.pyz' gate /x\" ssh-ed25519 AAAA "
        b"longhaul-0123456789abcdef until=1763670000\n"
    )


@pytest.mark.parametrize(
    ("version", "expiry"),
    [((7, 6), None), ((7, 7), time.strftime("%Y%m%d%H%M%S", time.localtime(NOW))), ((9, 1), "20251120202000Z")],
)
def test_the_expiry_is_written_as_that_sshd_reads_it(version, expiry):
    line = key(until=NOW, version=version, addresses=()).line().decode()
    assert (f'expiry-time="{expiry}"' in line) if expiry else ("expiry" not in line)
    assert "from=" not in line


def test_a_quote_in_the_command_is_escaped():
    assert b'command="a \\"b\\" c"' in key(command='a "b" c').line()


@pytest.mark.parametrize("command", ["a\nb", "a\\", 'a\\"b', "a\rb"])
def test_a_command_that_cannot_be_written_is_refused(command):
    with pytest.raises(TransferFailed, match="authorized_keys"):
        key(command=command).line()


LINES = st.lists(st.sampled_from([b"ssh-rsa AAAA me@host", b"# longhaul-x", b"", b"\xff\xfe \\n", b'command="a" x y']))


@given(LINES, st.sampled_from([b"", b"\n", b"\r\n"]), st.sets(st.sampled_from(["file", "folder"])))
def test_what_was_added_and_removed_leaves_every_byte(lines, end, created):
    before = b"\n".join(lines) + end
    with_key, duty = revise(before, ID, key(), time.time(), created)
    assert with_key.endswith(before)
    assert with_key.count(b"longhaul-" + ID.encode()) == 1
    assert not duty
    renewed, _duty = revise(with_key, ID, key(until=int(time.time()) + 9999), time.time())
    assert revise(renewed, ID, None, time.time()) == (before, created)


@given(st.permutations(["a" * 16, "b" * 16, "c" * 16]))
def test_the_last_one_clears_up_what_the_first_one_made(order):
    data = b""
    for number, one in enumerate(["a" * 16, "b" * 16, "c" * 16]):
        data, _duty = revise(data, one, key(one), time.time(), () if number else ("file", "folder"))
    for one in order[:-1]:
        data, duty = revise(data, one, None, time.time())
        assert not duty
    assert revise(data, order[-1], None, time.time()) == (b"", {"file", "folder"})


def test_lines_of_dead_transfers_go_and_their_duties_pass_on():
    dead = key(OTHER, until=NOW - 1).line(["file"])
    living = key("a" * 16, until=NOW + 1).line()
    data, _duty = revise(dead + living + b"mine\n", ID, key(until=NOW + 5), NOW)
    assert data == key(until=NOW + 5).line(["file"]) + living + b"mine\n"


def test_a_line_that_only_looks_like_ours_stays():
    looks = b"ssh-rsa AAAA longhaul-0123456789abcdef\nssh-rsa AAAA longhaul-0123456789abcdef until=soon\n"
    assert revise(looks, ID, None, NOW) == (looks, set())


def test_folder_and_file_are_made_closed_and_go_again(tmp_path):
    path = tmp_path / ".ssh" / "authorized_keys"
    authorized_keys.add(str(path), key(), UID, GID)
    assert path.read_bytes().startswith(b"restrict,")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    authorized_keys.remove(str(path), ID, UID, GID)
    assert list(tmp_path.iterdir()) == []
    authorized_keys.remove(str(path), ID, UID, GID)  # nothing there is no error


def test_what_came_to_our_folder_meanwhile_stays(tmp_path):
    path = tmp_path / ".ssh" / "authorized_keys"
    authorized_keys.add(str(path), key(), UID, GID)
    path.write_bytes(path.read_bytes() + b"ssh-rsa AAAA new\n")
    (path.parent / "config").write_text("x")
    authorized_keys.remove(str(path), ID, UID, GID)
    assert path.read_bytes() == b"ssh-rsa AAAA new\n"


def test_an_empty_file_that_was_there_stays(tmp_path):
    path = tmp_path / "authorized_keys"
    path.touch()
    authorized_keys.add(str(path), key(), UID, GID)
    authorized_keys.remove(str(path), ID, UID, GID)
    assert path.read_bytes() == b""


def test_mode_owner_attributes_and_symlink_stay(tmp_path):
    real = tmp_path / "elsewhere" / "keys"
    real.parent.mkdir()
    real.write_bytes(b"ssh-rsa AAAA me")
    real.chmod(0o640)
    if UID == 0:
        os.chown(real, 12345, 54321)
    os.setxattr(real, "user.note", b"mine")
    if shutil.which("setfacl"):
        subprocess.run(["setfacl", "-m", "u:1234:r", str(real)], check=True)
    path = tmp_path / "authorized_keys"
    path.symlink_to("elsewhere/keys")

    def state():
        found = real.stat()
        attributes = {name: os.getxattr(real, name) for name in os.listxattr(real)}
        return found.st_mode, found.st_uid, found.st_gid, attributes, os.readlink(path), sorted(os.listdir(real.parent))

    before = state()
    authorized_keys.add(str(path), key(), UID, GID)
    assert real.read_bytes().endswith(b"ssh-rsa AAAA me")
    assert b"longhaul-" in real.read_bytes()
    assert state() == before
    authorized_keys.remove(str(path), ID, UID, GID)
    assert (state(), real.read_bytes()) == (before, b"ssh-rsa AAAA me")


@pytest.mark.skipif(UID != 0, reason="mounts need root")
def test_a_file_that_is_a_mount_point_is_written_in_place(tmp_path):
    path, source = tmp_path / "authorized_keys", tmp_path / "mounted"
    path.touch()
    source.write_bytes(b"ssh-rsa AAAA me\n")
    subprocess.run(["mount", "--bind", str(source), str(path)], check=True)
    try:
        authorized_keys.add(str(path), key(), UID, GID)
        assert source.read_bytes().endswith(b"ssh-rsa AAAA me\n")
        assert source.read_bytes().startswith(b"restrict")
        authorized_keys.remove(str(path), ID, UID, GID)
        assert source.read_bytes() == b"ssh-rsa AAAA me\n"
    finally:
        subprocess.run(["umount", str(path)], check=True)
    assert sorted(os.listdir(tmp_path)) == ["authorized_keys", "mounted"]


@pytest.mark.skipif(UID != 0, reason="only root could be led astray")
def test_root_does_not_follow_another_user_into_a_folder_of_root(tmp_path):
    home, target = tmp_path / "home", tmp_path / "etc"
    home.mkdir()
    target.mkdir()
    os.chown(home, 12345, 12345)
    (home / ".ssh").symlink_to(target)
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(TransferFailed, match="belongs to the user with the id 0"):
        authorized_keys.add(str(home / ".ssh" / "authorized_keys"), key(), 12345, 12345)
    assert list(target.iterdir()) == []


@pytest.mark.skipif(UID != 0, reason="only root could be led astray")
@pytest.mark.parametrize("link", [".ssh", ".ssh/authorized_keys"])
def test_root_follows_no_link_of_another_user_to_a_file_of_root(tmp_path, link):
    home, target = tmp_path / "home", tmp_path / "etc"
    target.mkdir()
    (target / "authorized_keys").write_bytes(b"root's\n")
    place = home / link
    place.parent.mkdir(parents=True)
    place.symlink_to(target if link == ".ssh" else target / "authorized_keys")
    for path in {home, place.parent, place}:
        os.chown(path, 12345, 12345, follow_symlinks=False)
    for change in (
        lambda path: authorized_keys.add(path, key(), 12345, 12345),
        lambda path: authorized_keys.remove(path, ID, 12345, 12345),
    ):
        with pytest.raises(TransferFailed, match=f"{place} is a symbolic link of user id 12345 to {target}"):
            change(str(home / ".ssh" / "authorized_keys"))
    assert (target / "authorized_keys").read_bytes() == b"root's\n"


@pytest.mark.skipif(UID != 0, reason="needs another owner")
def test_what_is_made_for_another_user_belongs_to_them(tmp_path):
    os.chown(tmp_path, 12345, 12345)
    path = tmp_path / ".ssh" / "authorized_keys"
    authorized_keys.add(str(path), key(), 12345, 12345)
    assert {(found.st_uid, found.st_gid) for found in (path.stat(), path.parent.stat())} == {(12345, 12345)}
    authorized_keys.remove(str(path), ID, 12345, 12345)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_explained(tmp_path):
    with pytest.raises(TransferFailed, match=r"cannot be changed \(No such file or directory\)"):
        authorized_keys.add(str(tmp_path / "no" / "home" / "authorized_keys"), key(), UID, GID)


def _come_and_go(path: str, number: int, rounds: int) -> None:
    mine = f"{number:016x}"
    for _round in range(rounds):
        authorized_keys.add(path, key(mine), UID, GID)
        with open(path, "rb") as file:
            assert mine.encode() in file.read()
        authorized_keys.remove(path, mine, UID, GID)


@pytest.mark.parametrize("content", [None, b"ssh-rsa AAAA me"])
def test_eight_transfers_at_once_lose_nothing(tmp_path, content):
    path = tmp_path / ".ssh" / "authorized_keys"
    if content is not None:
        path.parent.mkdir()
        path.write_bytes(content)
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=_come_and_go, args=(str(path), number, 25)) for number in range(8)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        if content is not None:
            assert path.read_bytes().endswith(content)
        time.sleep(0.001)
    assert [worker.exitcode for worker in workers] == [0] * 8
    if content is None:
        assert list(tmp_path.iterdir()) == []
    else:
        assert (path.read_bytes(), os.listdir(path.parent)) == (content, ["authorized_keys"])
