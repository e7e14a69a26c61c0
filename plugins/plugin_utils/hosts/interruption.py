# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tell the user what happens to the work on the hosts when ansible is interrupted, and the command that stops it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import yaml
from ansible import constants
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.parsing.splitter import parse_kv

from ..common.ansible_process import ansible_pid

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LAST_WORDS = 10.0  # seconds that ansible may take to end
_MOST_FDS = 4096  # that a worker may have open
# Options of ansible-playbook that ansible needs, too, by their names in CLIARGS, and the setting that is their default.
_WITH_VALUE = {
    "inventory": ("-i", "DEFAULT_HOST_LIST"),
    "connection": ("-c", "DEFAULT_TRANSPORT"),
    "private_key_file": ("--private-key", "DEFAULT_PRIVATE_KEY_FILE"),
    "ssh_common_args": ("--ssh-common-args", ""),
    "ssh_extra_args": ("--ssh-extra-args", ""),
    "vault_ids": ("--vault-id", ""),
    "vault_password_files": ("--vault-password-file", ""),
    "connection_password_file": ("--connection-password-file", "CONNECTION_PASSWORD_FILE"),
    "become_password_file": ("--become-password-file", "BECOME_PASSWORD_FILE"),
}
_SWITCHES = {
    "ask_pass": ("-k", "DEFAULT_ASK_PASS"),
    "become_ask_pass": ("-K", "DEFAULT_BECOME_ASK_PASS"),
    "ask_vault_pass": ("-J", "DEFAULT_ASK_VAULT_PASS"),
}
_OF_HOSTS = ("ansible_", "longhaul_")  # extra variables that say how to reach a host
_SECRET = re.compile(
    "pass|secret|token|private_key|session_key", re.IGNORECASE
)  # in the name of a variable; those of files are none


class AdHocOptions(NamedTuple):
    """Options of a command ansible that reaches hosts as a task does."""

    words: tuple[str, ...] = ()
    lacks_secrets: bool = False  # of the extra variables


def find_ad_hoc_options(
    given: Mapping[str, Any], task: Any, hosts: Sequence[Mapping[str, Any]], folder: str = ""
) -> AdHocOptions:
    """Return the options with which ansible reaches hosts as a task does. No password is among them.

    ``given`` are the options of the command line (CLIARGS), ``task`` has the keywords that count for the task,
    ``hosts`` are the variables of its hosts, and ``folder`` is that of the playbook, beside which variables may lie.
    """
    words = []
    for name, (option, default) in _WITH_VALUE.items():
        value, known = given.get(name), getattr(constants, default) if default else None
        values = [value] if isinstance(value, str) else list(value or ())
        if values != ([known] if isinstance(known, str) else list(known or ())):
            words += [word for one in values for word in (option, str(one))]
    words += [
        option for name, (option, default) in _SWITCHES.items() if given.get(name) and not getattr(constants, default)
    ]
    if task.remote_user and task.remote_user != constants.DEFAULT_REMOTE_USER:
        words += ["-u", task.remote_user]
    if task.become or all(boolean(one.get("ansible_become") or False, strict=False) for one in hosts):
        words.append("-b")
        words += ["--become-user", task.become_user] if task.become_user not in (None, "root") else []
        has_own_method = task.become_method not in (None, constants.DEFAULT_BECOME_METHOD)
        words += ["--become-method", task.become_method] if has_own_method else []
    if any(os.path.isdir(os.path.join(folder, name)) for name in ("group_vars", "host_vars") if folder):
        words += ["--playbook-dir", folder]
    extra = list(_read_extra(given.get("extra_vars") or ()))
    for one in extra:
        if isinstance(one, str):
            words += ["-e", one]
        elif known := {name: value for name, value in one.items() if not _has_secret(name, value)}:
            words += ["-e", json.dumps(known, default=str)]
    return AdHocOptions(
        tuple(words), any(_has_secret(*given) for one in extra if not isinstance(one, str) for given in one.items())
    )


def _read_extra(given: Sequence[str]) -> Iterator[str | Mapping[str, object]]:
    """Yield the files with extra variables, and those of the other variables that say how to reach a host."""
    for one in given:
        if one.startswith("@"):
            yield one
            continue
        try:
            values = yaml.safe_load(one) if one[:1] in ("{", "[", "/") else parse_kv(one)
        except Exception:  # Ansible has read them in its own way, whatever that was
            continue
        if isinstance(values, Mapping):
            yield {str(name): value for name, value in values.items() if str(name).startswith(_OF_HOSTS)}


def _has_secret(name: str, value: object) -> bool:
    """Return whether a variable, or anything in it, is a secret by its name."""
    if _SECRET.search(name) and not name.endswith("_file"):
        return True
    if isinstance(value, Mapping):
        return any(_has_secret(str(inner), one) for inner, one in value.items())
    return isinstance(value, list) and any(_has_secret("", one) for one in value)


class Interruption:
    """While it is entered, a signal that ends this worker first writes ``words`` to the user's terminal.

    ansible-core shows nothing that a worker says from then on: Display hands it to a process that no longer listens,
    and the worker itself has no terminal since 2.19. So this writes to what ansible's own errors go to.
    """

    def __init__(self) -> None:
        self.options = AdHocOptions()  # of commands in the words
        self.words = ""  # the caller changes them as the work proceeds; empty: nothing to say
        self._before: dict[int, Any] = {}
        self._terminal = -1
        self._is_telling = False
        self._also = 0  # another signal, that came meanwhile

    def in_transfer(self, identity: str, label: str, hosts: tuple[str, ...], certain: bool = True) -> None:
        """Set the words for the time in which a transfer runs; not ``certain`` while it is being started."""
        self.words = (
            f"{label}: interrupted. Transfer {identity} {'goes' if certain else 'may go'} on, on the hosts, "
            f"without Ansible. To attach to it, run the same task again. {self.how_to_stop(identity, hosts)}"
        )

    def how_to_stop(self, identity: str, hosts: tuple[str, ...]) -> str:
        """Return the clause with the command that stops a transfer."""
        command = ["ansible", ",".join(dict.fromkeys(hosts)), *self.options.words]
        lacks = ", with the extra variables that hold passwords" if self.options.lacks_secrets else ""
        return (
            f"To stop it{lacks}: {shlex.join(command)} -m longhaul.fleet.transfer_control "
            f"-a 'id={identity} state=cancelled'"
        )

    def after_transfer(self, label: str) -> None:
        """Set the words for the time in which the trees are compared."""
        self.words = (
            f"{label}: interrupted after the transfer had ended. Run the same task again: it compares both trees"
        )

    def __enter__(self) -> Interruption:
        self._terminal = _errors_of_ansible()
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._interrupted)
        return self

    def __exit__(self, *_ended: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1

    def tell(self) -> None:
        """Write the words, once."""
        if self.words and self._terminal >= 0:
            text = f"\n{self.words}\n".encode()
            with contextlib.suppress(OSError):
                if _is_written_over(self._terminal):
                    _write_after_ansible(self._terminal, text)
                else:
                    os.write(self._terminal, text)
        self.words = ""

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        """Tell, then do what the signal does without this.

        Ansible sends SIGTERM right after SIGINT: it may interrupt this very handler, and waits until all is told.
        """
        if self._is_telling:
            self._also = number
            return
        self._is_telling = True
        self.tell()
        self._is_telling = False
        number = self._also or number
        before = self._before[number]
        signal.signal(number, before)
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            os.kill(os.getpid(), number)


def _errors_of_ansible() -> int:
    """Return a descriptor of where ansible writes its errors to; -1 where that cannot be opened."""
    try:
        if not os.path.samestat(os.fstat(2), os.stat(os.devnull)):
            return os.dup(2)
    except OSError:
        pass  # it is closed
    try:
        return os.open(f"/proc/{ansible_pid()}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return -1


def _is_written_over(descriptor: int) -> bool:
    """Whether what is written now would be lost: ansible writes to a file that was not opened to append (``> log``).

    It goes on where it has stopped, whoever wrote there meanwhile.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return False
    try:
        with open(f"/proc/{ansible_pid()}/fdinfo/2", encoding="ascii") as lines:
            flags = next(int(line.split()[1], 8) for line in lines if line.startswith("flags:"))
    except (OSError, StopIteration):
        return False
    return not flags & os.O_APPEND and not os.path.sameopenfile(descriptor, 2)


def _write_after_ansible(descriptor: int, text: bytes) -> None:
    """Have a process of its own write when ansible has ended, which ends this worker meanwhile."""
    ansible, (reader, writer) = ansible_pid(), os.pipe()
    try:
        if os.fork():
            os.close(writer)
            os.read(reader, 1)  # it is out of reach of what ends this worker
            return
        try:
            os.setsid()
            os.close(writer)
            os.closerange(3, descriptor)
            os.closerange(descriptor + 1, _MOST_FDS)
            until = time.monotonic() + _LAST_WORDS
            while os.path.lexists(f"/proc/{ansible}/fd/2") and time.monotonic() < until:
                time.sleep(0.05)
            os.write(descriptor, text)
        finally:
            os._exit(0)
    finally:
        os.close(reader)
