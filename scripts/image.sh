#!/usr/bin/env bash
# Builds the container image, measures it and starts it once.
#
# Usage: scripts/image.sh [--tag NAME] [--base IMAGE | --debootstrap SUITE]
#                         [--programs DIR] [--check]
#
#   --tag NAME           of the image; dfld:VERSION by default
#   --base IMAGE         what it is made from; Debian 13 from Docker's registry
#                        by default
#   --debootstrap SUITE  makes the base from Debian's own packages, such as
#                        trixie, where no registry can be reached
#   --programs DIR       takes dfld and dflctl from there instead of compiling
#                        them; they must be of the base's release or older
#   --check              then starts it as an operator should, without rights,
#                        and looks whether it lives and ends in order
#
# Needs buildah (and podman for --check) and root. Prints what the image has
# over its base. It may be at most 40 MB more than the libraries that the
# programs need.
#
# Exit code: 0 built, 1 failed or too large, 2 wrong usage, 77 the machine lacks
# buildah or podman.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

version="$(sed -n 's/^project(dfld VERSION \([0-9.]*\).*/\1/p' \
  "$ROOT/CMakeLists.txt")"
tag="dfld:$version" base=docker.io/library/debian:trixie-slim suite=''
programs='' check=''
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --tag | --base | --programs)
      [[ -n ${2-} ]] || usage_error "$1 needs a value"
      declare "${1#--}=$2"
      shift
      ;;
    --debootstrap)
      [[ -n ${2-} ]] || usage_error "$1 needs a value"
      suite="$2"
      shift
      ;;
    --check) check=1 ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done
for tool in buildah ${check:+podman} ${suite:+debootstrap}; do
  command -v "$tool" >/dev/null || {
    say "SKIPPED: there is no $tool (Debian: $tool)"
    exit 77
  }
done
((EUID == 0)) || {
  say "SKIPPED: building an image takes root"
  exit 77
}
if [[ -n $programs ]]; then
  programs="$(realpath -- "$programs")"
  [[ -x $programs/dfld && -x $programs/dflctl ]] ||
    die "$programs has no dfld and dflctl"
fi
cd "$ROOT"
revision="$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)"
work="$(mktemp -d -t dfl-image.XXXXXX)"
container=''
cleanup() {
  [[ -z $container ]] || buildah rm "$container" >/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

# files_of ROOT: sum of its files' sizes in bytes; a file with several names
# counts once.
files_of() {
  find "$1" -xdev -type f -printf '%i %s\n' | sort -u |
    awk '{ sum += $2 } END { printf "%d", sum }'
}

if [[ -n $suite ]]; then
  base="localhost/debian:$suite-minbase"
  if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
    say "makes the base: debootstrap $suite"
    run debootstrap --variant=minbase "$suite" "$work/base" >"$work/log" 2>&1 ||
      die "debootstrap failed: $(tail -n 3 "$work/log")"
    rm -rf "$work/base/var/cache/apt/archives" "$work/base/var/lib/apt/lists"
    container="$(buildah from scratch)"
    buildah add -q "$container" "$work/base" / >/dev/null
    buildah commit -q "$container" "$base" >/dev/null
    buildah rm "$container" >/dev/null
    container=''
  fi
fi

labels=(--build-arg "VERSION=$version" --build-arg "REVISION=$revision"
  --build-arg "CREATED=$(date -u +%Y-%m-%dT%H:%M:%SZ)")
if [[ -z $programs ]]; then
  say "builds $tag from $base: compiles first, which takes long"
  # Labels and health check are Docker's form; a chroot will do for a compiler.
  run buildah build --format docker --isolation chroot --network host \
    --build-arg "BASE=$base" "${labels[@]}" \
    --file deploy/docker/Dockerfile --tag "$tag" . ||
    die "the image cannot be built, see above"
else
  # The last stage of the same file, on what is put together here.
  say "builds $tag from $base with the programs of $programs"
  container="$(buildah from "$base")"
  root="$(buildah mount "$container")"
  mkdir "$work/base-has" "$work/programs"
  cp "$root/etc/passwd" "$root/etc/group" "$work/base-has/"
  (cd "$root" && find usr lib -xdev \( -type f -o -type l \) -printf '/%p\n') \
    >"$work/base-has/files"
  buildah umount "$container" >/dev/null
  install -s -t "$work/programs" "$programs/dfld" "$programs/dflctl"
  deploy/docker/assemble.sh "$work/base-has" "$work/context/image" "$version" \
    "$work/programs"
  { printf 'ARG BASE\n' &&
    sed -n '/^# ---- the image/,$p' deploy/docker/Dockerfile; } |
    sed 's|^COPY --from=compile \(.*\)/image|COPY \1image|' \
      >"$work/context/Dockerfile"
  run buildah build --format docker --build-arg "BASE=$base" "${labels[@]}" \
    --tag "$tag" "$work/context" || die "the image cannot be built, see above"
fi

say "measures $tag"
root_of() {
  [[ -z $container ]] || buildah rm "$container" >/dev/null
  container="$(buildah from --pull-never "$1")"
  root="$(buildah mount "$container")"
}
root_of "$base"
base_bytes="$(files_of "$root")"
root_of "$tag"
image_bytes="$(files_of "$root")"
libraries="$(chroot "$root" /usr/bin/env LC_ALL=C ldd /usr/bin/dfld \
  /usr/bin/dflctl | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u)"
missing="$(chroot "$root" /usr/bin/env LC_ALL=C ldd /usr/bin/dfld \
  /usr/bin/dflctl | grep 'not found' | sort -u || true)"
[[ -z $missing ]] || die "libraries are missing in the image: $missing"
closure=0
while IFS= read -r library; do
  real="$(chroot "$root" readlink -f "$library")"
  closure=$((closure + $(stat -c %s "$root$real")))
done <<<"$libraries"
over=$((image_bytes - base_bytes))
say "base $((base_bytes / 1000000)) MB, over it $((over / 1000000)) MB;" \
  "libraries that the programs need: $((closure / 1000000)) MB"
((over <= closure + 40000000)) ||
  die "the image has $(((over - closure) / 1000000)) MB over its libraries;" \
    "at most 40 are allowed"
[[ -f $root/usr/share/doc/dfld/sbom.spdx.json ]] || die "it has no SBOM"
buildah rm "$container" >/dev/null
container=''
[[ -z $check ]] || exec "$ROOT/deploy/docker/check.sh" "$tag"
