"""The demo's daemons and its dflctl: started, watched, and always ended."""

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

START_SECONDS = 30      # until a daemon listens
CALL_SECONDS = 60       # of one dflctl command
STOP_SECONDS = 10       # dfld ends within that of SIGTERM
LOG_LINES = 15          # of a dead daemon's log that are shown
SOCKET_PATH_LIMIT = 107  # what the system takes as a unix socket's path


class DemoError(Exception):
    """What failed, why, and what to do next."""


def _spawn(command, **arguments):
    # In a session of its own, so that Ctrl-C reaches the demo alone, which then
    # ends everything in order; setpriv has the kernel end it should the demo be
    # killed outright.
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", "--", *map(str, command)],
        stdin=subprocess.DEVNULL, start_new_session=True, **arguments)


def _end(processes):
    """Ends them all: SIGTERM, and SIGKILL for what does not heed it."""
    processes = [p for p in processes if p.poll() is None]
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Daemon:
    """One dfld on loopback, on ports of the system's choice."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = Path(folder)
        self.settings = self.folder / "dfld.yaml"
        self.log = self.folder / "dfld.log"
        self.ready_file = self.folder / "ready.json"
        self.socket = self.folder / "control.sock"
        self.process = None
        self.address = ""

    @property
    def target(self):
        return f"unix:{self.socket}"

    def start(self, program, settings):
        """Starts it on `settings`, a text in YAML."""
        if len(os.fsencode(self.socket)) > SOCKET_PATH_LIMIT:
            raise DemoError(
                f"the path {self.socket} is too long for a control socket "
                f"(at most {SOCKET_PATH_LIMIT} bytes); give --out a shorter one")
        none = self.folder / "conf.d"  # this machine's own must not interfere
        none.mkdir(parents=True)
        self.settings.write_text(settings)
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith("DFLD_")}
        with open(self.log, "wb") as log:
            self.process = _spawn(
                [program, "--config", self.settings, "--conf-d", none,
                 "--ready-file", self.ready_file],
                stdout=log, stderr=log, env=environment)

    def await_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while not self.ready_file.exists():
            self.check_alive()
            if time.monotonic() > deadline:
                raise DemoError(f"{self.name} does not listen after "
                                f"{START_SECONDS} s; {self.log_tail()}")
            time.sleep(0.02)
        self.address = json.loads(self.ready_file.read_text())["peer"][0]

    def check_alive(self):
        if self.process is None or self.process.poll() is None:
            return
        code = self.process.returncode
        how = (f"was ended by {signal.Signals(-code).name}" if code < 0
               else f"ended with exit code {code}")
        raise DemoError(f"the daemon {self.name} {how}; {self.log_tail()}")

    def log_tail(self):
        lines = self.log.read_text(errors="replace").splitlines()
        if not lines:
            return f"its log {self.log} is empty"
        tail = "\n".join("  " + line for line in lines[-LOG_LINES:])
        return f"the end of its log {self.log}:\n{tail}"


class Watch:
    """`dflctl watch` of all daemons: their status and events as they come."""

    def __init__(self, command):
        # Unused ends of pipes would keep a reader waiting: one pipe, to here.
        self._process = _spawn(command, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self._lines = queue.Queue()
        self._complaints = []
        self._threads = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._read_complaints, daemon=True)]
        for thread in self._threads:
            thread.start()

    def _read(self):
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_complaints(self):
        for line in self._process.stderr:
            self._complaints.append(line.decode(errors="replace").rstrip())

    def next(self, wait):
        """The next document, or None after `wait` seconds."""
        try:
            line = self._lines.get(timeout=wait)
        except queue.Empty:
            return None
        if line is None:
            raise DemoError("dflctl watch ended by itself: "
                            + ("; ".join(self._complaints[-3:]) or "no reason"))
        return json.loads(line)

    def end(self):
        _end([self._process])
        for thread in self._threads:
            thread.join()
        self._process.stdout.close()
        self._process.stderr.close()


def find_programs(folder):
    """Paths of dfld and dflctl in `folder`."""
    programs = [Path(folder) / name for name in ("dfld", "dflctl")]
    for program in programs:
        if not os.access(program, os.X_OK):
            raise DemoError(
                f"there is no program {program}; scripts/demo.sh builds it "
                "(or: cmake --preset release && "
                "cmake --build build/release --target dfld dflctl)")
    if not shutil.which("setpriv"):
        raise DemoError("there is no setpriv (package util-linux)")
    return programs


class Fleet:
    """All daemons of the demo. Use in a `with`: leaving it ends everything."""

    def __init__(self, programs, folder, names):
        self._dfld, self._dflctl = programs
        self._folder = Path(folder)
        self.daemons = [Daemon(name, self._folder / name) for name in names]
        self._watch = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()

    def _end(self):
        if self._watch is not None:
            self._watch.end()
            self._watch = None
        _end([d.process for d in self.daemons if d.process is not None])

    def start(self, settings):
        """Starts all; `settings(i, daemon)` gives each one's file."""
        for index, daemon in enumerate(self.daemons):
            daemon.start(self._dfld, settings(index, daemon))
        for daemon in self.daemons:
            daemon.await_ready()

    def start_anew(self, suffix, settings):
        """Ends all; starts them in folders of their own, as strangers."""
        self._end()
        self.daemons = [Daemon(d.name, self._folder / (d.name + suffix))
                        for d in self.daemons]
        self.start(settings)

    def connect(self):
        """Tells each daemon where those before it listen."""
        for index, daemon in enumerate(self.daemons[:-1]):
            self.dflctl("peer", "add", daemon.address,
                        to=self.daemons[index + 1:])

    def _targets(self, to):
        return [part for daemon in (self.daemons if to is None else to)
                for part in ("--target", daemon.target)]

    def dflctl(self, *words, to=None):
        """Runs one command on all daemons, or on those of `to`.

        Returns what it prints, read from JSON.
        """
        command = [str(self._dflctl), *map(str, words), *self._targets(to),
                   "--output", "json"]
        try:
            done = subprocess.run(command, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=False,
                                  start_new_session=True, timeout=CALL_SECONDS)
        except subprocess.TimeoutExpired:
            self.check_alive()
            raise DemoError(f"dflctl {' '.join(map(str, words))} did not end "
                            f"within {CALL_SECONDS} s") from None
        if done.returncode != 0:
            self.check_alive()
            complaint = "\n".join(
                "  " + line for line in done.stderr.splitlines()[-LOG_LINES:])
            raise DemoError(f"dflctl {' '.join(map(str, words))} failed with "
                            f"exit code {done.returncode}:\n{complaint}")
        return json.loads(done.stdout)

    def watch(self):
        """From now on `Fleet.next` gives the daemons' updates."""
        self._watch = Watch([self._dflctl, "watch", *self._targets(None),
                             "--output", "json", "--interval", "500ms"])

    def next(self, wait):
        """(daemon, status, events) of the next update; None after `wait`."""
        self.check_alive()
        document = self._watch.next(wait)
        if document is None:
            return None
        daemon = next(d for d in self.daemons
                      if d.target == document["target"])
        if not document["ok"]:
            self.check_alive()
            raise DemoError(f"{daemon.name} does not answer: "
                            f"{document['error']['message']}")
        return daemon, document["status"], document["events"]

    def check_alive(self):
        for daemon in self.daemons:
            daemon.check_alive()
