#!/usr/bin/env python3
"""Runs clang-tidy over the compile database, several files at a time.

Usage: clang_tidy.py [--minutes N] BUILD_DIR [FILE...]

Without FILE: every source of the database that lies in the repository. Files
that were committed last come first; with --minutes no file is begun after N
minutes, and how many were left is said. The next call goes on with those. A file
is checked again only if something it depends on has changed: its own text, the
project's headers and protos that it reaches, its compile command, .clang-tidy,
or clang-tidy itself. What passed is remembered in $DFL_LINT_CACHE (by default
~/.cache/dfld-lint) by a hash of all that.

Files that reach a LibTorch header are read as C++17: clang refuses LibTorch
1.13's headers as C++20, and the rooms concerned compile as both.

Exit code: 0 nothing found, 1 findings (printed), 2 wrong usage.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
TIDY = "clang-tidy-19"
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]+([<"])([^">]+)[">]', re.M)
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
# A pass is forgotten after it was of no use for this long.
KEEP_SECONDS = 30 * 24 * 3600


class Sources:
    """The repository's text files and which of them include which."""

    def __init__(self):
        self._text = {}
        self._includes = {}

    def text(self, path):
        if path not in self._text:
            try:
                with open(os.path.join(ROOT, path), "rb") as file:
                    self._text[path] = file.read()
            except OSError:
                self._text[path] = None
        return self._text[path]

    def includes(self, path):
        """(project files, other headers) that `path` includes itself."""
        if path not in self._includes:
            inside, outside = [], []
            for _, name in INCLUDE.findall(self.text(path) or b""):
                name = name.decode()
                proto = re.sub(r"(\.grpc)?\.pb\.h$", ".proto", name)
                candidates = [name, os.path.join("proto", proto),
                              os.path.join(os.path.dirname(path), name)]
                for candidate in candidates:
                    candidate = os.path.normpath(candidate)
                    if self.text(candidate) is not None:
                        inside.append(candidate)
                        break
                else:
                    outside.append(name)
            self._includes[path] = (inside, outside)
        return self._includes[path]

    def reached(self, path):
        """All project files `path` depends on, and all other headers."""
        inside, outside, todo = {path}, set(), [path]
        while todo:
            more, others = self.includes(todo.pop())
            outside.update(others)
            todo += [m for m in more if m not in inside]
            inside.update(more)
        return inside, outside


def version():
    try:
        done = subprocess.run([TIDY, "--version"], capture_output=True,
                              text=True, check=True)
    except OSError:
        sys.exit(f"there is no {TIDY}; scripts/install-deps.sh lint "
                 "installs it")
    with open("/etc/os-release", encoding="utf-8") as file:
        return done.stdout + file.read()


def config_of(path):
    """The texts of the .clang-tidy files that hold for `path`."""
    texts, folder = [], os.path.dirname(path)
    while True:
        name = os.path.join(ROOT, folder, ".clang-tidy")
        if os.path.exists(name):
            with open(name, encoding="utf-8") as file:
                texts.append(file.read())
        if not folder:
            return "\n".join(texts)
        folder = os.path.dirname(folder)


def check(build, path, as_cxx17):
    arguments = [TIDY, "-p", build, "--quiet",
                 # Warnings are the compilers' business, in their own builds.
                 "--extra-arg=-Wno-error",
                 "--extra-arg=-Wno-unknown-warning-option"]
    if as_cxx17:
        arguments.append("--extra-arg=-std=c++17")
    started = time.monotonic()
    done = subprocess.run(arguments + [os.path.join(ROOT, path)],
                          capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    output = done.stdout
    if done.returncode != 0 and not output.strip():
        output = done.stderr
    return done.returncode == 0, output, time.monotonic() - started


def by_last_commit():
    """Paths to numbers; what was committed last has the least."""
    done = subprocess.run(
        ["git", "-C", ROOT, "log", "-n", "200", "--name-only", "--format="],
        capture_output=True, text=True, check=False)
    order = {}
    for path in done.stdout.split("\n"):
        order.setdefault(path, len(order))
    return order


def forget_old(cache):
    now = time.time()
    for entry in os.scandir(cache):
        if now - entry.stat().st_mtime > KEEP_SECONDS:
            os.unlink(entry.path)


def main():
    arguments, end = sys.argv[1:], None
    if arguments[:1] == ["--minutes"] and arguments[1:2] and \
            arguments[1].isdigit():
        end = time.monotonic() + 60 * int(arguments[1])
        del arguments[:2]
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    build = os.path.abspath(arguments[0])
    database = os.path.join(build, "compile_commands.json")
    try:
        with open(database, encoding="utf-8") as file:
            entries = json.load(file)
    except OSError as error:
        sys.exit(f"no compile database: {error}; "
                 "cmake --preset dev makes it")
    only = {os.path.relpath(os.path.abspath(f), ROOT) for f in arguments[1:]}

    cache = os.environ.get("DFL_LINT_CACHE") or os.path.join(
        os.path.expanduser("~"), ".cache", "dfld-lint")
    os.makedirs(cache, exist_ok=True)
    forget_old(cache)

    sources, tool = Sources(), version()
    jobs, checked = [], set()
    for entry in entries:
        path = os.path.relpath(
            os.path.join(entry["directory"], entry["file"]), ROOT)
        if (path.startswith("..") or path in checked or
                os.path.join(ROOT, path).startswith(build + os.sep) or
                (only and path not in only)):
            continue
        checked.add(path)
        inside, outside = sources.reached(path)
        as_cxx17 = any(TORCH.match(name) for name in outside)
        command = entry.get("command") or shlex.join(entry["arguments"])
        command = command.replace(build, "BUILD").replace(ROOT, "ROOT")
        key = hashlib.sha256()
        for part in [tool, config_of(path), command, str(as_cxx17)]:
            key.update(part.encode() + b"\0")
        for name in sorted(inside):
            key.update(name.encode() + b"\0" + (sources.text(name) or b"") +
                       b"\0")
        mark = os.path.join(cache, key.hexdigest())
        if os.path.exists(mark):
            os.utime(mark)
        else:
            jobs.append((path, as_cxx17, mark))
    order = by_last_commit()
    jobs.sort(key=lambda job: (order.get(job[0], len(order)), job[0]))
    print(f"  {len(checked)} files, {len(checked) - len(jobs)} unchanged since "
          f"they passed, {len(jobs)} to check", flush=True)

    def check_in_time(path, as_cxx17):
        if end is not None and time.monotonic() > end:
            return None
        return check(build, path, as_cxx17)

    failed, left = [], 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(check_in_time, path, as_cxx17): (path, mark)
                   for path, as_cxx17, mark in jobs}
        for number, done in enumerate(
                concurrent.futures.as_completed(running), 1):
            path, mark = running[done]
            if done.result() is None:
                left += 1
                continue
            passed, output, seconds = done.result()
            print(f"  [{number}/{len(jobs)}] {path} {seconds:.0f} s"
                  f"{'' if passed else ' FAILED'}", flush=True)
            if passed:
                with open(mark, "w", encoding="utf-8"):
                    pass
            else:
                failed.append(path)
                print(output, flush=True)
    if left:
        print(f"  the time is over: {left} files are left for the next call")
    if failed:
        print(f"  clang-tidy found something in {len(failed)} files: "
              f"{' '.join(sorted(failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
