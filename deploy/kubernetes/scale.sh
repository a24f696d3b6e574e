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
#   DRAIN_TIMEOUT  how long a node may take to halt; default 5m
#
# Exit code: 0 done, 1 a step failed; the set then has the size it had.
set -eu

namespace=${NAMESPACE:-dfl}
dflctl=${DFLCTL:-kubectl -n $namespace exec dfld-0 -c dfld -- dflctl}
timeout=${DRAIN_TIMEOUT:-5m}

case ${1-} in
  '' | *[!0-9]*)
    echo "Usage: $0 REPLICAS" >&2
    exit 2
    ;;
esac
wanted=$1
now=$(kubectl -n "$namespace" get statefulset dfld -o 'jsonpath={.spec.replicas}')

# The highest ordinals go. $dflctl is a command with its arguments.
# shellcheck disable=SC2086
if [ "$wanted" -lt "$now" ]; then
  names=
  i=$wanted
  while [ "$i" -lt "$now" ]; do
    $dflctl node drain "dfld-$i" --reason "scaled to $wanted"
    names="$names${names:+,}dfld-$i"
    i=$((i + 1))
  done
  $dflctl wait --for phase=paused --node "$names" --timeout "$timeout"
fi
kubectl -n "$namespace" scale statefulset dfld "--replicas=$wanted"
# shellcheck disable=SC2086
if [ "$wanted" -gt "$now" ]; then
  kubectl -n "$namespace" rollout status statefulset dfld "--timeout=$timeout"
  i=$now
  while [ "$i" -lt "$wanted" ]; do
    $dflctl node undrain "dfld-$i"
    i=$((i + 1))
  done
fi
