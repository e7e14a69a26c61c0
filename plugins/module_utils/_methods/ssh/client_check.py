# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the serving end, before anything is transferred, whether ssh to it works."""

from __future__ import annotations

import subprocess
from typing import Sequence

from ..._core import subprocesses
from ..._core.errors import PeerUnreachable, TransferFailed
from .client_command import CONNECT_TIMEOUT, HELLO, hello_answer, ssh_host
from .failure import explain, unreachable

_SHOWN = 300  # characters of what a login shell said


def check_connection(
    ssh: Sequence[str], address: str, transfer_id: str, *, patience: float = CONNECT_TIMEOUT + 10
) -> None:
    """Log in once and have the serving end say hello: address, port, host key, key, cipher and shell are then proven.

    ``ssh`` is what ``ssh_command`` gives. Raises PeerUnreachable if nothing answers, else TransferFailed.
    """
    argv = [*ssh, ssh_host(address), HELLO]
    try:
        done = subprocesses.run(argv, timeout=patience)
    except FileNotFoundError:
        raise TransferFailed(
            "There is no ssh on this host, and it has to connect to the peer. Install the OpenSSH client, or let "
            "the transfer connect the other way round (connect: pull or push)."
        ) from None
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"") + (late.stderr or b"")
        raise TransferFailed(
            f"ssh to {address} connected, but did not get through the login within {patience:.0f} seconds. It said: "
            f"{_shown(said) or 'nothing'}. Look for a login shell that waits for input, for slow name or user look-ups "
            "on the peer, or for a path that loses large packets (MTU)."
        ) from late
    check_hello(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"), address, transfer_id)


def check_hello(code: int, stdout: bytes, stderr: str, address: str, transfer_id: str) -> None:
    """Decide by what came back whether the connection is clean. Raise TransferFailed if it is not."""
    answer = hello_answer(transfer_id)
    if stdout == answer:
        return
    reason = explain(stderr, code)
    if reason:
        kind = PeerUnreachable if unreachable(stderr) else TransferFailed
        raise kind(f"ssh to {address}: {reason}")
    if answer in stdout:
        raise TransferFailed(
            f"The login shell on {address} prints text where only the transfer's data may pass: "
            f"{_shown(stdout.replace(answer, b'', 1))!r}. It would be taken for data. Let the user's start-up file "
            "(.bashrc, .zshenv, .cshrc, config.fish) print only in interactive shells: in .bashrc, put "
            "'case $- in *i*) ;; *) return ;; esac' above what prints."
        )
    raise TransferFailed(
        f"ssh to {address} logged in, but the transfer did not answer (exit code {code}). It said: "
        f"{_shown(stdout + stderr.encode()) or 'nothing'}. A login shell that refuses or replaces commands does that: "
        "give the user a plain one, or use another user."
    )


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "replace").strip()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."
