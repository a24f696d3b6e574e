#!/bin/sh
# Scales the StatefulSet so that the nodes that go are drained first: nobody
# waits for them, and what their neighbours have of them is settled. Nodes that
# come are told to take part again.
#
# Usage: scale.sh REPLICAS
#
# Variables:
#   NAMESPACE      of the StatefulSet dfld; default dfl
#   DFLCTL         how dflctl is called; default: in pod dfld-0. With TLS it
#                  takes an operator's certificate, as in
#                  DFLCTL="dflctl --context plant-4"
#   DRAIN_TIMEOUT  seconds that a node may take to halt; default 300
#
# Exit code: 0 done, 1 a step failed; the set then has the size it had.
set -eu

namespace=${NAMESPACE:-dfl}
dflctl=${DFLCTL:-kubectl -n $namespace exec dfld-0 -c dfld -- dflctl}
timeout=${DRAIN_TIMEOUT:-300}

case ${1-} in
  '' | *[!0-9]*)
    echo "Usage: $0 REPLICAS" >&2
    exit 2
    ;;
esac
wanted=$1
now=$(kubectl -n "$namespace" get statefulset dfld -o 'jsonpath={.spec.replicas}')

# halted NODE: whether it says that it trains no more. Its own phase stands at
# the second level of the document, those of its peers deeper. $dflctl is a
# command with its arguments.
halted() {
  # shellcheck disable=SC2086
  $dflctl node show "$1" -o json |
    grep -qE '^    "phase": "(idle|paused|finished|stopped|failed)"'
}

# The highest ordinals go.
i=$wanted
while [ "$i" -lt "$now" ]; do
  # shellcheck disable=SC2086
  $dflctl node drain "dfld-$i" --reason "scaled to $wanted"
  i=$((i + 1))
done
i=$wanted
seconds=0
while [ "$i" -lt "$now" ]; do
  if halted "dfld-$i"; then
    i=$((i + 1))
    continue
  fi
  seconds=$((seconds + 1))
  if [ "$seconds" -gt "$timeout" ]; then
    echo "$0: dfld-$i has not halted within $timeout s; the set still has" \
      "$now replicas. dflctl node undrain takes it back" >&2
    exit 1
  fi
  sleep 1
done
kubectl -n "$namespace" scale statefulset dfld "--replicas=$wanted"
if [ "$wanted" -gt "$now" ]; then
  kubectl -n "$namespace" rollout status statefulset dfld \
    "--timeout=${timeout}s"
  i=$now
  while [ "$i" -lt "$wanted" ]; do
    # shellcheck disable=SC2086
    $dflctl node undrain "dfld-$i"
    i=$((i + 1))
  done
fi
