"""A machine with Debian and systemd beside a test cluster: a root file system and namespaces of its own, and the cluster's network."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from cluster.cluster import TREE, cache
from cluster.patience import PATIENCE_S, until
from cluster.process import process_state
from cluster.real import hierarchies

#: What an init finds when a machine has booted; $1 is the root file system.
BOOT = r"""
set -e
root=$1
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
awk -F: '$1 > 0 { print $2 }' /proc/self/cgroup | while read -r hierarchy; do
	at=$root/sys/fs/cgroup/${hierarchy#name=}
	mkdir "$at"
	case $hierarchy in
	name=*) mount -t cgroup -o "none,$hierarchy" cgroup "$at" ;;
	*) mount -t cgroup -o "$hierarchy" cgroup "$at" ;;
	esac
done
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
	touch "$root/dev/$name"
	mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
hostname beside
# No chroot: the kernel gives nobody in one a user namespace, and the unit wants one (PrivateUsers).
cd "$root"
pivot_root . mnt
umount -l /mnt
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=sluice-test /lib/systemd/systemd --log-target=console --show-status=no
"""
#: Who types may be root already.
SUDO = '#!/bin/sh\nexec "$@"\n'


def base():
    """The Debian that tests/install/deb installs into too."""
    done = subprocess.run([TREE / "tests/install/deb", "--base"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError("the Debian to install into could not be made")
    return Path(done.stdout.splitlines()[-1])


class Debian:
    """with Debian(cluster) as d: d.type("systemctl ...", cwd="/root")"""

    def __init__(self, cluster):
        self.cluster = cluster
        self.folder = Path(tempfile.mkdtemp(prefix="debian-", dir=cache()))
        self.root = self.folder / "root"
        self.log = self.folder / "console"
        self.cgroups = []
        self.child = None

    def __enter__(self):
        try:
            subprocess.run(["cp", "-a", base(), self.root], check=True)
            sudo = self.root / "usr/local/bin/sudo"
            sudo.write_text(SUDO)
            sudo.chmod(0o755)
            self._boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _boot(self):
        for h in hierarchies():
            own = h / "sluice-debian" / self.folder.name
            own.mkdir(parents=True)
            if h.name == "cpuset":
                for level in (own.parent, own):
                    for file in ("cpuset.cpus", "cpuset.mems"):
                        (level / file).write_text((h / file).read_text())
            self.cgroups.append(own)

        def enter_cgroups():
            for c in self.cgroups:
                (c / "cgroup.procs").write_text(str(os.getpid()))

        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.cluster.namespace_name}", "unshare", "--mount", "--uts", "--ipc", "--pid", "--cgroup",
                 "--fork", "--kill-child", "--propagation", "private", "sh", "-c", BOOT, "sh", self.root],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=enter_cgroups, cwd="/")  # fmt: skip
        until(self._is_up, message="systemd is up")

    def _is_up(self):
        if self.child.poll() is not None:
            raise RuntimeError(f"the Debian ended ({self.child.returncode}):\n{self.log.read_text(errors='replace')[-3000:]}")
        done = self.type("systemctl is-system-running", check=False)
        return done.stdout.strip() in ("running", "degraded")  # a container lacks things that some unit wants

    @property
    def first(self):
        children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text().split()
        return int(children[0])

    def type(self, text, cwd="/root", check=True):
        """Commands, as root types them there."""
        try:
            inside = ["nsenter", "-t", str(self.first), "-a", "-r", f"--wdns={cwd}"]
        except (OSError, IndexError):
            inside = ["false"]
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run([*inside, "sh", "-ec", text], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if check and done.returncode:
            raise RuntimeError(f"{text}\n{done.stdout}{done.stderr}\n{self.log.read_text(errors='replace')[-2000:]}")
        return done

    def __exit__(self, *_):
        if self.child and self.child.poll() is None:
            try:
                first = self.first
            except (OSError, IndexError):
                first = None
            self.child.send_signal(signal.SIGKILL)
            self.child.wait()
            end = time.monotonic() + PATIENCE_S
            while first and process_state(first) and time.monotonic() < end:
                time.sleep(0.02)
        for c in self.cgroups:
            for _ in range(20):
                subprocess.run(["find", c, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"], capture_output=True)
                if not c.exists():
                    break
                time.sleep(0.05)
            try:
                c.parent.rmdir()
            except OSError:
                pass  # another machine
        shutil.rmtree(self.folder, ignore_errors=True)
