#!/bin/sh
# Installs what the image's first stage compiles with, for this machine or for
# another architecture of Debian.
#
# Usage: toolchain.sh BUILDARCH TARGETARCH     as docker names them; "": this
#
# Leaves in /base what the Dockerfile reads: cmake-arguments, strip-argument.
set -eu
native=$(dpkg --print-architecture)
target=${2:-$native}
cd "$(dirname "$0")/../.."
: >/base/cmake-arguments
: >/base/strip-argument
apt-get update -q
if [ "$target" = "$native" ]; then
  scripts/install-deps.sh build
  apt-get install -q -y --no-install-recommends python3-minimal file
else
  dpkg --add-architecture "$target"
  apt-get update -q
  # Libraries of the target; tools, and what has no architecture, of this one.
  # libtorch-dev wants the target's Python, which cannot be beside this one's.
  # So it is only unpacked; what it is linked with is installed.
  libraries=$(scripts/install-deps.sh --list build |
    grep -E '^(lib.*|zlib1g)-dev$' | grep -vE '^lib(cli11|torch)-dev$' |
    sed "s/\$/:$target/")
  tools=$(scripts/install-deps.sh --list build |
    grep -vE '^(lib.*|zlib1g)-dev$')
  torch=$(apt-cache show "libtorch-dev:$target" |
    sed -n 's/^Depends:.*\(libtorch[0-9][0-9.]*\).*/\1/p' | head -n 1)
  [ -n "$torch" ] || {
    echo "toolchain.sh: Debian has no LibTorch for $target" >&2
    exit 1
  }
  # shellcheck disable=SC2086
  apt-get install -q -y --no-install-recommends python3-minimal file \
    "crossbuild-essential-$target" libcli11-dev "$torch:$target" \
    $tools $libraries
  (cd /tmp && apt-get download "libtorch-dev:$target" &&
    dpkg -x libtorch-dev_*.deb / && rm libtorch-dev_*.deb)
  triplet=$(dpkg-architecture -a "$target" -q DEB_HOST_MULTIARCH 2>/dev/null)
  cat >/base/toolchain.cmake <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $(dpkg-architecture -a "$target" -q DEB_HOST_GNU_CPU))
set(CMAKE_C_COMPILER $triplet-gcc)
set(CMAKE_CXX_COMPILER $triplet-g++)
set(CMAKE_LIBRARY_ARCHITECTURE $triplet)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/$triplet/pkgconfig:/usr/share/pkgconfig)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
END
  echo "-DCMAKE_TOOLCHAIN_FILE=/base/toolchain.cmake" >/base/cmake-arguments
  echo "--strip-program=$triplet-strip" >/base/strip-argument
fi
rm -rf /var/lib/apt/lists/*
