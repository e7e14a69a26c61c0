# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which commands of the other end are served, and as what."""

from __future__ import annotations

import pytest
from ansible_collections.longhaul.fleet.plugins.module_utils._methods.rsync_service import (
    CommandRefused,
    clean_environment,
    server_argv,
)

PLAN = {"link_dest": ["/backup/old one", "/backup/2"]}
STAGING = b"/da\xffta/.longhaul-1"
BUNDLE = "-logDtpre.iLsfxCIvu"


def serve(command: str, side: str = "dest") -> list[bytes]:
    return server_argv(command, side, STAGING, PLAN)


def test_tokens_become_own_folders():
    found = serve(
        f"rsync --server {BUNDLE} --partial-dir /longhaul/partial --temp-dir=/longhaul/tmp "
        "--link-dest /longhaul/link/0 --link-dest /longhaul/link/1 . ./"
    )
    assert found == [
        *(b"rsync", b"--server", BUNDLE.encode()),
        *(b"--partial-dir", STAGING + b"/partial", b"--temp-dir", STAGING + b"/tmp"),
        *(b"--link-dest", b"/backup/old one", b"--link-dest", b"/backup/2", b".", b"./"),
    ]


def test_a_sender_is_served_by_the_source_only():
    command = f"rsync --server --sender {BUNDLE} --files-from=- --from0 . ./"
    assert serve(command, "source")[:3] == [b"rsync", b"--server", b"--sender"]
    with pytest.raises(CommandRefused, match="dest"):
        serve(command)
    with pytest.raises(CommandRefused, match="source"):
        serve(f"rsync --server {BUNDLE} . ./", "source")


@pytest.mark.parametrize(
    "words",
    [
        "{bundle} . /etc",
        "{bundle} . ./ ../",
        "{bundle} /etc ./",
        "{bundle} --daemon . ./",
        "{bundle} --config=/x . ./",
        "{bundle} --log-file=/etc/passwd . ./",
        "{bundle} --rsync-path=sh . ./",
        "{bundle} --temp-dir /etc . ./",
        "{bundle} --temp-dir /longhaul/../etc . ./",
        "{bundle} --temp-dir",
        "{bundle} --link-dest /longhaul/link/2 . ./",
        "{bundle} --partial-dir /longhaul/tmp . ./",
        "{bundle} --copy-dest /longhaul/link/0 . ./",
        "{bundle} --backup-dir /x . ./",
        "{bundle} --files-from=/etc/shadow . ./",
        "{bundle} --files-from=- . ./",
        "{bundle} --remove-source-files . ./",
        "{bundle} --write-devices . ./",
        "{bundle} --only-write-batch=X . ./",
        "{bundle} --iconv=/x . ./",
        "{bundle} --sender . ./",
        "-s{short} . ./",
        "--secluded-args . ./",
        "-e.i/x . ./",
        "-e 'sh -c id' . ./",
        "{bundle} -M--fake-super . ./",
        "{bundle} 'un closed . ./",
        "",
    ],
)
def test_whatever_else_is_refused(words):
    text = words.format(bundle=BUNDLE, short=BUNDLE[1:])
    if text.startswith("-sl"):  # secluded: the options would come where they cannot be checked
        text = text.replace("-s", "-s ", 1)
    with pytest.raises(CommandRefused):
        serve(f"rsync --server {text}")


@pytest.mark.parametrize("command", ["", "id", "rsync -a / /x", "/bin/rsync --server . ./", "rsync  --daemon . ./"])
def test_other_programs_are_refused(command):
    with pytest.raises(CommandRefused):
        serve(command)


def test_the_environment_decides_nothing(monkeypatch):
    monkeypatch.setenv("RSYNC_PROTECT_ARGS", "1")
    monkeypatch.setenv("RSYNC_PASSWORD", "x")
    monkeypatch.setenv("LC_MESSAGES", "de_DE")
    found = clean_environment()
    assert found["LC_ALL"] == "C"
    assert not [name for name in found if name.startswith("RSYNC") or name == "LC_MESSAGES"]
