#!/usr/bin/env bash
# Makes an apt repository of static files out of packages, or adds them to one.
#
# Usage: scripts/release/repository.sh --out DIR [--suite NAME] [--key ID]
#                                      PACKAGE.deb...
#
#   --out DIR     the repository: dists/ and pool/. Any web server can serve it.
#   --suite NAME  stable by default
#   --key ID      signs with this secret key of gpg's key ring ($GNUPGHOME), and
#                 puts its public part into DIR/dfld.asc. Without it the
#                 repository is not signed, and apt refuses it unless its source
#                 says [trusted=yes].
#
# On a box: copy dfld.asc to /etc/apt/keyrings, and write into
# /etc/apt/sources.list.d/dfld.list
#
#   deb [signed-by=/etc/apt/keyrings/dfld.asc] URL stable main
#
# Exit code: 0 made, 1 failed, 2 wrong usage.
. "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"

out='' suite=stable key='' packages=()
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --out | --suite | --key)
      [[ -n ${2-} ]] || usage_error "$1 needs a value"
      declare "${1#--}=$2"
      shift
      ;;
    -*) usage_error "unknown argument '$1'" ;;
    *) packages+=("$1") ;;
  esac
  shift
done
[[ -n $out ]] || usage_error "--out is missing"
((${#packages[@]})) || usage_error "a package is missing"
[[ $suite =~ ^[a-z0-9.-]+$ ]] ||
  usage_error "--suite is '$suite'; allowed: small letters, digits, '.', '-'"
command -v apt-ftparchive >/dev/null ||
  die "there is no apt-ftparchive; apt-get install apt-utils"

architectures=()
for package in "${packages[@]}"; do
  name="$(dpkg-deb --field "$package" Package)" ||
    die "$package is no Debian package"
  source="$(dpkg-deb --field "$package" Source)"
  source="${source%% *}"
  architectures+=("$(dpkg-deb --field "$package" Architecture)")
  folder="$out/pool/main/${source:-$name}"
  mkdir -p "$folder"
  cp "$package" "$folder/"
done
mapfile -t architectures < <(
  find "$out/pool" -name '*.deb' -exec dpkg-deb --field {} Architecture \; |
    grep -vx all | sort -u
)
((${#architectures[@]})) || architectures=("$(dpkg --print-architecture)")

cd "$out"
for architecture in "${architectures[@]}"; do
  folder="dists/$suite/main/binary-$architecture"
  mkdir -p "$folder"
  apt-ftparchive --arch "$architecture" packages pool/main >"$folder/Packages"
  gzip -9nk -f "$folder/Packages"
done
# The old signatures are those of an old Release.
rm -f "dists/$suite/Release" "dists/$suite/InRelease" \
  "dists/$suite/Release.gpg"
apt-ftparchive \
  -o APT::FTPArchive::Release::Origin=dfld \
  -o APT::FTPArchive::Release::Label=dfld \
  -o APT::FTPArchive::Release::Suite="$suite" \
  -o APT::FTPArchive::Release::Codename="$suite" \
  -o APT::FTPArchive::Release::Components=main \
  -o APT::FTPArchive::Release::Architectures="${architectures[*]}" \
  release "dists/$suite" >Release.new
mv Release.new "dists/$suite/Release"
if [[ -n $key ]]; then
  gpg --batch --yes --local-user "$key" --clearsign \
    --output "dists/$suite/InRelease" "dists/$suite/Release" ||
    die "gpg cannot sign with key $key"
  gpg --batch --yes --local-user "$key" --armor --detach-sign \
    --output "dists/$suite/Release.gpg" "dists/$suite/Release"
  gpg --batch --yes --armor --output dfld.asc --export "$key"
fi
say "$out has suite $suite for ${architectures[*]}${key:+, signed by $key}"
