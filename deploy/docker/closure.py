#!/usr/bin/env python3
"""Copies the shared libraries that programs need, and lists whose they are.

Usage: closure.py [--base FILE] [--sbom FILE] [--version V] ROOT PROGRAM...

The libraries are found as the dynamic linker would find them: from each file's
NEEDED entries, its RUNPATH, and the folders of its architecture. So it works
for programs of another architecture, too. Each lands below ROOT under the path
that the linker looks at, with the links that lead there.

  --base FILE   paths that are there already, one a line: the image's base. They
                are not copied.
  --sbom FILE   the programs and Debian's packages of the libraries, as SPDX 2.3
                in JSON. Each package is also entered in ROOT's
                /var/lib/dpkg/status.d, where scanners of images look, and its
                copyright file is copied.

Exit code: 0 done, 1 a library is not there (named with who needs it).
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

# Opened by name while a program runs; nothing names them as NEEDED.
OPENED = ("libnss_dns.so.2", "libnss_files.so.2")


def dynamic(path):
    """(names of NEEDED, folders of RUNPATH, name of the architecture)."""
    text = subprocess.run(["readelf", "-Wdh", path], check=True, text=True,
                          capture_output=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)
    machine = re.search(r"Machine:\s+(.*)", text).group(1)
    # That of the name by which it is opened, also where that is a link.
    origin = os.path.dirname(os.path.abspath(path))
    folders = [f.replace("$ORIGIN", origin) for p in paths
               for f in p.split(":") if f]
    return needed, folders, machine


TRIPLETS = {"Advanced Micro Devices X86-64": "x86_64-linux-gnu",
            "AArch64": "aarch64-linux-gnu"}


def closure(programs):
    """Paths, as the linker opens them, of the libraries that are needed. One
    may be opened by several, since only some files have a RUNPATH."""
    found = set()
    waiting = list(programs)
    while waiting:
        path = waiting.pop()
        needed, folders, machine = dynamic(path)
        triplet = TRIPLETS[machine]
        folders = folders + [
            f"/usr/lib/{triplet}", f"/lib/{triplet}",
            # Alternatives of BLAS and LAPACK.
            f"/usr/lib/{triplet}/openblas-pthread", "/usr/lib", "/lib"]
        for name in needed + (list(OPENED) if path in programs else []):
            place = next((os.path.join(f, name) for f in folders
                          if os.path.exists(os.path.join(f, name))), None)
            if place is None:
                if name in OPENED:
                    continue
                sys.exit(f"closure.py: {path} needs {name}, which is in none "
                         f"of {', '.join(folders)}")
            if place not in found:
                found.add(place)
                waiting.append(place)
    return found


def copy(path, root):
    target = root + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target):
        os.remove(target)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
    else:
        shutil.copy2(path, target)


def owners(paths):
    """Debian's package of each file that is of one; asks dpkg once."""
    # /lib is a link to /usr/lib, and packages still name files by either.
    asked = {}
    for path in paths:
        asked[path] = path
        asked[path.replace("/usr/lib/", "/lib/", 1)] = path
    done = subprocess.run(["dpkg-query", "-S", *asked], text=True, check=False,
                          capture_output=True)
    found = {}
    for line in done.stdout.splitlines():
        packages, _, path = line.partition(": ")
        if path in asked and not line.startswith("diversion "):
            found[asked[path]] = packages.split(",")[0].strip()
    return found


def stanzas(packages):
    """Name to what dpkg knows of the package."""
    text = subprocess.run(["dpkg-query", "-s", *packages], check=True,
                          text=True, capture_output=True).stdout
    return {field(one, "Package"): one.strip() + "\n"
            for one in re.split(r"\n(?=Package: )", text)}


def field(text, name):
    match = re.search(rf"^{name}: (.*)$", text, re.M)
    return match.group(1) if match else ""


def digest(path):
    with open(path, "rb") as data:
        return hashlib.sha256(data.read()).hexdigest()


def write_sbom(path, version, programs, packages):
    """`packages`: name to stanza of dpkg."""
    moment = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    entries = []
    for program in programs:
        name = os.path.basename(program)
        entries.append({
            "SPDXID": f"SPDXRef-{name}", "name": name, "versionInfo": version,
            "supplier": "NOASSERTION", "downloadLocation": "NOASSERTION",
            "licenseDeclared": "Apache-2.0", "licenseConcluded": "NOASSERTION",
            "copyrightText": "NOASSERTION", "filesAnalyzed": False,
            "checksums": [{"algorithm": "SHA256",
                           "checksumValue": digest(program)}]})
    for name, text in sorted(packages.items()):
        number, arch = field(text, "Version"), field(text, "Architecture")
        entries.append({
            "SPDXID": "SPDXRef-deb-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
            "name": name, "versionInfo": number,
            "supplier": "Organization: Debian",
            "downloadLocation": "NOASSERTION",
            "licenseDeclared": "NOASSERTION",
            "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION",
            "filesAnalyzed": False,
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator":
                    f"pkg:deb/debian/{name}@{number}?arch={arch}"}]})
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT", "name": f"dfld-{version}-image",
        "documentNamespace":
            f"https://spdx.org/spdxdocs/dfld-{version}-"
            f"{digest(programs[0])[:16]}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment)),
            "creators": ["Tool: closure.py"]},
        "packages": entries,
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT",
             "relationshipType": "DESCRIBES",
             "relatedSpdxElement": e["SPDXID"]} for e in
            entries[:len(programs)]] + [
            {"spdxElementId": entries[0]["SPDXID"],
             "relationshipType": "DEPENDS_ON",
             "relatedSpdxElement": e["SPDXID"]} for e in
            entries[len(programs):]]}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        json.dump(document, out, indent=1)
        out.write("\n")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--base")
    parser.add_argument("--sbom")
    parser.add_argument("--version", default="0")
    parser.add_argument("root")
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    base = set()
    if options.base:
        with open(options.base, encoding="utf-8") as lines:
            base = {os.path.realpath(line.rstrip("\n")) for line in lines}

    files = {path: os.path.realpath(path)
             for path in sorted(closure(options.programs))}
    packages = stanzas(sorted(set(owners(files.values()).values())))
    whole = sum(os.path.getsize(real) for real in set(files.values()))
    copied = set()
    for path, real in files.items():
        if real in base:
            continue
        copied.add(real)
        # The linker's own folders are the first and the last of the chain; what
        # /etc/alternatives has in between is not needed.
        copy(real, options.root)
        if os.path.abspath(path) != real:
            target = options.root + os.path.abspath(path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if not os.path.lexists(target):
                os.symlink(real, target)

    if options.sbom:
        write_sbom(options.sbom, options.version, options.programs, packages)
        status = os.path.join(options.root, "var/lib/dpkg/status.d")
        os.makedirs(status, exist_ok=True)
        for name, text in packages.items():
            with open(os.path.join(status, name), "w",
                      encoding="utf-8") as out:
                out.write(text)
            notice = f"/usr/share/doc/{name}/copyright"
            if os.path.exists(notice) and notice not in base:
                target = options.root + notice
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(notice, target)
    size = sum(os.path.getsize(real) for real in copied)
    print(f"closure: {whole} bytes of {len(packages)} packages, {size} bytes "
          f"of which the base has not")


if __name__ == "__main__":
    main()
