#!/usr/bin/env bash
# Starts an image of dfld without any right, and looks whether it lives, says
# so, and ends in order.
#
# Usage: deploy/docker/check.sh IMAGE
#
# Needs podman and root. All of it is in namespaces of its own: the machine's
# network and mounts stay as they are. Exit code: 0 all well, 1 not.
set -euo pipefail
image="${1:?Usage: check.sh IMAGE}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if [[ -z ${DFL_CHECK_INSIDE-} ]]; then
  # crun takes no hybrid control groups: the unified hierarchy goes, here only.
  DFL_CHECK_INSIDE=1 exec unshare --mount --net --propagation private sh -c '
    ip link set lo up
    if mountpoint -q /sys/fs/cgroup/unified; then
      umount /sys/fs/cgroup/unified
    fi
    exec "$@"' sh "$0" "$image"
fi

work="$(mktemp -d -t dfl-check.XXXXXX)"
name="dfl-check-$$"
cleanup() {
  podman rm --force --time 0 "$name" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap cleanup EXIT
fail() {
  printf 'check.sh: %s\n' "$*" >&2
  podman logs "$name" >&2 2>/dev/null || true
  exit 1
}

mkdir "$work/data"
cp "$here/../kubernetes/overlays/dev/train.csv" "$work/data/"
chmod -R a+rX "$work"
cat >"$work/containers.conf" <<'END'
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
END
export CONTAINERS_CONF="$work/containers.conf"

# As an operator should start it: no root, no capability, nothing writable but
# its state and two small folders in memory.
podman run --detach --name "$name" --network host --pull never \
  --log-driver k8s-file --no-healthcheck \
  --read-only --read-only-tmpfs=false --cap-drop ALL \
  --security-opt no-new-privileges --user 10001:10001 --memory 512m \
  --tmpfs /run/dfld:mode=1777 --tmpfs /tmp:mode=1777 \
  --volume "$work/data:/data:ro" --env DFLD_SECURITY=insecure \
  "$image" --name=checked --web.listen=127.0.0.1:7603 \
  --peer.listen=127.0.0.1:7600 --data.format=csv --data.header=yes \
  --data.train.paths=/data/train.csv >/dev/null ||
  fail "it cannot be started"

for ((i = 0; ; i++)); do
  if podman exec "$name" dflctl status --local >/dev/null 2>&1; then break; fi
  [[ $(podman inspect --format '{{.State.Running}}' "$name") == true ]] ||
    fail "it ended with $(podman inspect --format '{{.State.ExitCode}}' "$name")"
  ((i < 600)) || fail "no answer within a minute"
  sleep 0.1
done
pid="$(podman inspect --format '{{.State.Pid}}' "$name")"
[[ $(awk '/^Uid:/ { print $2 }' "/proc/$pid/status") == 10001 ]] ||
  fail "it does not run as user 10001"
for set in CapEff CapPrm CapBnd; do
  [[ $(awk -v set="$set:" '$1 == set { print $2 }' "/proc/$pid/status") =~ ^0+$ ]] ||
    fail "it has capabilities ($set)"
done
if podman exec "$name" touch /usr/share/written 2>/dev/null; then
  fail "its root is writable"
fi

# The health check tells the truth: well while it runs, and not of one whose
# process is frozen. podman has systemd call it, which is not here.
podman exec "$name" dflctl health --ready || fail "it is not ready"
read -ra health <<<"$(podman image inspect --format \
  '{{join .Config.Healthcheck.Test " "}}' "$image")"
[[ ${health[0]} == CMD ]] || fail "its health check takes a shell"
podman exec "$name" "${health[@]:1}" || fail "its health check fails"
kill -STOP "$pid"
if podman exec "$name" "${health[@]:1}" 2>/dev/null; then
  fail "its health check passes though it is frozen"
fi
kill -CONT "$pid"

podman stop --time 10 "$name" >/dev/null
code="$(podman inspect --format '{{.State.ExitCode}}' "$name")"
[[ $code == 0 ]] || fail "it ended with $code after SIGTERM"
echo "check.sh: $image starts without rights, lives, and ends in order"
