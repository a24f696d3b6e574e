#!/usr/bin/env python3
"""Says what Debian packages are made of and what they need, as SPDX 2.3 JSON.

Usage: sbom.py --name NAME --commit HASH [--date SECONDS] PACKAGE.deb...

Each package is listed with its SHA-256, and with each package of Debian that it
depends on. A dependency has the version that is installed here, which is what
the packages were built with; one that is not installed has none, as for another
architecture. Packages that are built in come from the field Static-Built-Using.
--date is the time in the document, SOURCE_DATE_EPOCH by default, so that the
same packages give the same document. Exit code: 0 written to standard output,
1 a package cannot be read.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys


def field(package, name):
    done = subprocess.run(["dpkg-deb", "--field", package, name],
                          capture_output=True, text=True, check=True)
    return done.stdout.strip()


def installed(name):
    """Version of a package on this machine; None: it is not installed."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}\n", name],
                          capture_output=True, text=True)
    return done.stdout.split("\n")[0] or None if done.returncode == 0 else None


def names(relation):
    """"a (>= 1) | b, c:any" -> a, c: the first alternative of each."""
    found = []
    for part in relation.split(","):
        name = re.split(r"[\s(:|]", part.strip(), maxsplit=1)[0]
        if name:
            found.append(name)
    return found


def spdx_id(*parts):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", "-".join(parts))


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def purl(name, version, architecture):
    return {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{name}@{version}"
                                f"?arch={architecture}"}


def document(arguments):
    packages, relations, outside = [], [], {}
    for path in sorted(arguments.packages):
        name, version = field(path, "Package"), field(path, "Version")
        architecture = field(path, "Architecture")
        its = spdx_id("Package", name, architecture)
        packages.append({
            "SPDXID": its, "name": name, "versionInfo": version,
            "packageFileName": os.path.basename(path),
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
            "copyrightText": "NOASSERTION",
            "supplier": "Organization: dfld maintainers",
            "checksums": [{"algorithm": "SHA256",
                           "checksumValue": sha256(path)}],
            "externalRefs": [purl(name, version, architecture)]})
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", its))
        for kind, how in (("Depends", "DEPENDS_ON"),
                          ("Static-Built-Using", "STATIC_LINK")):
            for other in names(field(path, kind)):
                outside[other] = spdx_id("Debian", other)
                relations.append((its, how, outside[other]))
    own = {package["name"]: package["SPDXID"] for package in packages}
    for name, its in sorted(outside.items()):
        if name in own:
            relations = [(a, how, own[name] if b == its else b)
                         for a, how, b in relations]
            continue
        entry = {"SPDXID": its, "name": name,
                 "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
                 "licenseConcluded": "NOASSERTION",
                 "licenseDeclared": "NOASSERTION",
                 "copyrightText": "NOASSERTION"}
        version = installed(name)
        if version:
            entry["versionInfo"] = version
        packages.append(entry)
    made = datetime.datetime.fromtimestamp(arguments.date,
                                           datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT", "name": arguments.name,
        "documentNamespace":
            f"https://spdx.org/spdxdocs/{arguments.name}-{arguments.commit}",
        "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: scripts/release/sbom.py"]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": a, "relationshipType": how,
             "relatedSpdxElement": b} for a, how, b in relations]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--name", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--date", type=int,
                        default=int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    parser.add_argument("packages", nargs="+", metavar="PACKAGE.deb")
    arguments = parser.parse_args()
    try:
        json.dump(document(arguments), sys.stdout, indent=1)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"sbom.py: {error}", file=sys.stderr)
        return 1
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
