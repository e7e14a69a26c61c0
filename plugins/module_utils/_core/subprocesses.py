# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find programs on this host, and start them. Nothing else in the collection starts a child process.

A child sees the search path and plain English, and nothing else of this process's environment, which may hold
passwords and options of programs. What a child needs beyond that, its caller names and says why.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
from typing import IO, Any, Callable, Mapping, Sequence, Union

from .search_path import search_path

_PATIENCE = 20  # seconds
_LAST = 1  # second for a process that was killed

Stream = Union[int, IO[Any], None]  # None: this process's own
Words = Sequence[Union[str, bytes]]
Folder = Union[str, bytes, int]  # an open directory, too


def find_program(name: str) -> str | None:
    """Return the path of a program, also where it stands in a folder that only root's path names."""
    return shutil.which(name, path=search_path())


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return all that a child sees: the search path, plain English, and ``extra``."""
    return {"PATH": search_path(), "LC_ALL": "C", **(extra or {})}


def own_variables(*names: str) -> dict[str, str]:
    """Return those of this process's own variables that are set, for ``extra_environment``."""
    return {name: os.environ[name] for name in names if name in os.environ}


def start(
    argv: Words,
    *,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = None,
    stderr: Stream = None,
    cwd: Folder = "/",
    extra_environment: Mapping[str, str] | None = None,
    new_session: bool = False,
    die_with_parent: bool = False,
    pass_fds: Sequence[int] = (),
    confine: Callable[[], object] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program and return its process, which the caller waits for. Raise OSError if it cannot be started.

    ``new_session``: it leads a session and a process group, and has no terminal. ``die_with_parent``: on Linux the
    kernel ends it with this process, however that ends; call it from a thread that lives as long as the program.
    ``confine``: what it does before it is that program, to give up rights (``confinement.confine``).
    """
    prepare: Callable[[], None] | None = functools.partial(os.fchdir, cwd) if isinstance(cwd, int) else None
    if die_with_parent:
        from .die_with_parent import follow_parent  # with ctypes, which those who only ask a program do without

        prepare = follow_parent(cwd if isinstance(cwd, int) else None)
    if confine is not None:
        prepare = functools.partial(_in_turn, prepare, confine)
    return subprocess.Popen(  # pylint: disable=ansible-bad-function
        list(argv),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=None if isinstance(cwd, int) else cwd,
        env=environment(extra_environment),
        start_new_session=new_session,
        preexec_fn=prepare,
        pass_fds=pass_fds,
    )


def _in_turn(first: Callable[[], object] | None, second: Callable[[], object]) -> None:
    if first is not None:
        first()
    second()


def run(
    argv: Words,
    *,
    given: bytes = b"",
    stdout: Stream = subprocess.PIPE,
    stderr: Stream = subprocess.PIPE,
    extra_environment: Mapping[str, str] | None = None,
    new_session: bool = False,
    pass_fds: Sequence[int] = (),
    timeout: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, in the root folder; return its exit code and what it printed, whatever that is.

    ``given`` is all that it can read. Raises OSError if it cannot be started, subprocess.TimeoutExpired (it is
    killed) where it takes longer than ``timeout`` seconds.
    """
    with start(
        argv,
        stdin=subprocess.PIPE if given else subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        extra_environment=extra_environment,
        new_session=new_session,
        pass_fds=pass_fds,
    ) as process:
        try:
            out, err = process.communicate(given or None, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def ask(argv: Words, seconds: float) -> subprocess.CompletedProcess[bytes]:
    """Run a program that may hang in the kernel, where no signal reaches it; return its exit code and its output.

    Raises OSError, and subprocess.TimeoutExpired after ``seconds``; then it is killed, and left alone if it stays.
    """
    process = start(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        out, _none = process.communicate(timeout=seconds)
    except BaseException:
        process.kill()
        pipe(process.stdout).close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LAST)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, b"")


def end(process: subprocess.Popen[bytes], patience: float) -> None:
    """Wait for a process that is about to end, and kill it after ``patience`` seconds."""
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run_command(argv: Words) -> str:
    """Return what a program prints to both of its outputs, whatever its exit code; empty if it cannot be run."""
    try:
        done = run(argv, stderr=subprocess.STDOUT, timeout=_PATIENCE)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace")


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    """Return a stream of a process that was started with a pipe there; ValueError where it was not."""
    if stream is None:
        raise ValueError("a program was started without a pipe")
    return stream
