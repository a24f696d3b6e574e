#!/usr/bin/env bash
# Builds the codec, mixing and their tests for arm64 by Debian's cross compiler,
# and runs them under qemu-user: the vectors of NEON must give the same bytes.
#
# Usage: scripts/arm64.sh [--no-install]
#
#   --no-install   asks no package manager to install anything.
#
# The libraries for arm64 come from Debian's packages of this release. They are
# unpacked into build/arm64/root, not installed, which takes no rights. Needs
# root or sudo only to install the compiler and qemu. Exit code: 0 all tests
# passed, 1 something failed (the cause is printed), 2 wrong usage, 77 skipped,
# since the tools are missing.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

install=1
case "${1-}" in
  '') ;;
  -h | --help) show_help && exit 0 ;;
  --no-install) install= ;;
  *) usage_error "unknown argument '$1'" ;;
esac

# Development packages whose headers and libraries the tests are built with.
readonly PACKAGES=(libabsl-dev libgmock-dev libgtest-dev libhwy-dev libssl-dev)
readonly BUILD="$ROOT/build/arm64"
readonly LIBRARIES="$BUILD/root"

[[ -z $install ]] || "$ROOT/scripts/install-deps.sh" build arm64
for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  if ! command -v "$tool" >/dev/null; then
    say "skipped: there is no $tool; scripts/install-deps.sh arm64 installs it"
    exit 77
  fi
done

# apt_arm64 ARGUMENT...: apt-get of a machine of its own, on which nothing is
# installed yet and all packages are arm64's.
apt_arm64() {
  local state="$BUILD/apt"
  mkdir -p "$state/lists/partial" "$state/archives/partial"
  : >"$state/status"
  run env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y \
    -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
    -o APT::Sandbox::User= -o Debug::NoLocking=1 \
    -o Dir::State="$state" -o Dir::State::status="$state/status" \
    -o Dir::Cache="$state" "$@" >>"$BUILD/apt.log" 2>&1 || {
    tail -n 20 "$BUILD/apt.log" >&2
    die "the packages for arm64 could not be had, see above"
  }
}

# The compiler brings its own C library's headers, and would find these first.
unpack() {
  local package
  for package in "$BUILD"/apt/archives/*.deb; do
    case "$(basename "$package")" in
      libc6-dev_* | libc-dev-bin_* | libcrypt-dev_* | linux-libc-dev_*) ;;
      *) run dpkg-deb --extract "$package" "$LIBRARIES.new" ;;
    esac
  done
  mv "$LIBRARIES.new" "$LIBRARIES"
}

mkdir -p "$BUILD"
if [[ ! -d $LIBRARIES ]]; then
  say "fetches the libraries for arm64: ${PACKAGES[*]}"
  rm -rf "$LIBRARIES.new"
  apt_arm64 update
  apt_arm64 install --download-only --no-install-recommends "${PACKAGES[@]}"
  unpack
fi

say "configures build/arm64"
run cmake -S "$ROOT/cmake/arm64" -B "$BUILD" -G Ninja \
  -DCMAKE_TOOLCHAIN_FILE="$ROOT/cmake/arm64/toolchain.cmake" \
  -DCMAKE_BUILD_TYPE=Release -DDFL_ARM64_ROOT="$LIBRARIES" \
  >"$BUILD/configure.log" 2>&1 || {
  tail -n 40 "$BUILD/configure.log" >&2
  die "cmake could not configure build/arm64, see above"
}
say "builds in build/arm64"
run cmake --build "$BUILD" || die "the build failed, see its first error above"
say "runs the tests under qemu"
run ctest --test-dir "$BUILD" --output-on-failure --no-tests=error ||
  die "not all tests passed on arm64, see above"
