# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host's own sshd, and one that is started for a single transfer."""

from __future__ import annotations

import base64
import glob
import os
import pwd
import re
import signal
import struct
import subprocess
import threading
import time
from typing import Callable, Mapping, Sequence, cast

from ..._core import subprocesses
from ..._core.die_with_parent import descendants, send
from ..._core.errors import TransferFailed
from ..._core.ports import free_port
from ..._core.subprocesses import find_program, run_command
from .sshd_config import SshdConfig, parse_sshd_config

_POLICY_FILE = "/etc/crypto-policies/back-ends/opensshserver.config"  # RHEL and its kin
_POLICY_NAMES = (
    "Ciphers",
    "MACs",
    "KexAlgorithms",
    "HostKeyAlgorithms",
    "PubkeyAcceptedAlgorithms",
    "PubkeyAcceptedKeyTypes",  # its name before 8.5
    "CASignatureAlgorithms",
)
_START_PATIENCE = 20.0  # seconds until sshd listens


def find_sshd() -> str:
    """Return the path of sshd, which insists on being started by an absolute one. Raises TransferFailed."""
    path = find_program("sshd")
    if path is None:
        raise TransferFailed(
            "There is no sshd on this host, and it has to answer the peer's ssh. Install the OpenSSH server "
            "(openssh-server), or let the transfer connect the other way round (connect: pull or push)."
        )
    return path


def parse_version(text: str) -> tuple[int, int]:
    """Read ``OpenSSH_9.2p1 …`` (``ssh -V``, ``sshd -V``, a banner); (0, 0) where it is no OpenSSH."""
    found = re.search(r"OpenSSH(?:_for_\w+)?_(\d+)\.(\d+)", text)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def sshd_version(sshd: str) -> tuple[int, int]:
    """Ask an sshd for its version. Before 9.3 ``-V`` is a wrong option, and the complaint holds the version."""
    return parse_version(run_command([sshd, "-V"]))


def system_settings(sshd: str) -> SshdConfig:
    """Return what the host's sshd is configured to; empty if this user may not ask (its host keys are root's)."""
    return parse_sshd_config(run_command([sshd, "-T"]))


def system_host_keys(settings: SshdConfig) -> list[str]:
    """Return the public host keys (``type base64``) of the host's sshd, which listens under ``settings``.

    Raises TransferFailed if none can be read.
    """
    files = [f"{path}.pub" for path in settings.get("hostkey", [])] or sorted(glob.glob("/etc/ssh/ssh_host_*_key.pub"))
    keys = []
    for path in files:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                words = file.read().split()
        except OSError:
            continue
        keys += [" ".join(words[:2])] if len(words) >= 2 else []
    if not keys:
        raise TransferFailed(
            f"No host key of this host's sshd can be read ({', '.join(files) or '/etc/ssh/ssh_host_*_key.pub'}), and "
            " without them the peer cannot tell this host from an impostor. Make them with 'ssh-keygen -A', "
            "or make the .pub files readable."
        )
    return keys


def public_key_of(private: str) -> str:
    """Return ``type base64`` of a private key in OpenSSH's own format, whose public part is not encrypted.

    Source: PROTOCOL.key of OpenSSH. Raises ValueError if the text is no such key.
    """
    try:
        body = private.split("-----BEGIN OPENSSH PRIVATE KEY-----")[1].split("-----END")[0]
        blob = base64.b64decode("".join(body.split()))
        magic = b"openssh-key-v1\0"
        if not blob.startswith(magic):
            raise ValueError("no openssh-key-v1")
        rest = blob[len(magic) :]
        for _name in ("cipher", "kdf", "kdf options"):
            rest = _take_string(rest)[1]
        public = _take_string(rest[4:])[0]
        kind = _take_string(public)[0].decode("ascii")
    except (IndexError, ValueError, struct.error) as problem:
        raise ValueError("this is no private key in OpenSSH's format") from problem
    return f"{kind} {base64.b64encode(public).decode()}"


def _take_string(data: bytes) -> tuple[bytes, bytes]:
    (length,) = struct.unpack(">I", data[:4])
    if length > len(data) - 4:
        raise ValueError("a length beyond the end")
    return data[4 : 4 + length], data[4 + length :]


def policy_lines(text: str) -> list[str]:
    """Take the choice of algorithms out of a crypto policy's file: sshd_config lines, or RHEL 8's ``-oName=value``."""
    found = re.findall(rf"(?:^|-o)({'|'.join(_POLICY_NAMES)})[ =]([^\s'\"]+)", text, re.MULTILINE)
    return [f"{name} {value}" for name, value in found]


def config_text(
    *,
    address: str,
    port: int,
    user: str,
    host_key: str,
    authorized_keys: str,
    version: tuple[int, int],
    policy: Sequence[str] = (),
    use_pam: bool = False,
) -> str:
    """Write the configuration of an sshd for one user, one key and one transfer.

    Every option is known to OpenSSH 7.6 and to 10.x, but for those that ``version`` lets in.
    """
    lines = [
        f"Port {port}",
        *([f"ListenAddress {address}"] if address else []),
        f"HostKey {_quoted(host_key)}",
        f"AuthorizedKeysFile {_quoted(authorized_keys.replace('%', '%%'))}",
        # A pattern: a name may hold what is special there (user@domain is one to sshd)
        f"AllowUsers {re.sub('[^A-Za-z0-9._-]', '?', user)}",
        "AuthenticationMethods publickey",
        "PubkeyAuthentication yes",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin forced-commands-only",
        # The keys lie in our own folder, which is closed to all others; what is above it may be /tmp
        "StrictModes no",
        f"UsePAM {'yes' if use_pam else 'no'}",
        "DisableForwarding yes",
        "PermitTTY no",
        "PermitTunnel no",
        "PermitUserRC no",
        "PermitUserEnvironment no",
        "Compression no",
        "PidFile none",
        "PrintMotd no",
        "UseDNS no",
        "LogLevel INFO",
        "LoginGraceTime 30",
        # Who has not logged in: one address cannot take all places from the peer, which needs one a stream at most.
        "MaxStartups 200",
        *(["PerSourceMaxStartups 50", "PerSourceNetBlockSize 32:64"] if version >= (8, 5) else []),
        "IPQoS none",
        "ClientAliveInterval 15",
        "ClientAliveCountMax 8",
        "Subsystem sftp internal-sftp",  # only so that the request reaches the forced command
        *(["PerSourcePenalties no"] if version >= (9, 8) else []),
        *policy,
    ]
    return "\n".join(lines) + "\n"


def _quoted(path: str) -> str:
    if '"' in path or "\n" in path:
        raise ValueError(f"{path!r} cannot stand in an sshd_config")
    return f'"{path}"'


def locked_account(shadow: str) -> bool:
    """Return whether sshd without PAM refuses an account for what stands in the password field of /etc/shadow."""
    return shadow.startswith("!")


class PrivateSshd:
    """An sshd that this process starts on the first free port, and that dies with it.

    ``config(port)`` gives the path of a configuration for a port, written afresh. ``port`` is the one it listens on.
    """

    def __init__(
        self, sshd: str, address: str, ports: Sequence[int], config: Callable[[int], str], log: Callable[[str], None]
    ):
        self._sshd, self._log = sshd, log
        self._process: subprocess.Popen[bytes] | None = None
        self._said: list[str] = []
        self._listening = threading.Event()
        self._stop = threading.Event()
        # 0 is any free port; somebody may take it between the question and the start
        for port in ports if any(ports) else (0, 0, 0):
            port = port or free_port(address)
            self.port = port
            if self._start(config(port)):
                return
            if not any("in use" in line for line in self._said):
                break
        tried = ", ".join(str(port) for port in ports if port) or str(self.port)
        said = " / ".join(line for line in self._said if line) or "nothing"
        raise TransferFailed(
            f"No sshd could be started at {address or 'any address'} (port tried: {tried}). It said: {said}. "
            "The peer has nothing to connect to. Name ports that are free on this host with port or port_range."
        )

    def _start(self, config: str) -> bool:
        self._listening.clear()
        self._said = []
        ended = threading.Event()
        threading.Thread(target=self._keep, args=(config, ended), daemon=True, name="sshd").start()
        deadline = time.monotonic() + _START_PATIENCE
        while not self._listening.wait(0.02):
            if ended.is_set() or time.monotonic() > deadline:
                self.close()
                return False
        return True

    def _keep(self, config: str, ended: threading.Event) -> None:
        """Be the thread that starts sshd and outlives it (see subprocesses.start), and read what it says."""
        try:
            with subprocesses.start(
                [self._sshd, "-D", "-e", "-f", config],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                new_session=True,
                die_with_parent=True,
            ) as process:
                self._process = process
                for said in process.stderr or ():
                    line = said.decode(errors="replace").strip()
                    self._said = self._said[-20:] + [line]
                    if line.startswith("Server listening on"):
                        self._listening.set()
                    else:
                        self._log(f"sshd: {line}")
        except OSError as problem:  # it cannot be started
            self._said = self._said + [f"{self._sshd}: {problem.strerror}"]
        finally:
            ended.set()

    def close(self) -> None:
        """End sshd and its connections."""
        process = self._process
        if process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            family = descendants(process.pid)
            send([process.pid], number)
            send(family, number)
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                continue
            send(family, signal.SIGKILL)
            return


def make_privsep_folder(sshd: str, log: Callable[[str], None]) -> None:
    """Make the empty folder that sshd wants as root, if it is missing (it comes with the first start of sshd)."""
    if os.geteuid() != 0:
        return
    missing = re.search(r"Missing privilege separation directory: (/\S+)", run_command([sshd, "-T"]))
    if missing:
        log(f"making {missing.group(1)}, which sshd needs")
        os.makedirs(missing.group(1), 0o755, exist_ok=True)


def use_pam(user: str) -> bool:
    """Return whether only PAM admits this account: to sshd alone a locked password means a locked account."""
    if os.geteuid() != 0:
        return False
    try:
        with open("/etc/shadow", encoding="utf-8", errors="replace") as file:
            fields = [line.split(":") for line in file]
    except OSError:
        return False
    return any(field[0] == user and locked_account(field[1]) for field in fields if len(field) > 1)


def host_policy(sshd: str) -> list[str]:
    """Return the host's choice of algorithms as sshd_config lines, so that a private sshd offers nothing it bans."""
    settings = cast(Mapping[str, Sequence[str]], system_settings(sshd))  # lists, as far as it is looked at
    lines = [f"{name} {','.join(settings[name.lower()])}" for name in _POLICY_NAMES if settings.get(name.lower())]
    if lines:
        return lines
    try:
        with open(_POLICY_FILE, encoding="utf-8", errors="replace") as file:
            return policy_lines(file.read())
    except OSError:
        return []


def check_shell(user: pwd.struct_passwd) -> None:
    """Refuse an account without a usable login shell: sshd runs forced commands through it."""
    if os.path.basename(user.pw_shell) in ("nologin", "false"):
        raise TransferFailed(
            f"The user {user.pw_name} has the login shell {user.pw_shell}, so ssh cannot run anything as this user. "
            "Use become with a user that has a shell, or the method rsyncd or tar_nc, which need no login."
        )
