#!/usr/bin/env python3
"""Checks that rooms include only what they may, see docs/architecture.md.

Usage: layers.py [--root DIR]

  - a room includes project headers of its own or of lower levels only, and its
    level in CMake is the one in this file;
  - torch, gRPC, protobuf, spdlog and OpenSSL appear only in the rooms that wrap them;
  - nothing waits with a limit by the wall clock;
  - deterministic rooms use nothing that reads a clock, a thread's timing or
    the platform's own randomness, hashing or mathematics.

A deliberate exception carries NOLINT(dfl-layers) and its reason on the line.
Exit code: 0 nothing found, 1 findings (printed as FILE:LINE: text).
"""

import os
import re
import subprocess
import sys

LEVELS = {
    "base": 0, "threads": 1,
    # The rooms of daemon/core.
    "contract": 1.1, "graph": 1.1, "vector": 1.1, "algorithm": 1.2, "mass": 1.3, "rounds": 1.4,
    "algorithms": 1.5, "plan": 1.6,
    "page": 2, "ports": 2, "codec": 2, "data": 2, "tls": 2,
    # The rooms of daemon/runtime.
    "guards": 2.5, "keeper": 2.5, "links": 2.5, "transfers": 2.6, "gossip": 2.6,
    "checkpoints": 2.8,
    # The rooms of daemon/learner.
    "catalogue": 2.5, "plain": 2.6, "opening": 4,
    "contracts": 2.6, "membership": 2.7,
    "runtime": 3, "following": 3.1, "config": 3, "simports": 3,
    "proto": 3, "net": 3.5,
    "exchange": 4, "learner": 4, "store": 4, "discovery": 4, "control": 4,
    "client": 4, "console": 4, "records": 4, "enrol": 4.5, "web": 4.6,
    "sim": 5, "app": 5, "cli": 5,
}

# Library: what its headers look like, and the rooms that may include them.
LIBRARIES = {
    "LibTorch": (r"^(torch|ATen|c10|caffe2)/", {"learner"}),
    "gRPC": (r"^(grpc|grpcpp|grpc\+\+)/|\.grpc\.pb\.h$",
             {"net", "exchange", "control", "client", "enrol", "proto"}),
    "protobuf": (r"^google/protobuf/|\.pb\.h$",
                 {r for r, level in LEVELS.items() if level >= 4} | {"proto"}),
    "spdlog": (r"^spdlog/", {"app"}),
    "libpng and libjpeg": (r"^(png|jpeglib)\.h$", {"data"}),
    "Avahi": (r"^avahi-", {"discovery"}),
    "cpp-httplib": (r"^httplib\.h$", {"web"}),
    "prometheus-cpp": (r"^prometheus/", {"web"}),
    "OpenSSL": (r"^openssl/", {"base", "tls"}),
    "Highway": (r"^hwy/", {"vector", "codec"}),
}

DETERMINISTIC = {"base", "contract", "graph", "vector", "algorithm", "mass",
                 "rounds", "algorithms", "plan", "codec", "plain", "guards",
                 "keeper", "links", "transfers", "gossip", "contracts", "checkpoints",
                 "runtime", "following", "membership", "sim",
                 "simports"}
FORBIDDEN = [
    (r"#\s*include\s*<(chrono|random|thread|mutex|condition_variable|"
     r"shared_mutex|future|unordered_map|unordered_set|cmath|math\.h|ctime|"
     r"time\.h)>", None),
    (r"std::chrono\b|\babsl::Now\b|\bGetCurrentTimeNanos\b|"
     r"\bclock_gettime\b|\bgettimeofday\b|\bstd::time\s*\(",
     "time comes in as a value"),
    (r"(?<![\w:.>])s?rand\s*\(|std::random_device|std::mt19937|"
     r"std::\w+_distribution|\babsl::(Insecure)?BitGen|"
     r"std::(shuffle|sample|default_random_engine)\b",
     "randomness is dfl::Rng's (daemon/base/rng.h)"),
    (r"std::(mutex|thread|jthread|condition_variable|async|future|atomic)\b|"
     r"\babsl::(Mutex|CondVar|Notification)\b",
     "the room knows no thread"),
    (r"std::unordered_|\babsl::(flat|node)_hash_|std::hash\b|\babsl::Hash\b",
     "containers are sorted"),
    (r"std::(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|tan|asin|acos|"
     r"atan|atan2|sinh|cosh|tanh|cbrt|hypot|erf|erfc|tgamma|lgamma|fma)[fl]?"
     r"\s*\(|std::reduce\b|std::execution",
     "only + - * / and sqrt are the same everywhere; daemon/base/"
     "distributions.h has Exp and Log"),
]
# Abseil's waits with a limit go by the wall clock on Debian 12.
WALL_WAITS = re.compile(
    r"\b(Await|Wait|Lock\w*)With(Timeout|Deadline)\b|\babsl::CondVar\b|"
    r"\bWaitForNotificationWith\w+|\bsystem_clock\b.*\bwait_(for|until)\b")
# <cmath> is needed for sqrt, isfinite and the like.
HARMLESS_INCLUDES = {"cmath", "math.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def room_of(path):
    parts = path.split("/")
    if parts[:2] in (["daemon", "core"], ["daemon", "learner"],
                     ["daemon", "runtime"]) and \
            len(parts) > 3:
        return parts[2]
    if parts[0] == "daemon" and len(parts) > 2:
        return parts[1]
    if parts[0] in ("client", "cli"):
        return parts[0]
    if parts[0] == "dfl" and path.endswith(".pb.h"):
        return "proto"
    return None


def without_comments_and_strings(text):
    """Blanks both out and keeps the line breaks."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
        r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])'", re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def check_file(path, text, report):
    room = room_of(path)
    if room not in LEVELS:
        report(path, 1, f"'{room}' is no room that scripts/lint/layers.py "
                        "knows; add it there and in docs/architecture.md")
        return
    lines = text.split("\n")
    code = without_comments_and_strings(text).split("\n")
    for number, line in enumerate(lines, 1):
        if "NOLINT(dfl-layers)" in line:
            continue
        include = INCLUDE.match(line)
        if include:
            name = include.group(1)
            other = room_of(name)
            if (other and other != room and
                    LEVELS.get(other, 99) >= LEVELS[room]):
                report(path, number,
                       f"room {room} (level {LEVELS[room]}) includes {name} "
                       f"of room {other} (level {LEVELS.get(other, '?')}); "
                       "only lower levels are allowed")
            for library, (pattern, rooms) in LIBRARIES.items():
                if re.search(pattern, name) and room not in rooms:
                    report(path, number,
                           f"room {room} includes {name}; {library} is for: "
                           f"{', '.join(sorted(rooms))}")
        waits = WALL_WAITS.search(code[number - 1])
        if waits:
            report(path, number,
                   f"'{waits.group(0)}' goes by the wall clock, which may be "
                   "set meanwhile; SteadyCondVar (daemon/threads/"
                   "steady_cond_var.h) does not")
        if room in DETERMINISTIC:
            for pattern, reason in FORBIDDEN:
                found = re.search(pattern, line if include else
                                  code[number - 1])
                if not found:
                    continue
                if reason is None and found.group(1) in HARMLESS_INCLUDES:
                    continue
                report(path, number,
                       f"deterministic room {room} uses "
                       f"'{found.group(0).strip()}'"
                       f"{'; ' + reason if reason else ''}")


def check_cmake(path, text, report):
    for call in re.finditer(r"\bdfl_room\(([^)]*)\)", text):
        name = re.search(r"\bNAME\s+(\S+)", call.group(1))
        level = re.search(r"\bLEVEL\s+([\d.]+)", call.group(1))
        if not name or not level or name.group(1).startswith("$"):
            continue
        number = text.count("\n", 0, call.start()) + 1
        expected = LEVELS.get(name.group(1))
        if expected is not None and expected != float(level.group(1)):
            report(path, number,
                   f"room {name.group(1)} is on level {expected}, not "
                   f"{level.group(1)}")


def main():
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    root = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    if sys.argv[1:2] == ["--root"] and len(sys.argv) == 3:
        root = sys.argv[2]
    elif len(sys.argv) > 1:
        print(__doc__, file=sys.stderr)
        return 2
    findings = []

    def report(path, number, text):
        findings.append(f"{path}:{number}: {text}")

    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z"],
        capture_output=True, text=True, check=True).stdout.split("\0")
    files = 0
    for path in sorted(set(listed)):
        rooms = path.startswith(("daemon/", "client/", "cli/"))
        source = rooms and path.endswith((".h", ".cc"))
        cmake = path.endswith("CMakeLists.txt")
        if not (source or cmake) or not os.path.exists(
                os.path.join(root, path)):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        files += 1
        if cmake:
            check_cmake(path, text, report)
        else:
            check_file(path, text, report)
    for finding in findings:
        print(finding)
    if not findings:
        print(f"  {files} files")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
