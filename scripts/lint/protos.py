#!/usr/bin/env python3
"""Checks the contracts in proto/ with nothing but Python.

Usage: protos.py [--root DIR]

  - syntax proto3; the package is the folder: proto/dfl/peer/v1 has dfl.peer.v1;
  - each message, enum, service, rpc, field and enum value has a comment of its
    own on the lines above it (oneofs and their fields too);
  - the first value of enum E is E_UNSPECIFIED = 0, and all values start so;
  - no number or name is used twice or used although reserved.

Exit code: 0 nothing found, 1 findings (printed as FILE:LINE: text).
"""

import glob
import os
import re
import sys

FIELD = re.compile(
    r"(?:optional\s+|repeated\s+)?"
    r"(?:map\s*<\s*\w+\s*,\s*[\w.]+\s*>|[\w.]+)\s+"
    r"(?P<name>\w+)\s*=\s*(?P<number>\d+)\s*(?:\[[^\]]*\])?$", re.S)
VALUE = re.compile(
    r"(?P<name>\w+)\s*=\s*(?P<number>-?(?:0x[0-9a-fA-F]+|\d+))\s*"
    r"(?:\[[^\]]*\])?$", re.S)
BLOCK = re.compile(r"(?P<kind>message|enum|service|oneof|rpc|extend)\s+"
                   r"(?P<name>\w+)")


def statements(text):
    """Yields (line, commented, statement, end).

    `end` is ';', '{' or '}'; `commented` says whether a comment ends on the
    line above the statement.
    """
    line, comment_line, start, words = 1, 0, 0, []
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|[;{}]|\n|'
                       r"[^\S\n]+|[^\s;{}\"/]+|/", re.S)
    brackets = 0
    for match in token.finditer(text):
        word = match.group(0)
        if word.startswith(("//", "/*")):
            line += word.count("\n")
            own_line = text[:match.start()].rpartition("\n")[2].strip() == ""
            if own_line and not words:
                comment_line = line
        elif word == "\n":
            line += 1
        elif word in ";{}" and not (brackets and word != ";"):
            yield start or line, comment_line and comment_line == (
                start or line) - 1, " ".join(words), word
            words, start = [], 0
        elif word.strip():
            brackets += word.count("[") - word.count("]")
            start = start or line
            words.append(word)


class Scope:
    """A message, enum or service that is open."""

    def __init__(self, kind, name, parent):
        self.kind, self.name = kind, name
        # A oneof shares its message's numbers and names.
        shared = kind == "oneof"
        self.numbers = parent.numbers if shared else {}
        self.names = parent.names if shared else {}
        self.reserved = parent.reserved if shared else []
        self.reserved_names = parent.reserved_names if shared else set()
        self.first = True


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_",
                  name).upper()


def add(scope, line, name, number, report):
    if number in scope.numbers:
        report(line, f"{name} takes number {number} of "
                     f"{scope.numbers[number]}")
    if name in scope.names:
        report(line, f"the name {name} is used twice")
    scope.numbers[number] = name
    scope.names[name] = line


def reserve(scope, line, rest):
    for name in re.findall(r'"(\w+)"', rest):
        scope.reserved_names.add((name, line))
    for low, high in re.findall(r"(\d+)(?:\s+to\s+(\d+|max))?",
                                re.sub(r'"[^"]*"', "", rest)):
        high = 2**29 if high == "max" else int(high or low)
        scope.reserved.append((int(low), high))


def close(scope, report):
    for number, name in scope.numbers.items():
        if any(low <= number <= high for low, high in scope.reserved):
            report(scope.names[name], f"{name} takes the reserved number "
                                      f"{number}")
    for name, _ in scope.reserved_names:
        if name in scope.names:
            report(scope.names[name], f"{name} takes a reserved name")


def check(path, text, report):
    folder = os.path.dirname(path)
    expected = folder.removeprefix("proto/").replace("/", ".")
    syntax = package = False
    scopes = []
    for line, commented, statement, end in statements(text):
        if end == "}":
            if not scopes:
                report(line, "a brace closes nothing")
                return
            scope = scopes.pop()
            if scope.kind != "oneof":
                close(scope, report)
            continue
        where = scopes[-1] if scopes else None
        if not statement:
            continue
        if where is None and end == ";":
            if statement.startswith("syntax"):
                syntax = '"proto3"' in statement
            found = re.match(r"package\s+([\w.]+)", statement)
            if found:
                package = True
                if found.group(1) != expected:
                    report(line, f"package {found.group(1)} lies in {folder}; "
                                 f"expected {expected}")
            continue
        block = BLOCK.match(statement)
        if block and (end == "{" or block["kind"] == "rpc"):
            if not commented:
                report(line, f"{block['kind']} {block['name']} has no comment "
                             "above it")
            if end == "{":
                scopes.append(Scope(block["kind"], block["name"], where))
            continue
        if statement.startswith("reserved ") and where:
            reserve(where, line, statement[9:])
            continue
        if where is None or statement.startswith("option "):
            continue
        if where.kind == "enum":
            value = VALUE.match(statement)
            if not value:
                report(line, f"not understood: {statement}")
                continue
            name, number = value["name"], int(value["number"], 0)
            if not commented:
                report(line, f"value {name} has no comment above it")
            prefix = snake(where.name) + "_"
            if where.first and (number != 0 or name != prefix + "UNSPECIFIED"):
                report(line, f"the first value of {where.name} is {name} = "
                             f"{number}; expected {prefix}UNSPECIFIED = 0")
            if not name.startswith(prefix):
                report(line, f"value {name} does not start with {prefix}")
            where.first = False
            add(where, line, name, number, report)
        elif where.kind in ("message", "oneof"):
            field = FIELD.match(statement)
            if not field:
                report(line, f"not understood: {statement}")
                continue
            if not commented:
                report(line, f"field {field['name']} has no comment above it")
            add(where, line, field["name"], int(field["number"]), report)
    if not syntax:
        report(1, 'there is no syntax = "proto3"')
    if not package:
        report(1, f"there is no package; expected {expected}")


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
    files = sorted(glob.glob(os.path.join(root, "proto/**/*.proto"),
                             recursive=True))
    for name in files:
        path = os.path.relpath(name, root)
        with open(name, encoding="utf-8") as file:
            check(path, file.read(),
                  lambda line, text, path=path: findings.append(
                      f"{path}:{line}: {text}"))
    for finding in findings:
        print(finding)
    if not findings:
        print(f"  {len(files)} files")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
