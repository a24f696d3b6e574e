#!/usr/bin/env bash
# Renders every overlay of deploy/kubernetes, and validates the objects.
#
# Usage: scripts/check-manifests.sh [--no-install] [--out DIR]
#
#   --no-install  asks no package registry; what is not there is skipped.
#   --out DIR     keeps the rendered objects there, a file for each overlay.
#                 Default: build/manifests.
#
# Rendered by kubectl or kustomize. Validated in two ways by npm's packages
# (scripts/manifests): by schema, and by types that know every field. No cluster
# is asked. What cannot be done here is said, and is not counted as passed:
#
# Exit code: 0 nothing found, 1 findings (printed), 2 wrong usage, 77 a part was
# skipped and nothing was found in the rest.
. "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

install=1
out="$ROOT/build/manifests"
while (($#)); do
  case "$1" in
    -h | --help) show_help && exit 0 ;;
    --no-install) install= ;;
    --out)
      (($# > 1)) || usage_error "--out needs a folder"
      out="$(realpath -m -- "$2")"
      shift
      ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
  shift
done

# render DIR: the objects of a kustomization on stdout.
if command -v kubectl >/dev/null && kubectl kustomize --help >/dev/null 2>&1
then
  render() { kubectl kustomize "$1"; }
elif command -v kustomize >/dev/null; then
  render() { kustomize build "$1"; }
else
  say "SKIPPED: there is neither kubectl nor kustomize to render the overlays" \
    "(Debian 13: kubernetes-client)"
  exit 77
fi

mkdir -p "$out"
rm -f "$out"/*.yaml
files=()
for folder in "$ROOT"/deploy/kubernetes/overlays/*/; do
  name="$(basename "$folder")"
  render "$folder" >"$out/$name.yaml" ||
    die "overlay $name cannot be rendered, see above"
  files+=("$out/$name.yaml")
done
# The optional components, all at once on top of the secured overlay. A
# kustomization may only name what lies beside or below it by a relative path.
work="$(mktemp -d -t dfl-manifests.XXXXXX)"
trap 'rm -rf "$work"' EXIT
cp -r "$ROOT/deploy/kubernetes" "$work/kubernetes"
mkdir "$work/kubernetes/overlays/options"
cat >"$work/kubernetes/overlays/options/kustomization.yaml" <<'END'
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: dfl
resources: [../secure]
components: [../../components/cert-manager, ../../components/monitoring]
END
render "$work/kubernetes/overlays/options" >"$out/options.yaml" ||
  die "the optional components cannot be rendered, see above"
files+=("$out/options.yaml")
say "rendered ${#files[@]} kustomizations into ${out#"$ROOT/"}"

modules="$ROOT/build/manifests-npm"
wanted="$(sha256sum <"$ROOT/scripts/manifests/package.json")"
if [[ "$(cat "$modules/installed" 2>/dev/null)" != "$wanted" ]]; then
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    say "SKIPPED: there is no npm for the validators (Debian: npm)"
    exit 77
  fi
  if [[ -z $install ]]; then
    say "SKIPPED: the validators are not installed; without --no-install they" \
      "are got from npm"
    exit 77
  fi
  mkdir -p "$modules"
  cp "$ROOT/scripts/manifests/package.json" "$modules/"
  if ! (cd "$modules" && run npm install --no-audit --no-fund --silent \
    --ignore-scripts >install.log 2>&1); then
    tail -n 5 "$modules/install.log" >&2
    say "SKIPPED: npm could not install the validators, see above"
    exit 77
  fi
  printf '%s\n' "$wanted" >"$modules/installed"
fi

# The validators must find what is wrong, each in its way.
cat >"$work/wrong.yaml" <<'END'
apiVersion: v1
kind: Service
metadata: {name: no-such-field}
spec: {ports: [{port: 7600}], publishNotReadyAdresses: true}
---
apiVersion: v1
kind: Service
metadata: {name: wrong-type}
spec: {ports: [{port: peer}]}
END
cd "$modules"
found="$(node "$ROOT/scripts/manifests/validate.js" "$work/wrong.yaml" || true)"
for name in no-such-field wrong-type; do
  [[ $found == *"Service/$name:"* ]] ||
    die "the validators find nothing in an object that is wrong ($name):" \
      "$found"
done
run node "$ROOT/scripts/manifests/validate.js" "${files[@]}" ||
  die "findings, see above"
