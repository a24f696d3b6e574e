#!/usr/bin/env python3
"""Checks that classes, functions and folders stay small enough to be read.

Usage: sizes.py [--root DIR] [--all]

  - a class has at most 25 data members (names that end with "_"), and at most
    400 lines: its body with the comment above it, and its methods' definitions;
  - a function of daemon/core and daemon/runtime has at most 60 lines;
  - a folder holds at most 25 .cc files.

A deliberate exception is named in EXCEPTIONS with its reason. --all prints the
largest of each kind instead of the findings.
Exit code: 0 nothing found, 1 findings (printed as FILE:LINE: text).
"""

import os
import re
import subprocess
import sys

MOST_MEMBERS = 25
MOST_CLASS_LINES = 400
MOST_FUNCTION_LINES = 60
MOST_SOURCES = 25

# Class or function: why it may be larger. At most three classes.
EXCEPTIONS = {}

SHORT_FUNCTIONS = ("daemon/core/", "daemon/runtime/")
PLACES = ("daemon/", "client/", "cli/")


def without_comments_and_strings(text):
    """Blanks both out and keeps the line breaks."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
        r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])'", re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def end_of_braces(code, start):
    """The index after the brace that closes the one at `start`."""
    depth = 0
    for i in range(start, len(code)):
        if code[i] == "{":
            depth += 1
        elif code[i] == "}":
            depth -= 1
            if depth == 0:
                return i + 1
    return len(code)


def line_of(text, index):
    return text.count("\n", 0, index) + 1


def comment_lines_above(lines, number):
    """How many comment lines stand right above line `number`."""
    count = 0
    while number - 2 - count >= 0 and \
            lines[number - 2 - count].lstrip().startswith("//"):
        count += 1
    return count


CLASS = re.compile(r"^(\s*)class\s+(?:ABSL_\w+(?:\([^)]*\))?\s+)?(\w+)"
                   r"(?:\s+final)?\s*(?::[^{;]*)?\{", re.M)
MEMBER = re.compile(r"\b[a-z][a-z0-9_]*_\s*(?:ABSL_\w+\([^)]*\)\s*)?"
                    r"(?:=[^;]*|\{[^;]*\})?;")


def classes_of(text):
    """(name, line, lines, members) of each class that is defined."""
    code = without_comments_and_strings(text)
    lines = text.split("\n")
    for match in CLASS.finditer(code):
        brace = match.end() - 1
        end = end_of_braces(code, brace)
        body = code[brace + 1:end - 1]
        # Only what stands directly in the class: nested braces are blanked.
        flat, depth = [], 0
        for c in body:
            depth -= c == "}"
            flat.append(c if depth == 0 or c == "\n" else " ")
            depth += c == "{"
        direct = "".join(flat)
        members = 0
        for statement in direct.split(";"):
            text_ = statement.rsplit(":", 1)[-1] if "::" not in statement \
                else statement
            if "(" in re.sub(r"ABSL_\w+\([^)]*\)", "", text_.split("=")[0]):
                if "function<" not in text_:
                    continue
            if re.search(r"\breturn\b|\busing\b|\bfriend\b|\bstatic\b", text_):
                continue
            if MEMBER.search(statement.strip() + ";"):
                members += 1
        number = line_of(code, match.start(2))
        length = line_of(code, end) - number + 1
        length += comment_lines_above(lines, number)
        yield match.group(2), number, length, members


def functions_of(text):
    """(name, line, lines) of each function that is defined at file level."""
    code = without_comments_and_strings(text)
    lines = code.split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        # A definition begins in the first column and is no type or namespace.
        if re.match(r"[A-Za-z_~:]", line) and not re.match(
                r"(namespace|class|struct|enum|using|typedef|extern|#|static_"
                r"assert|public|private|protected)\b", line):
            start = i
            joined = line
            while i + 1 < len(lines) and not re.search(r"[{;]", joined):
                i += 1
                joined += "\n" + lines[i]
            name = re.search(r"([~\w:]+)\s*\(", joined)
            if name and "{" in joined and not re.search(
                    r"=\s*\{|=\s*\n?\s*new|\bkNone\b\s*=", joined.split("{")[0]
                    + "{"):
                offset = sum(len(x) + 1 for x in lines[:start])
                brace = code.index("{", offset)
                end = end_of_braces(code, brace)
                last = line_of(code, end)
                # Constructors with brace initialisers: go on to column 0.
                while last < len(lines) and not lines[last - 1].startswith("}"):
                    last += 1
                yield name.group(1), start + 1, last - start
                i = last - 1
        i += 1


def main():
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    show_all = "--all" in arguments
    arguments = [a for a in arguments if a != "--all"]
    root = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    if arguments[:1] == ["--root"] and len(arguments) == 2:
        root = arguments[1]
    elif arguments:
        print(__doc__, file=sys.stderr)
        return 2
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z"],
        capture_output=True, text=True, check=True).stdout.split("\0")
    paths = [p for p in sorted(set(listed)) if p.startswith(PLACES) and
             p.endswith((".h", ".cc")) and os.path.exists(os.path.join(root, p))]
    texts = {}
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            texts[path] = file.read()

    sources = {}
    methods = {}    # (folder, class) -> lines of definitions
    functions = []
    for path in paths:
        folder = os.path.dirname(path)
        if not path.endswith(".cc"):
            continue
        sources[folder] = sources.get(folder, 0) + 1
        for name, line, length in functions_of(texts[path]):
            functions.append((length, path, line, name))
            if "::" in name:
                owner = name.split("::")[-2]
                key = (folder, owner)
                methods[key] = methods.get(key, 0) + length + 1
    classes = []
    for path in paths:
        for name, line, length, members in classes_of(texts[path]):
            whole = length + methods.get((os.path.dirname(path), name), 0)
            classes.append((whole, members, path, line, name))

    if show_all:
        for whole, members, path, line, name in sorted(classes)[-25:]:
            print(f"{path}:{line}: {name}: {whole} lines, {members} members")
        for whole, members, path, line, name in sorted(
                classes, key=lambda c: c[1])[-12:]:
            print(f"{path}:{line}: {name}: {members} members")
        for length, path, line, name in sorted(functions)[-25:]:
            print(f"{path}:{line}: {name}: {length} lines")
        return 0

    findings = []
    for whole, members, path, line, name in classes:
        if name in EXCEPTIONS:
            continue
        if members > MOST_MEMBERS:
            findings.append(f"{path}:{line}: class {name} has {members} data "
                            f"members; at most {MOST_MEMBERS}")
        if whole > MOST_CLASS_LINES:
            findings.append(f"{path}:{line}: class {name} has {whole} lines; at "
                            f"most {MOST_CLASS_LINES}")
    for length, path, line, name in functions:
        if path.startswith(SHORT_FUNCTIONS) and length > MOST_FUNCTION_LINES \
                and name not in EXCEPTIONS:
            findings.append(f"{path}:{line}: {name} has {length} lines; at most "
                            f"{MOST_FUNCTION_LINES}")
    for folder, count in sorted(sources.items()):
        if count > MOST_SOURCES:
            findings.append(f"{folder}:1: {count} .cc files; at most "
                            f"{MOST_SOURCES}")
    for finding in findings:
        print(finding)
    if not findings:
        print(f"  {len(classes)} classes, {len(functions)} functions")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
