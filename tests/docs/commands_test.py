#!/usr/bin/env python3
"""Every command of dfld, dflctl and dflsim in the documentation exists.

Usage: commands_test.py PROGRAMS [FILE.md...]

PROGRAMS is the folder of the three. Without FILE all tracked pages are read.
Looked at are the lines of shell blocks, and code spans in the text that begin
with one of the names. Of each the commands and options are compared with
--help; that they do what the page says is the business of other tests, such as
run_test.py.

Exit code: 0 all exist, 1 some do not (printed as FILE:LINE: text).
"""

import functools
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
NAMES = ("dfld", "dflctl", "dflsim")
SHELL = ("sh", "bash", "console", "")
FENCE = re.compile(r"^\s*(```+)\s*(\w*)")
SPAN = re.compile(r"`((?:dfld|dflctl|dflsim) [^`]+)`")
# What may stand before the program: "sudo -u dfld", "VAR=value", "$ ".
BEFORE = re.compile(r"^(?:\$\s+|[A-Z_]+=\S*\s+|sudo\s+(?:-u\s+\S+\s+)?|"
                    r"exec\s+|time\s+)*")


@functools.lru_cache(maxsize=None)
def help_of(command):
    """(text, names of commands below it); None: there is no such command."""
    words = command.split(" ")
    done = subprocess.run([os.path.join(PROGRAMS, words[0]), *words[1:],
                           "--help"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return None
    below, inside = set(), False
    for line in done.stdout.splitlines():
        if line.lower() == "subcommands:":
            inside = True
        elif not line:
            inside = False
        elif inside and re.match(r"  \S", line):
            below.add(line.split()[0])
    return done.stdout, frozenset(below)


def commands_in(line):
    """Command lines of our programs in a shell line."""
    line = re.sub(r"(?<=\s)#.*$", "", line).strip()
    for part in re.split(r"\$\(|\||&&|;", line):
        part = BEFORE.sub("", part.strip())
        if part.split(" ")[0] in NAMES:
            yield part.rstrip(")")


def wrong(line):
    """What of a command line does not exist; None: all does."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    program = words[0]
    known = help_of(program)
    if known is None:
        return f"{program} --help fails"
    command, texts = program, [known[0]]
    rest = words[1:]
    options = []
    while rest:
        word = rest.pop(0)
        if word in ("...", "\\", "--"):
            continue
        if word.startswith("-"):
            options.append(word)
            # "--context lab": the next word is its value.
            if "=" not in word and rest and any(
                    re.search(rf"{re.escape(word)}(?:,\S+)? [A-Z]{{2,}}", text)
                    for text in texts):
                rest.pop(0)
            continue
        # "plan|config" and "NAME" stand for others in tables.
        names = [n for n in re.split(r"\\?\|", word) if n]
        if known[1] and command.count(" ") < 2 and \
                all(re.fullmatch(r"[a-z-]+", n) for n in names):
            missing = [n for n in names if n not in known[1]]
            if missing:
                return f"{command} has no command {missing[0]}"
            command = f"{command} {names[0]}"
            known = help_of(command)
            texts.append(known[0])
        elif program == "dfld" and word in ("data", "join"):
            texts.append(help_of(f"dfld {word}")[0])
    for option in options:
        name = option.split("=")[0].rstrip("]").rstrip(".")
        if not re.fullmatch(r"--?[A-Za-z][\w.-]*", name):
            continue
        if not any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
                   for text in texts):
            return f"{command} has no option {name}"
    return None


def lines_of(path):
    """(number, command line) of a page."""
    fence = None
    with open(path, encoding="utf-8") as text:
        lines = text.read().splitlines()
    joined = ""
    for number, line in enumerate(lines, 1):
        mark = FENCE.match(line)
        if mark and fence is None:
            fence = mark.group(2)
        elif mark:
            fence = None
        elif fence == "" and (line.startswith(" ") or "-->" in line):
            continue  # a picture
        elif fence in SHELL and fence is not None:
            if line.endswith("\\"):
                joined += line[:-1] + " "
                continue
            for command in commands_in(joined + line):
                yield number, command
            joined = ""
        elif fence is None:
            for span in SPAN.findall(line):
                for command in commands_in(span):
                    yield number, command


def main(arguments):
    pages = arguments or subprocess.run(
        ["git", "-C", ROOT, "ls-files", "*.md"], check=True, text=True,
        capture_output=True).stdout.split()
    seen = found = 0
    for page in pages:
        for number, line in lines_of(os.path.join(ROOT, page)):
            seen += 1
            what = wrong(line)
            if what is not None:
                found += 1
                print(f"{page}:{number}: {what}: {line}")
    print(f"{seen} commands, {found} do not exist")
    # A page that nobody finds commands in any more would pass, too.
    return 1 if found or (not arguments and seen < 200) else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAMS = os.path.abspath(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
