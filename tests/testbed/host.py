# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first process of a testbed host, or of the hub between the hosts. A program; ``bed.py`` starts it.

Its only argument is a JSON object: ``name`` (of the host; null for the hub), ``folder`` (empty), ``hosts`` (lines
for /etc/hosts), ``authorized_key``, ``data_options``, ``keep``. It prints one JSON object a line: first ``pid`` (as the
machine sees it), then, when the host is ready, ``host_key``. It ends, with everything in its namespaces, when its
standard input ends, unless ``keep`` is set.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_MOUNTS, NEW_UTS, NEW_IPC, NEW_PIDS, NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
DETACH = 2  # of umount2
DIE_WITH_PARENT = 1  # of prctl: PR_SET_PDEATHSIG

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Of SUDO_PASSWORD in bed.py, made with: openssl passwd -6 -salt longhaul
PASSWORD_HASH = "$6$longhaul$ezr6vtiAOBReVVO6chyJZjjI2DNrvG3TLYoh8fPSwMOYZq0GqnJnXGKd2PPACXQ.ayEzXbzGE3HvEI9fireDs0"
USERS = {"mover": 5001, "plain": 5002}  # mover may use sudo with the password, plain may not

SSHD_CONFIG = """\
Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
MaxStartups 100
AcceptEnv LANG LC_*
Subsystem sftp {sftp_server}
"""


def check(result: int, what: str) -> None:
    """Raise OSError if a call of the C library failed."""
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(kind: str, target: Path, options: str = "", source: str = "none") -> None:
    """Mount a file system, making the directory."""
    target.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", kind, *(["-o", options] if options else []), source, str(target)], check=True)


def make_root(folder: Path, data_options: str) -> Path:
    """Return the new root: that of the machine under an overlay that takes all changes."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    mount("tmpfs", folder / "layers", "mode=700")
    root = folder / "layers/root"
    # An overlay shows one file system of the machine; the ones a system is commonly spread over get one each.
    for name in ("", "usr", "etc", "var", "opt", "home"):
        if not name or os.path.ismount("/" + name):
            upper, work = folder / f"layers/upper-{name}", folder / f"layers/work-{name}"
            upper.mkdir()
            work.mkdir()
            upper.chmod(stat.S_IMODE(os.stat("/" + name).st_mode))
            if not name:
                hide_home(upper)
            mount("overlay", root / name, f"lowerdir=/{name},upperdir={upper},workdir={work}", "overlay")
    mount("proc", root / "proc")
    mount("sysfs", root / "sys")
    mount("tmpfs", root / "dev", "mode=755")
    for name, minor in (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)):
        os.mknod(root / "dev" / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
    os.mknod(root / "dev/tty", stat.S_IFCHR | 0o666, os.makedev(5, 0))
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        (root / "dev" / name).chmod(0o666)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        (root / "dev" / name).symlink_to(target)
    (root / "dev/ptmx").symlink_to("pts/ptmx")
    mount("devpts", root / "dev/pts", "newinstance,ptmxmode=0666,mode=620,gid=5")
    mount("tmpfs", root / "dev/shm", "mode=1777")
    mount("tmpfs", root / "run", "mode=755")
    mount("tmpfs", root / "tmp", "mode=1777")
    mount("tmpfs", root / "var/tmp", "mode=1777")
    mount("tmpfs", root / "var/log", "mode=755")  # the machine's own logs grow, and hold what is not ours
    # The machine's own transfers come and go meanwhile, which an overlay does not bear: a folder that was made above
    # one that goes is there, but lists nothing.
    mount("tmpfs", root / "var/lib/longhaul", "mode=700")
    mount("tmpfs", root / "data", data_options)
    return root


def hide_home(upper: Path) -> None:
    """Hide root's home of the machine, in the overlay's upper layer.

    It may change while the host is up, which an overlay does not bear; and a login must not wait for what the machine's
    root has in .bashrc.
    """
    (upper / "root").mkdir(mode=0o700)
    os.setxattr(upper / "root", "trusted.overlay.opaque", b"y")


def furnish(root: Path, name: str, spec: dict[str, Any]) -> None:
    """Write the files that make it a machine of its own: name, hosts, users, sshd."""
    (root / "etc/hostname").write_text(name + "\n")
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback", f"127.0.1.1 {name}", *spec["hosts"]]
    (root / "etc/hosts").write_text("\n".join(lines) + "\n")
    homes = {"root": (0, root / "root")}
    for user, number in USERS.items():
        home = root / "home" / user
        home.mkdir(parents=True, mode=0o755)
        os.chown(home, number, number)
        homes[user] = (number, home)
        for file, line in (
            ("passwd", f"{user}:x:{number}:{number}::/home/{user}:/bin/bash"),
            ("group", f"{user}:x:{number}:"),
            ("shadow", f"{user}:{PASSWORD_HASH}:20000:0:99999:7:::"),
        ):
            with open(root / "etc" / file, "a", encoding="utf-8") as opened:
                opened.write(line + "\n")
    for number, home in homes.values():
        if (root / "etc/skel").is_dir():
            shutil.copytree(root / "etc/skel", home, symlinks=True, dirs_exist_ok=True)
        (home / ".ssh").mkdir(mode=0o700)
        (home / ".ssh/authorized_keys").write_text(spec["authorized_key"] + "\n")
        for path in home.rglob("*"):
            os.chown(path, number, number, follow_symlinks=False)
    sudoers = root / "etc/sudoers.d/longhaul-testbed"
    if sudoers.parent.is_dir():
        sudoers.write_text("Defaults lecture=never\nmover ALL=(ALL:ALL) ALL\n")
        sudoers.chmod(0o440)
    (root / "run/sshd").mkdir(mode=0o755)
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    sftp_server = "/usr/lib/openssh/sftp-server"
    sshd_config = SSHD_CONFIG.format(sftp_server=sftp_server if os.path.exists(sftp_server) else "internal-sftp")
    (root / "etc/ssh/sshd_config").write_text(sshd_config)


def enter(root: Path) -> None:
    """Make a directory the root, and let go of the machine's; this Python's own files may be out of reach from here."""
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "."], check=True)
    check(LIBC.umount2(b".", DETACH), "umount2")
    os.chdir("/")


def start_sshd() -> str:
    """Make a host key, start sshd, and give the public half."""
    key = "/etc/ssh/ssh_host_ed25519_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
    with open("/var/log/testbed-sshd.log", "ab") as log:
        subprocess.Popen(  # an absolute path is what sshd wants, to start itself again for each connection
            [shutil.which("sshd", path=PATH) or "/usr/sbin/sshd", "-D", "-e"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return Path(key + ".pub").read_text(encoding="utf-8").strip()


def say(**fact: Any) -> None:
    """Send one message to the testbed."""
    print(json.dumps(fact), flush=True)


def end_with_input() -> None:
    """End this process, and with it its namespaces, when the testbed's end of the pipe is closed."""
    sys.stdin.buffer.read()
    os._exit(0)


def live(spec: dict[str, Any]) -> None:
    """Be the first process: end when told, until then collect the processes that others left."""
    if not spec["keep"]:
        threading.Thread(target=end_with_input, daemon=True).start()
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            signal.sigtimedwait([], 0.05)


def main() -> None:
    """Be a host, or the hub."""
    spec = json.loads(sys.argv[1])
    os.environ.clear()
    os.environ.update(PATH=PATH, LANG="C.UTF-8", HOME="/root")
    os.umask(0o022)
    if spec["name"] is None:
        check(LIBC.unshare(NEW_NET), "unshare")
        say(pid=os.getpid())
        live(spec)
    check(LIBC.unshare(NEW_MOUNTS | NEW_UTS | NEW_IPC | NEW_PIDS | NEW_NET), "unshare")
    child = os.fork()
    if child:
        say(pid=child)
        sys.exit(os.waitpid(child, 0)[1] != 0)
    check(LIBC.prctl(DIE_WITH_PARENT, signal.SIGKILL), "prctl")
    os.setsid()
    socket.sethostname(spec["name"])
    root = make_root(Path(spec["folder"]), spec["data_options"])
    furnish(root, spec["name"], spec)
    enter(root)
    say(host_key=start_sshd())
    live(spec)


if __name__ == "__main__":
    main()
