# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the programs of a database as its user, and tell what they said where they failed. Private to the collection."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import tempfile
from functools import partial
from typing import Callable, Mapping, NamedTuple, Sequence

from .._core import subprocesses
from .._core.errors import TransferFailed

_LONGEST = 1500  # characters of what a program said; its last words count
_MOST_ANSWER = 16 << 20  # bytes of the answer to a question
_LAST = 10.0  # seconds for a program that was asked to end
_LOOK = 0.5  # seconds between two looks at what a program does


class Account(NamedTuple):
    """A user of this system."""

    name: str
    uid: int
    gid: int
    groups: Sequence[int]
    home: str

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables by which a program finds its user's files."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


def find_account(user: str | int) -> Account:
    """Return a user by name or number. Raises TransferFailed if there is none, or this process cannot become it."""
    try:
        found = pwd.getpwuid(user) if isinstance(user, int) else pwd.getpwnam(user)
    except KeyError:
        if isinstance(user, int):
            return _allowed(Account(str(user), user, user, (), "/"))
        raise TransferFailed(
            f"there is no user {user} on this host. Set user to the one as which its server runs"
        ) from None
    groups = os.getgrouplist(found.pw_name, found.pw_gid)
    return _allowed(Account(found.pw_name, found.pw_uid, found.pw_gid, groups, found.pw_dir))


def _allowed(account: Account) -> Account:
    if os.geteuid() not in (0, account.uid):
        raise TransferFailed(
            f"only root can run programs as {account.name}: set ansible_become: true for this host, or set user to the "
            "user of its connection"
        )
    return account


def _become(account: Account) -> None:
    os.umask(0o077)
    if os.geteuid() == 0 and account.uid != 0:
        os.setgroups(list(account.groups))
        os.setgid(account.gid)
        os.setuid(account.uid)


def require_program(*names: str) -> str:
    """Return the path of the first of these programs that is there. Raises TransferFailed if none is."""
    for name in names:
        path = subprocesses.find_program(name)
        if path:
            return path
    raise TransferFailed(f"{' or '.join(names)} is not installed on this host, and a dump needs it: install it there")


def run_program(
    argv: Sequence[str],
    account: Account,
    what: str,
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    cwd: str | int = "/",
    variables: Mapping[str, str] | None = None,
    look: Callable[[], None] | None = None,
    told: str = "",
) -> None:
    """Run a program to its end, as a user. Raises TransferFailed with what it said if its exit code is not 0.

    ``what`` it does is told then, and only the lines in which the pattern ``told`` is found: others may have data. The
    program ends with this call, however that ends: also if ``look``, which is called while it runs, raises an error.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocesses.start(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=errors,
                cwd=cwd,
                extra_environment={**account.variables, **(variables or {})},
                confine=partial(_become, account),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise TransferFailed(f"{what} failed: {argv[0]} cannot be run as {account.name}: {error}") from error
        try:
            code = process.wait() if look is None else _wait(process, look)
        except BaseException:
            process.terminate()
            subprocesses.end(process, _LAST)
            raise
        if code:
            said = last_words(errors.fileno(), told) or f"{os.path.basename(argv[0])} said nothing (exit code {code})"
            raise TransferFailed(f"{what} failed: {said}")


def _wait(process: subprocess.Popen[bytes], look: Callable[[], None]) -> int:
    while True:
        look()
        try:
            return process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            continue


def ask_program(argv: Sequence[str], account: Account, what: str, variables: Mapping[str, str] | None = None) -> bytes:
    """Return what a program prints. Raises TransferFailed as run_program does, and for an answer that is too long."""
    with tempfile.TemporaryFile() as answer:
        run_program(argv, account, what, stdout=answer.fileno(), variables=variables)
        if os.fstat(answer.fileno()).st_size > _MOST_ANSWER:
            raise TransferFailed(f"{what} failed: the answer is longer than {_MOST_ANSWER >> 20} MiB")
        answer.seek(0)
        return answer.read()


def last_words(fd: int, told: str = "") -> str:
    """Return the end of an open file as one line, of the lines in which the pattern ``told`` is found."""
    size = os.fstat(fd).st_size
    said = os.pread(fd, 4 * _LONGEST, max(0, size - 4 * _LONGEST)).decode(errors="replace")
    lines = [line for line in said.splitlines() if re.search(told, line)]
    return " ".join(" ".join(lines).split())[-_LONGEST:]
