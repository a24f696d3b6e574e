#!/usr/bin/env python3
"""Checks the layout of Markdown: line width, length of paragraphs, links.

Usage: markdown.py [--root DIR] [--fix] [FILE...]

  - prose is wrapped at 80 columns; tables, headings, code, HTML and what has no
    blank to break at may be longer;
  - no paragraph is longer than six lines; each list item is a paragraph;
  - no line ends with a blank;
  - a link names a file that exists in the repository, and a heading that the
    page has.

Without FILE: every tracked *.md file. --fix fills the paragraphs of these files
anew to 80 columns, where that changes them, and removes blanks at line ends;
the other findings are left to the author.

Exit code: 0 nothing found, 1 findings (printed as FILE:LINE: text), 2 wrong
usage.
"""

import os
import re
import subprocess
import sys

WIDTH = 80
MAX_LINES = 6

FENCE = re.compile(r"\s*(```+|~~~+)")
HEADING = re.compile(r"#{1,6}(\s|$)")
RULE = re.compile(r"\s*([-*_])\s*(\1\s*){2,}$")
DEFINITION = re.compile(r"\s*\[[^\]]+\]:\s")
ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])(\s+)(?=\S)")
QUOTE = re.compile(r"\s*>\s?")
# At the beginning of a line these words would begin a list, heading or quote.
MARKER = re.compile(r"([-*+>|]|\d{1,9}[.)]|#{1,6}|=+|--+|```.*|~~~.*)$|[|><]")
# A word is what stands between two blanks; no code span or image is broken.
WORD = re.compile(r"(?:(`+)(?!`).*?(?<!`)\1(?!`)|!\[[^\]]*\]\([^)]*\)|"
                  r"[^\s`]|`+)+", re.S)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^()\s>]+)>?"
                  r"(?:\s+\"[^\"]*\")?\s*\)")


class Paragraph:
    """Lines of prose that are filled together, with what they begin with."""

    def __init__(self, line, first, rest):
        self.line = line    # Number of the first line, from 1.
        self.first = first  # What the first line begins with: "- ", "> ".
        self.rest = rest    # What the others begin with: "  ", "> ".
        self.texts = []     # The lines without either.

    def words(self):
        words = []
        for match in WORD.finditer("\n".join(self.texts)):
            word = re.sub(r"\s+", " ", match.group(0))
            if words and MARKER.match(word):
                words[-1] += " " + word
            else:
                words.append(word)
        return words

    def filled(self):
        lines, line = [], self.first
        empty = True
        for word in self.words():
            if not empty and len(line) + 1 + len(word) > WIDTH:
                lines.append(line)
                line, empty = self.rest, True
            line += word if empty else " " + word
            empty = False
        return lines + [line]


def paragraphs(lines):
    """The paragraphs of a page, in order."""
    found = []
    fence, html, current, in_list = None, False, None, False
    for number, line in enumerate(lines, 1):
        line = line.rstrip()
        if fence:
            if line.strip().startswith(fence) and not line.strip(" `~"):
                fence = None
            continue
        if html:
            html = bool(line)
            continue
        if not line:
            current = None
            continue
        opening = FENCE.match(line)
        if opening:
            fence, current = opening.group(1), None
            continue
        indent = len(line) - len(line.lstrip())
        if HEADING.match(line) or RULE.match(line) or DEFINITION.match(line) \
                or line.lstrip().startswith("|"):
            current = None
            in_list = in_list and indent > 0
            continue
        if current is None and line.startswith("<"):
            html = True
            continue
        item = ITEM.match(line)
        if item and (current is None or in_list or
                     item.group(2) in ("-", "*", "+", "1.")):
            current = Paragraph(number, item.group(0), " " * item.end())
            current.texts.append(line[item.end():])
            in_list = True
            found.append(current)
            continue
        if current is None:
            in_list = in_list and indent > 0
            if indent >= 4 and not in_list:
                continue  # Indented code.
            quote = QUOTE.match(line)
            prefix = quote.group(0) if quote else " " * indent
            current = Paragraph(number, prefix, prefix)
            found.append(current)
        if current.rest.lstrip().startswith(">"):
            line = QUOTE.sub("", line, count=1)
        current.texts.append(line.strip())
    return found


def without_code(text):
    """Blanks out code blocks and spans and keeps the line breaks."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    text = re.sub(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$", blank, text,
                  flags=re.S | re.M)
    return re.sub(r"(?<!`)(`+)(?!`)(?:(?!\n\n).)*?(?<!`)\1(?!`)", blank, text,
                  flags=re.S)


def anchors(text):
    """What links of a page may name after '#', as GitHub makes it."""
    found = set()
    seen = {}
    fence = None
    for line in text.split("\n"):
        opening = FENCE.match(line)
        if opening:
            if fence is None:
                fence = opening.group(1)
            elif line.strip().startswith(fence):
                fence = None
            continue
        if fence or not HEADING.match(line):
            found.update(re.findall(r'\b(?:id|name)="([^"]+)"', line))
            continue
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#"))
        slug = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


class Checker:
    def __init__(self, root):
        self.root = root
        self.findings = []
        self._texts = {}

    def text(self, path):
        if path not in self._texts:
            with open(os.path.join(self.root, path), encoding="utf-8") as file:
                self._texts[path] = file.read()
        return self._texts[path]

    def report(self, path, line, text):
        self.findings.append((path, line, text))

    def check_layout(self, path):
        lines = self.text(path).split("\n")
        for number, line in enumerate(lines, 1):
            if line != line.rstrip():
                self.report(path, number, "a blank ends the line")
        for paragraph in paragraphs(lines):
            count = len(paragraph.texts)
            long = False
            for offset, text in enumerate(paragraph.texts):
                prefix = paragraph.rest if offset else paragraph.first
                line = prefix + text
                if len(line) > WIDTH and len(WORD.findall(text)) > 1:
                    long = True
                    self.report(path, paragraph.line + offset,
                                f"{len(line)} columns; prose is wrapped at "
                                f"{WIDTH}")
            if long:
                count = max(count, len(paragraph.filled()))
            if count > MAX_LINES:
                self.report(path, paragraph.line,
                            f"a paragraph of {count} lines; at most "
                            f"{MAX_LINES} are easy to read")

    def check_links(self, path):
        text = without_code(self.text(path))
        for match in LINK.finditer(text):
            target, _, anchor = match.group(1).partition("#")
            if re.match(r"[a-zA-Z][\w+.-]*:", target):
                continue
            line = text.count("\n", 0, match.start(1)) + 1
            other = os.path.normpath(
                os.path.join(os.path.dirname(path), target)) if target else path
            if not os.path.exists(os.path.join(self.root, other)):
                self.report(path, line, f"no file {other}")
            elif anchor and other.endswith(".md") and \
                    anchor not in anchors(self.text(other)):
                self.report(path, line, f"{other} has no heading #{anchor}")

    def fix(self, path):
        lines = [line.rstrip() for line in self.text(path).split("\n")]
        for paragraph in reversed(paragraphs(lines)):
            begin = paragraph.line - 1
            lines[begin:begin + len(paragraph.texts)] = paragraph.filled()
        text = "\n".join(lines)
        if text != self.text(path):
            with open(os.path.join(self.root, path), "w",
                      encoding="utf-8") as file:
                file.write(text)
            self._texts[path] = text
            print(f"  {path} is filled anew")


def main():
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    root = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    if arguments[:1] == ["--root"] and len(arguments) > 1:
        root = os.path.abspath(arguments[1])
        arguments = arguments[2:]
    fix = arguments[:1] == ["--fix"]
    if fix:
        arguments = arguments[1:]
    if any(argument.startswith("-") for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    for argument in arguments:
        if not os.path.isfile(argument):
            print(f"no file {argument}", file=sys.stderr)
            return 2
    paths = [os.path.relpath(argument, root) for argument in arguments]
    if not paths:
        listed = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--", "*.md"],
            capture_output=True, text=True, check=True).stdout.split("\0")
        paths = [path for path in sorted(set(listed))
                 if path and os.path.exists(os.path.join(root, path))]
    checker = Checker(root)
    for path in paths:
        if fix:
            checker.fix(path)
        checker.check_layout(path)
        checker.check_links(path)
    for path, line, text in sorted(checker.findings):
        print(f"{path}:{line}: {text}")
    if not checker.findings:
        print(f"  {len(paths)} files")
    return 1 if checker.findings else 0


if __name__ == "__main__":
    sys.exit(main())
