#!/usr/bin/env bash
# Makes a release out of a commit: Debian packages, an apt repository, a list of
# what is in them (SBOM), an image, checksums and signatures.
#
# Usage: scripts/release.sh --out DIR [--commit REF] [--arch A,B] [--key ID]
#                           [--quick] [--no-image]
#
#   --out DIR     gets everything; it must not hold anything yet
#   --commit REF  HEAD by default. Only what is committed is released.
#   --arch A,B    architectures, this machine's by default. Another one is
#                 cross-built: its libraries must be installed, as debian/control
#                 names them. Where there is no LibTorch for it, its packages
#                 come without dfld, and that is said.
#   --key ID      signs with this secret key of gpg's key ring ($GNUPGHOME)
#   --quick       compiled like the preset dev, whose objects ccache has: to try
#                 the rest of this script, not to be published
#   --no-image    no image. Without it one is built where there is a
#                 deploy/docker/Dockerfile and buildah, podman or docker.
#
# DIR then holds:
#   packages/     *.deb, *.changes, *.buildinfo
#   apt/          the repository, see scripts/release/repository.sh
#   dfld.spdx.json, dfld-image.tar (an OCI archive), dfld-VERSION.tar.gz
#   SHA256SUMS    of all of these; with --key SHA256SUMS.asc
#
# Needs dpkg-dev, debhelper, apt-utils and what debian/control says. lintian, if
# it is there, must find no error. Exit code: 0 made, 1 failed, 2 wrong usage.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

out='' commit=HEAD arch='' key='' quick='' image=1
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --out | --commit | --arch | --key)
      [[ -n ${2-} ]] || usage_error "$1 needs a value"
      declare "${1#--}=$2"
      shift
      ;;
    --quick) quick=1 ;;
    --no-image) image='' ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done
[[ -n $out ]] || usage_error "--out is missing"
[[ ! -e $out || -z $(ls -A "$out") ]] ||
  die "$out is not empty; name a new folder"
for tool in dpkg-buildpackage dh apt-ftparchive gpg; do
  command -v "$tool" >/dev/null ||
    die "there is no $tool; apt-get install dpkg-dev debhelper apt-utils gpg"
done
mkdir -p "$out"
out="$(cd "$out" && pwd)"
native="$(dpkg --print-architecture)"
IFS=, read -ra architectures <<<"${arch:-$native}"
cd "$ROOT"
hash="$(git rev-parse --verify --quiet "$commit^{commit}")" ||
  die "there is no commit $commit"
SOURCE_DATE_EPOCH="$(git log -1 --format=%ct "$hash")"
export SOURCE_DATE_EPOCH

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
git archive "$hash" | tar -x -C "$work" --one-top-level=dfld
version="$(dpkg-parsechangelog -l "$work/dfld/debian/changelog" -S Version)"
grep -q "^project(dfld VERSION $version " "$work/dfld/CMakeLists.txt" ||
  die "debian/changelog says $version, CMakeLists.txt another version"
say "releases $version, commit ${hash:0:12}, for ${architectures[*]}"
git archive --prefix="dfld-$version/" "$hash" | gzip -9n \
  >"$out/dfld-$version.tar.gz"

# has_torch ARCH: whether this machine can link LibTorch for it.
has_torch() {
  dpkg-query -W -f '${Status}' "libtorch-dev:$1" 2>/dev/null |
    grep -q ' installed$'
}

mkdir "$out/packages"
for architecture in "${architectures[@]}"; do
  profiles=() flags=()
  [[ -z $quick ]] || profiles+=(pkg.dfld.quick)
  if [[ $architecture == "$native" ]]; then
    flags+=(--build=binary)
  else
    # What is for all architectures was built with the native packages.
    flags+=(--build=any --host-arch "$architecture")
    profiles+=(cross nocheck)
    if ! has_torch "$architecture"; then
      say "there is no LibTorch for $architecture here: its packages come" \
        "without dfld-torch (apt-get install libtorch-dev:$architecture)"
      profiles+=(pkg.dfld.notorch)
    fi
  fi
  say "builds the packages for $architecture"
  (
    cd "$work/dfld"
    export DEB_BUILD_PROFILES="${profiles[*]}"
    run dpkg-buildpackage --no-sign "${flags[@]}"
  ) >"$out/build-$architecture.log" 2>&1 || {
    tail -n 30 "$out/build-$architecture.log" >&2
    die "the packages for $architecture cannot be built; all of the output is" \
      "in $out/build-$architecture.log"
  }
  rm -rf "$work/dfld/build"
done
mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$out/packages/"

if command -v lintian >/dev/null; then
  say "lintian looks at them"
  run lintian --fail-on error --suppress-tags bad-distribution-in-changes-file \
    "$out"/packages/*.changes ||
    die "lintian found errors, see above"
else
  say "lintian is not here: nobody has looked at the packages"
fi

say "makes the apt repository"
scripts/release/repository.sh --out "$out/apt" ${key:+--key "$key"} \
  "$out"/packages/*.deb
scripts/release/sbom.py --name "dfld-$version" --commit "$hash" \
  "$out"/packages/*.deb >"$out/dfld.spdx.json" ||
  die "the SBOM cannot be made"

builder=''
for tool in buildah podman docker; do
  [[ -n $builder ]] || ! command -v "$tool" >/dev/null || builder="$tool"
done
if [[ -z $image ]]; then
  say "makes no image, as asked"
elif [[ -z $builder || ! -f "$work/dfld/deploy/docker/Dockerfile" ]]; then
  say "makes no image: there is no ${builder:+deploy/docker/Dockerfile}$(
    [[ -n $builder ]] || printf 'buildah, podman or docker'
  )"
else
  say "builds the image with $builder"
  run "$builder" build --tag "dfld:$version" \
    --file "$work/dfld/deploy/docker/Dockerfile" "$work/dfld" ||
    die "the image cannot be built"
  case "$builder" in
    buildah)
      run buildah push "dfld:$version" \
        "oci-archive:$out/dfld-image.tar:dfld:$version"
      ;;
    podman)
      run podman save --format oci-archive --output "$out/dfld-image.tar" \
        "dfld:$version"
      ;;
    docker) run docker save --output "$out/dfld-image.tar" "dfld:$version" ;;
  esac || die "the image cannot be written"
fi

cd "$out"
find . -type f ! -name 'SHA256SUMS*' ! -name 'build-*.log' -printf '%P\n' |
  LC_ALL=C sort | xargs -d '\n' sha256sum >SHA256SUMS
if [[ -n $key ]]; then
  gpg --batch --yes --local-user "$key" --armor --detach-sign \
    --output SHA256SUMS.asc SHA256SUMS || die "gpg cannot sign with key $key"
fi
say "made $out"
