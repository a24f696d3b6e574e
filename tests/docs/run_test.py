#!/usr/bin/env python3
"""Does what the walk-throughs of the documentation say, line by line.

Usage: run_test.py PROGRAMS [PAGE...]

A shell block runs where the comment before it says:

  <!-- run: laptop-1 -->               on that machine; "both": on all
  <!-- run: laptop-1, keep TOKEN -->   its output is the variable TOKEN later
  <!-- run: laptop-2, background -->   until the page's end
  <!-- run: box, background, until control.sock -->  goes on when that is there
  <!-- run: box, needs python3-torch --> where that package is there

A machine is a network namespace on a switch and a mount namespace in which
/etc, /var/lib, /run and /home are its own. A few commands of Debian stand for
themselves no more: `sudo` runs what it is given as that user, `apt install` of
a package is taken for done, for the programs of this build are there, and
`systemctl enable --now dfld` starts dfld as the unit does and waits until it
answers. Takes root; says what is missing and ends with 77 where it cannot be
done.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
ROOT = os.path.realpath(os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../.."))
# Page to its machines.
PAGES = {"docs/quickstart.md": ("laptop-1", "laptop-2"),
         "docs/own-data.md": ("box",),
         "docs/own-model.md": ("box",)}
MARK = re.compile(r"<!-- run: ([^>]*?) -->")
CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
PATIENCE = 600  # s, for one block

SUDO = r"""#!/bin/sh
user=root
if [ "$1" = -u ]; then user=$2; shift 2; fi
[ "$user" = root ] && exec "$@"
exec setpriv --reuid="$user" --regid="$user" --clear-groups \
  env HOME="/var/lib/$user" "$@"
"""
APT = r"""#!/bin/sh
[ "$1" = install ] || exit 1
for name; do
  case "$name" in
    install | ./dfld_*.deb | ./dfld-torch_*.deb | ./dflctl_*.deb) ;;
    *) dpkg-query -W "$name" >/dev/null ||
         { echo "$name is not on this machine" >&2; exit 1; } ;;
  esac
done
"""
SYSTEMCTL = r"""#!/bin/sh
[ "$*" = "enable --now dfld" ] || { echo "systemctl $*: not here" >&2; exit 1; }
mkdir -p /run/dfld /var/lib/dfld
chown dfld: /run/dfld /var/lib/dfld
STATE_DIRECTORY=/var/lib/dfld RUNTIME_DIRECTORY=/run/dfld \
  CONFIGURATION_DIRECTORY=/etc/dfld OPENBLAS_NUM_THREADS=1 \
  setpriv --reuid=dfld --regid=dfld --clear-groups dfld \
  --control.socket=/run/dfld/control.sock --state_dir=/var/lib/dfld \
  --tls.folder=/etc/dfld/tls >/run/dfld.log 2>&1 &
i=0
until dflctl --target unix:/run/dfld/control.sock status --local >/dev/null 2>&1
do
  i=$((i + 1))
  kill -0 $! 2>/dev/null && [ $i -lt 600 ] || { cat /run/dfld.log >&2; exit 1; }
  sleep 0.1
done
"""
# $1 is the machine's folder, $2 the programs', $3 the source tree; then the
# command, which is executed.
MACHINE = r"""
set -e
own=$1 programs=$2 source=$3; shift 3
for path in /etc /var/lib /run /home; do
  mkdir -p "$own/upper$path" "$own/work$path"
  mount -t overlay none -o \
    "lowerdir=$path,upperdir=$own/upper$path,workdir=$own/work$path" "$path"
done
rm -rf /run/avahi-daemon /run/dbus /etc/dfld
mkdir -p /etc/dfld /run/programs /home/you
mount --bind "$programs" /run/programs
grep -q ^dfld: /etc/passwd || {
  echo 'dfld:x:990:990::/var/lib/dfld:/usr/sbin/nologin' >>/etc/passwd
  echo 'dfld:x:990:' >>/etc/group
}
cp "$own/hosts" /etc/hosts
cd /home/you
ln -s "$source/docs" docs
exec "$@"
"""


def skip(why):
    print("SKIPPED:", why)
    raise SystemExit(SKIPPED)


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


def enter():
    if os.geteuid() != 0:
        skip("namespaces take root")
    for program in ("ip", "setpriv", "nsenter"):
        if shutil.which(program) is None:
            skip(f"there is no {program}")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        skip(f"namespaces cannot be made: {os.strerror(ctypes.get_errno())}")
    run("mount", "--make-rprivate", "/")
    os.makedirs("/run/netns", exist_ok=True)
    run("mount", "-t", "tmpfs", "none", "/run/netns")
    run("ip", "link", "set", "lo", "up")


class Block:
    def __init__(self, page, line, words, text):
        self.where = f"{page}:{line}"
        self.machine = words[0]
        self.background = "background" in words[1:]
        self.keep = next((w.split()[1] for w in words if w[:5] == "keep "), "")
        self.until = next((w.split()[1] for w in words if w[:6] == "until "),
                          "")
        self.needs = next((w.split()[1] for w in words if w[:6] == "needs "),
                          "")
        self.text = text


def blocks_of(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as text:
        lines = text.read().splitlines()
    found, words, i = [], None, 0
    while i < len(lines):
        mark = MARK.search(lines[i])
        if mark:
            words = [w.strip() for w in mark.group(1).split(",")]
        if lines[i].startswith("```"):
            end = lines.index("```", i + 1)
            if words is not None:
                found.append(Block(page, i + 2, words,
                                   "\n".join(lines[i + 1:end]) + "\n"))
            words, i = None, end
        i += 1
    return found


class Machines:
    """Those of one page; run() does a block on one of them."""

    def __init__(self, names, programs):
        self.folder = tempfile.mkdtemp(prefix="dfl-docs-")
        os.chmod(self.folder, 0o755)
        self.names = names
        self.variables = {}
        self.running = []
        self.holders = {}
        # An overlay's own folders cannot lie on an overlay.
        run("mount", "-t", "tmpfs", "none", self.folder)
        shims = os.path.join(self.folder, "shims")
        os.makedirs(shims)
        for name, text in (("sudo", SUDO), ("apt", APT),
                           ("systemctl", SYSTEMCTL)):
            with open(os.path.join(shims, name), "w", encoding="utf-8") as out:
                out.write(text)
            os.chmod(os.path.join(shims, name), 0o755)
        self.environment = {
            "PATH": f"{shims}:/run/programs:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/home/you", "USER": "you", "LANG": "C.UTF-8",
            "OPENBLAS_NUM_THREADS": "1"}
        run("ip", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        run("ip", "link", "set", "br0", "up")
        hosts = "127.0.0.1 localhost\n" + "".join(
            f"10.43.0.{i} {n} {n}.local\n" for i, n in enumerate(names, 1))
        for i, name in enumerate(names, 1):
            own = os.path.join(self.folder, name)
            os.makedirs(own)
            with open(os.path.join(own, "hosts"), "w", encoding="utf-8") as out:
                out.write(hosts)
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"v{i}", "type", "veth", "peer", "name",
                "eth0", "netns", name)
            run("ip", "link", "set", f"v{i}", "master", "br0", "up")
            for words in ("link set lo up", f"addr add 10.43.0.{i}/24 dev eth0",
                          "link set eth0 up"):
                run("ip", "-n", name, *words.split())
            # It stands for the machine: others enter its namespaces.
            holder = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{name}", "unshare", "--mount",
                 "--propagation=private", "sh", "-c",
                 MACHINE, "sh", own, programs, ROOT,
                 "sh", "-c", "echo up; exec sleep infinity"],
                stdout=subprocess.PIPE, text=True)
            assert holder.stdout.readline() == "up\n", f"{name} is not made"
            self.holders[name] = holder

    def start(self, name, block, log):
        return subprocess.Popen(
            ["nsenter", f"--target={self.holders[name].pid}", "--mount",
             "--net", "bash", "-e", "-u", "-o", "pipefail", "-c",
             "cd /home/you\n" + block.text],
            env=dict(self.environment, **self.variables, HOSTNAME=name),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            if not block.keep else subprocess.DEVNULL, start_new_session=True)

    def await_file(self, name, block, process, log):
        place = os.path.join("/proc", str(self.holders[name].pid), "root",
                             "home/you", block.until)
        end = time.monotonic() + PATIENCE
        while not os.path.exists(place):
            if process.poll() is not None or time.monotonic() > end:
                with open(log, encoding="utf-8") as text:
                    raise AssertionError(f"{block.where} on {name}: there is "
                                         f"no {block.until}:\n{text.read()}")
            time.sleep(0.05)

    def run(self, block):
        for name in self.names if block.machine == "both" else (block.machine,):
            path = os.path.join(self.folder, f"log-{len(self.running)}-{name}")
            with open(path, "w+", encoding="utf-8") as log:
                process = self.start(name, block, log)
                if block.background:
                    self.running.append(process)
                    if block.until:
                        self.await_file(name, block, process, path)
                    continue
                code = process.wait(PATIENCE)
                log.seek(0)
                output = log.read()
            assert code == 0, (f"{block.where} on {name} ended with {code}:\n"
                               f"{output}")
            if block.keep:
                self.variables[block.keep] = output.strip()

    def close(self):
        for process in self.running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for name, holder in self.holders.items():
            pids = subprocess.run(["ip", "netns", "pids", name], text=True,
                                  capture_output=True, check=False).stdout
            for pid in pids.split():
                os.kill(int(pid), signal.SIGKILL)
            holder.wait()
            run("ip", "netns", "del", name)
        run("ip", "link", "del", "br0")
        run("umount", self.folder)
        os.rmdir(self.folder)


def main(arguments):
    programs = os.path.abspath(arguments[0])
    done = 0
    for page in arguments[1:] or PAGES:
        machines = Machines(PAGES[page], programs)
        try:
            for block in blocks_of(page):
                if block.needs and subprocess.run(
                        ["dpkg-query", "-W", block.needs], check=False,
                        capture_output=True).returncode != 0:
                    print(f"{block.where}: SKIPPED: there is no {block.needs}")
                    continue
                began = time.monotonic()
                machines.run(block)
                done += 1
                print(f"{block.where}: {time.monotonic() - began:.1f} s",
                      flush=True)
        except AssertionError:
            for name in machines.names:
                log = os.path.join(machines.folder, name, "upper/run/dfld.log")
                if os.path.exists(log):
                    with open(log, encoding="utf-8") as text:
                        print(f"---- dfld on {name}\n{text.read()[-3000:]}")
            raise
        finally:
            machines.close()
    print(f"{done} blocks")
    # Pages whose marks were lost would pass, too.
    return 0 if done >= 3 else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    enter()
    sys.exit(main(sys.argv[1:]))
