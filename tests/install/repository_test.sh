#!/usr/bin/env bash
# scripts/release/repository.sh and sbom.py, with small packages of the test's:
# apt takes packages from a signed repository, and refuses changed ones.
#
# Usage: repository_test.sh SOURCE WORK
set -euo pipefail
source="$1" work="$2"
for tool in dpkg-deb apt-ftparchive apt-get gpg; do
  command -v "$tool" >/dev/null || {
    echo "this test is skipped: install dpkg, apt-utils and gpg"
    exit 0
  }
done
rm -rf "$work"
mkdir -p "$work"
trap 'gpgconf --kill gpg-agent || true; rm -rf "$work"' EXIT
export GNUPGHOME="$work/gnupg"
mkdir -m 0700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key 'dfld test' \
  ed25519 sign never
key="$(gpg --list-keys --with-colons | awk -F: '/^fpr/ {print $10; exit}')"

fail() {
  echo "FAILED: $*"
  exit 1
}

# package NAME VERSION ARCH DEPENDS
package() {
  mkdir -p "$work/$1/DEBIAN"
  printf '%s\n' "Package: $1" "Version: $2" "Architecture: $3" \
    'Maintainer: Nobody <nobody@dfld.invalid>' "Depends: $4" \
    'Description: a package of a test' >"$work/$1/DEBIAN/control"
  dpkg-deb --build --root-owner-group "$work/$1" "$work/$1_$2_$3.deb" >/dev/null
}
package dfl-one 1.0 amd64 'libc6 (>= 2.3) | libc7, dfl-two'
package dfl-two 1.0 all libc6
package dfl-arm 1.0 arm64 dfl-two

"$source/scripts/release/repository.sh" --out "$work/apt" --key "$key" \
  "$work"/*.deb

# An apt of its own, which knows nothing of this machine's.
mkdir -p "$work"/state/lists/partial "$work"/cache/archives/partial "$work/dpkg"
touch "$work/dpkg/status"
apt_get() {
  apt-get -q -o Dir::State="$work/state" -o Dir::State::status="$work/dpkg/status" \
    -o Dir::Cache="$work/cache" -o Dir::Etc::SourceList="$work/sources" \
    -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Parts=/dev/null \
    -o Dir::Etc::TrustedParts=/dev/null -o APT::Architecture=amd64 \
    -o APT::Architectures=amd64,arm64 -o APT::Sandbox::User=root "$@"
}
echo "deb [signed-by=$work/apt/dfld.asc] file:$work/apt stable main" \
  >"$work/sources"
apt_get update >"$work/log" 2>&1 || fail "apt refuses: $(cat "$work/log")"
for name in dfl-one dfl-two dfl-arm:arm64; do
  (cd "$work/cache" && apt_get download "$name" >"$work/log" 2>&1) ||
    fail "no $name: $(cat "$work/log")"
done

# A second one of the same version range is added, not put in its place.
package dfl-two 1.1 all libc6
"$source/scripts/release/repository.sh" --out "$work/apt" --key "$key" \
  "$work/dfl-two_1.1_all.deb"
apt_get update >"$work/log" 2>&1 || fail "apt refuses: $(cat "$work/log")"
apt-cache -o Dir::State="$work/state" -o Dir::Cache="$work/cache" \
  -o Dir::State::status="$work/dpkg/status" \
  -o Dir::Etc::SourceList="$work/sources" -o Dir::Etc::SourceParts=/dev/null \
  -o APT::Architecture=amd64 madison dfl-two >"$work/log"
for version in 1.0 1.1; do
  grep -qF "$version" "$work/log" ||
    fail "both versions should be there: $(cat "$work/log")"
done

# A changed list of packages is refused.
sed -i 's/a package of a test/a package of somebody else/' \
  "$work/apt/dists/stable/main/binary-amd64/Packages"
rm "$work/apt/dists/stable/main/binary-amd64/Packages.gz"
rm -rf "$work/state/lists" && mkdir -p "$work/state/lists/partial"
apt_get update >"$work/log" 2>&1 || true
grep -q 'Hash Sum mismatch\|unexpected size' "$work/log" ||
  fail "apt takes a changed list: $(cat "$work/log")"
# So is another key.
gpg --batch --quiet --passphrase '' --quick-generate-key 'somebody else' \
  ed25519 sign never
gpg --batch --yes --armor --export 'somebody else' >"$work/apt/dfld.asc"
apt_get update >"$work/log" 2>&1 && fail 'apt takes another key'

"$source/scripts/release/sbom.py" --name test-1.0 --commit abc --date 0 \
  "$work/dfl-one_1.0_amd64.deb" "$work/dfl-two_1.0_all.deb" >"$work/sbom"
python3 - "$work" <<'PYTHON' || fail "the SBOM is wrong: $(cat "$work/sbom")"
import hashlib, json, sys
work = sys.argv[1]
sbom = json.load(open(work + "/sbom"))
packages = {p["name"]: p for p in sbom["packages"]}
assert set(packages) == {"dfl-one", "dfl-two", "libc6"}, packages.keys()
one = open(work + "/dfl-one_1.0_amd64.deb", "rb").read()
assert (packages["dfl-one"]["checksums"][0]["checksumValue"] ==
        hashlib.sha256(one).hexdigest())
assert sbom["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
found = {(r["spdxElementId"], r["relatedSpdxElement"])
         for r in sbom["relationships"] if r["relationshipType"] == "DEPENDS_ON"}
ids = {name: p["SPDXID"] for name, p in packages.items()}
assert found == {(ids["dfl-one"], ids["libc6"]), (ids["dfl-one"], ids["dfl-two"]),
                 (ids["dfl-two"], ids["libc6"])}, found
PYTHON
echo 'well'
