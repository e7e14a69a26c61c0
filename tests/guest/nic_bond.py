# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real bonds in a guest kernel: ``nic_bond.py`` boots one and runs the checks in it; the exit code is 1 if one failed.

For machines whose own kernel has no bonds. Needs root, docker with the image longhaul-test:debian12, which
tests/tools/images.py makes, and apt, from which user-mode-linux comes. The guest sees no network but its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IMAGE = "longhaul-test:debian12"
PACKAGES = ("user-mode-linux", "kmod")
PACKAGES_TRIED = (  # of the collection
    "plugins/module_utils/_core",
    "plugins/module_utils/_network",
)
PATIENCE = 180  # seconds for the guest


def main() -> int:
    """Make a root for the guest, boot it, and read what it says."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        top = Path(folder)
        fetch(top)
        root = top / "root"
        furnish(top, root)
        argv = [str(top / "uml/usr/bin/linux.uml"), "mem=384M", "rootfstype=hostfs", f"rootflags={root}", "rw"]
        argv += ["init=/guest/init", "con=null", "con0=null,fd:1", "quiet"]
        environment = {"TMPDIR": folder, "HOME": folder, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        booted = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=PATIENCE, check=False
        )
    said = booted.stdout.decode(errors="replace")
    print(said)
    return 0 if re.search(r"^all checks passed\r?$", said, re.MULTILINE) else 1


def fetch(top: Path) -> None:
    """Get the guest's kernel and what loads its modules."""
    subprocess.run(["apt-get", "download", *PACKAGES], cwd=top, check=True, stdout=subprocess.DEVNULL)
    for archive in top.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(archive), str(top / "uml")], check=True)


def furnish(top: Path, root: Path) -> None:
    """Unpack the image, and put in the kernel's modules and the code."""
    root.mkdir()
    made = subprocess.run(["docker", "create", IMAGE, "true"], check=True, capture_output=True, text=True)
    container = made.stdout.strip()
    try:
        export = subprocess.Popen(["docker", "export", container], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", str(root)], stdin=export.stdout, check=True)
        export.wait()
    finally:
        subprocess.run(["docker", "rm", container], check=True, stdout=subprocess.DEVNULL)
    shutil.copytree(top / "uml/usr/lib/uml/modules", root / "lib/modules", dirs_exist_ok=True)
    shutil.copy2(top / "uml/bin/kmod", root / "usr/bin/kmod")
    for name in ("modprobe", "depmod"):
        (root / "usr/sbin" / name).unlink(missing_ok=True)
        (root / "usr/sbin" / name).symlink_to("../bin/kmod")
    for package in PACKAGES_TRIED:
        shutil.copytree(
            Path(__file__).resolve().parents[2] / package,
            root / "guest/ansible_collections/longhaul/fleet" / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    shutil.copy2(__file__, root / "guest/guest.py")
    (root / "guest/init").write_text(INIT)
    (root / "guest/init").chmod(0o755)


INIT = """\
#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
chown -R systemd-network: /run/systemd/netif
echo 0123456789abcdef0123456789abcdef > /etc/machine-id
depmod -a
for module in bonding veth 8021q bridge sch_fq; do modprobe $module; done
cd /guest
python3 guest.py inside
echo o > /proc/sysrq-trigger
sleep 5
"""


# ---- in the guest


def sh(line: str) -> str:
    """Run a line of shell, and give what it said; it must succeed."""
    ended = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{line}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def until(what: str, condition, seconds: float = 30.0) -> float:
    """Wait until something is so; give the seconds."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.05)
    return time.monotonic() - begun


def read(path: str) -> str:
    """Return the text of a file, empty if it is missing."""
    return Path(path).read_text().strip() if os.path.exists(path) else ""


def wire(far: list[str]) -> None:
    """Make two cards, whose cables go to a namespace, where ``far`` joins their other ends."""
    sh("ip netns add far")
    for number in (0, 1):
        sh(f"ip link add eth{number} type veth peer name p{number} netns far")
        sh(f"ip -n far link set p{number} mtu 9000")
    for line in far:
        sh(line.replace("IP", "ip -n far"))


def unwire() -> None:
    """Take the cards away."""
    sh("ip netns del far")
    until("the cards are gone", lambda: not os.path.exists("/sys/class/net/eth0"))


def networkd(raw, check) -> None:
    """Render what is wanted, let networkd make it, run the checks, and go back to what was before."""
    from ansible_collections.longhaul.fleet.plugins.module_utils._network import discover, live
    from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning import plan

    host = discover.discover()
    host.managers["networkd"]["present"] = True
    planned = plan.make_plan(raw, host, "networkd")
    assert not planned.problems, planned.problems
    before = live.capture(planned.links)
    for file in planned.files:
        Path(file.path).write_text(file.content)
    for argv in plan.make_commands(planned, host, planned.save)[0]:
        if argv[0] == "ip":  # networkctl needs a bus; networkd is started afresh instead
            sh(" ".join(argv))
    sh("mount -o remount,ro /sys")  # as in a container: there is no udev
    process = subprocess.Popen(["/lib/systemd/systemd-networkd"], stderr=subprocess.PIPE, text=True)
    try:
        try:
            seconds = until("links as wanted", lambda: not plan.make_plan(raw, discover.discover(), "networkd").live)
        except AssertionError:
            print("\n".join(plan.make_plan(raw, discover.discover(), "networkd").live))
            raise
        print(f"networkd made {', '.join(planned.made)} in {seconds:.1f} s")
        check()
    finally:
        process.terminate()
        said = process.communicate()[1]
        sh("mount -o remount,rw /sys")
        for file in planned["files"]:
            os.unlink(file["path"])
        print(said)
    bad = [line for line in said.splitlines() if "Unknown" in line or "Failed to parse" in line]
    assert bad == [], bad
    left = live.bring_back(before, planned["made"])
    assert left == [], left
    after = live.capture(planned["links"])
    assert {n: (o.mtu, o.master) for n, o in after.links.items()} == {
        n: (o.mtu, o.master) for n, o in before.links.items()
    }
    print("the way back removed the bond, and the cards are as before")


def failover() -> None:
    """A bond whose active port loses its cable while packets of full size pass."""
    raw = [
        {
            "name": "bond0",
            "mtu": 9000,
            "bond": {"mode": "active-backup", "primary": "eth0", "ports": ["eth0", "eth1"]},
            "addresses": ["10.20.0.1/24"],
            "vlans": [{"id": 30, "mtu": 9000, "addresses": ["10.30.0.1/24"]}],
        }
    ]
    wire(
        [
            "IP link add sw type bridge",
            "IP link set p0 master sw up",
            "IP link set p1 master sw up",
            "IP link set sw mtu 9000 up",
            "IP address add 10.20.0.2/24 dev sw",
            "IP link add link sw name sw.30 type vlan id 30",
            "IP link set sw.30 up",
            "IP address add 10.30.0.2/24 dev sw.30",
        ]
    )

    def check() -> None:
        folder = "/sys/class/net/bond0/bonding"
        assert read(f"{folder}/mode") == "active-backup 1" and read(f"{folder}/miimon") == "100"
        assert [read(f"/sys/class/net/{name}/mtu") for name in ("eth0", "eth1", "bond0", "bond0.30")] == ["9000"] * 4
        until("the primary is active", lambda: read(f"{folder}/active_slave") == "eth0")
        for address in ("10.20.0.2", "10.30.0.2"):
            sh(f"for n in 1 2 3 4 5 6 7 8 9; do ping -qc1 -W1 {address} && break; done")
            sh(f"ping -c 2 -M do -s 8972 {address}")
        pinging = subprocess.Popen(
            ["ping", "-q", "-i", "0.05", "-c", "80", "-W", "1", "-M", "do", "-s", "8972", "10.20.0.2"],
            stdout=subprocess.PIPE,
            text=True,
        )
        time.sleep(1)
        sh("ip -n far link set p0 down")
        took = until("failover", lambda: read(f"{folder}/active_slave") == "eth1")
        said = pinging.communicate()[0]
        received = int(re.search(r"(\d+) received", said)[1])
        print(f"failover after {took * 1000:.0f} ms; {received} of 80 large packets passed, 20 a second")
        assert received >= 70, said
        sh("ip -n far link set p0 up")
        until("the primary is back", lambda: read(f"{folder}/active_slave") == "eth0")

    networkd(raw, check)
    unwire()


def lacp() -> None:
    """A bond with a partner that speaks LACP: both ports in one aggregator."""
    raw = [
        {
            "name": "bond0",
            "mtu": 9000,
            "bond": {
                "mode": "802.3ad",
                "ports": ["eth0", "eth1"],
                "lacp_rate": "fast",
                "xmit_hash_policy": "layer3+4",
                "min_links": 1,
            },
            "addresses": ["10.20.0.1/24"],
        }
    ]
    wire(
        [
            "IP link add far0 type bond mode 802.3ad miimon 100 lacp_rate fast",
            "IP link set p0 master far0",
            "IP link set p1 master far0",
            "IP link set far0 mtu 9000 up",
            "IP address add 10.20.0.2/24 dev far0",
        ]
    )

    def check() -> None:
        folder = "/sys/class/net/bond0/bonding"
        assert read(f"{folder}/mode") == "802.3ad 4" and read(f"{folder}/lacp_rate") == "fast 1"
        assert read(f"{folder}/xmit_hash_policy") == "layer3+4 1" and read(f"{folder}/min_links") == "1"
        took = until("both ports are aggregated", lambda: read(f"{folder}/ad_num_ports") == "2", 60)
        assert read(f"{folder}/ad_partner_mac") != "00:00:00:00:00:00"
        sh("for n in 1 2 3 4 5 6 7 8 9 10; do ping -qc1 -W1 10.20.0.2 && break; done")
        sh("ping -c 2 -W 2 -M do -s 8972 10.20.0.2")
        print(f"LACP has both ports in one aggregator after {took:.1f} s")

    networkd(raw, check)
    unwire()


def sysctls() -> None:
    """The TCP settings, applied for real."""
    from ansible_collections.longhaul.fleet.plugins.module_utils._network.planning.tcp import sysctl_file, tcp_settings

    names = ("tcp_rmem", "tcp_wmem", "tcp_available_congestion_control")
    current = {name: read(f"/proc/sys/net/ipv4/{name}") for name in names}
    settings, problems = tcp_settings(10000, 9000, current)
    assert problems == []
    Path("/etc/sysctl.d/90-longhaul-nic.conf").write_text(sysctl_file(settings, "# test"))
    sh("sysctl -p /etc/sysctl.d/90-longhaul-nic.conf")
    for key, value in settings.items():
        assert read(f"/proc/sys/{key.replace('.', '/')}").split() == value.split(), key
    print(f"the kernel took all {len(settings)} TCP settings")


def inside() -> int:
    """Run the checks, each in spite of the others."""
    failed = 0
    for check in (failover, lacp, sysctls):
        try:
            check()
        except Exception as error:  # whatever it is, the guest has to come to its end
            failed += 1
            subprocess.run(["ip", "netns", "del", "far"], capture_output=True, check=False)
            print(f"failed: {check.__name__}: {type(error).__name__}: {error}")
    print("all checks passed" if not failed else json.dumps({"failed": failed}))
    return failed


if __name__ == "__main__":
    sys.exit(inside() if sys.argv[1:] == ["inside"] else main())
