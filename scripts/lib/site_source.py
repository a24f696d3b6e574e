#!/usr/bin/env python3
"""Puts the tracked pages together as mkdocs wants them.

Usage: site_source.py DIR

DIR gets mkdocs.yml and docs/, with every tracked Markdown page under its own
path and each file that one of them links to. So links between pages hold as
they are. The order of the menu is below.
"""

import os
import re
import shutil
import subprocess
import sys

# Title and pages; "README.md" is the start. What is not here is under "More".
MENU = (
    ("Begin", ("docs/quickstart.md", "docs/own-data.md", "docs/own-model.md",
               "docs/choosing.md")),
    ("Run", ("docs/operating.md", "deploy/README.md", "deploy/docker/README.md",
             "deploy/kubernetes/README.md", "docs/wan.md",
             "docs/raspberry-pi.md", "docs/monitoring.md", "docs/page.md",
             "docs/troubleshooting.md",
             "docs/security.md", "docs/checkpoints.md", "docs/failures.md")),
    ("Reference", ("docs/configuration.md", "docs/metrics.md", "cli/README.md",
                   "docs/algorithms.md", "docs/data.md", "docs/models.md",
                   "docs/client.md", "docs/simulator.md", "docs/discovery.md",
                   "docs/orders.md", "docs/contract.md",
                   "docs/aggregation.md")),
    ("How it works", ("docs/README.md", "docs/architecture.md",
                      "docs/rounds.md", "docs/membership.md",
                      "docs/protocol.md")),
)
LINK = re.compile(r"\]\(\s*<?([^()\s>#]+)[^()\s>]*>?[^()]*\)")


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], check=True,
                            capture_output=True, text=True).stdout
    return [name for name in listed.split("\0")
            if name and os.path.exists(name)]


def title(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# "):
                return line[2:].strip().replace("`", "")
    return path


def put(path, folder):
    target = os.path.join(folder, "docs", path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(path, target)


def entry(path):
    # YAML takes JSON's strings; a title may have a colon.
    quoted = title(path).replace("\\", "").replace('"', "'")
    return f'"{quoted}": {path}'


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    files = set(tracked())
    pages = sorted(name for name in files if name.endswith(".md"))
    linked = set()
    for page in pages:
        put(page, folder)
        with open(page, encoding="utf-8") as text:
            for match in LINK.finditer(text.read()):
                if "://" in match.group(1):
                    continue
                linked.add(os.path.normpath(
                    os.path.join(os.path.dirname(page), match.group(1))))
    for name in sorted(linked):
        if name in files and not name.endswith(".md"):
            put(name, folder)
        elif os.path.isdir(name) and name + "/README.md" not in pages:
            print(f"warning: a page links to the folder {name}, which has no "
                  "README.md", file=sys.stderr)

    lines = ["site_name: dfl", "use_directory_urls: false", "docs_dir: docs",
             "theme: {name: mkdocs, highlightjs: false, nav_style: dark}",
             "plugins: [search]",
             "markdown_extensions: [tables, fenced_code, toc, sane_lists]",
             "nav:", "  - Start: README.md"]
    named = {"README.md"}
    for heading, members in MENU:
        lines.append(f"  - {heading}:")
        for page in members:
            if page in pages:
                named.add(page)
                lines.append(f"      - {entry(page)}")
    lines.append("  - More:")
    for page in pages:
        if page not in named and not page.startswith("tests/e2e/cases/"):
            named.add(page)
            lines.append(f"      - {entry(page)}")
    with open(os.path.join(folder, "mkdocs.yml"), "w",
              encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
