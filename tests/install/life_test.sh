#!/usr/bin/env bash
# The life of the service on a box with systemd, from its packages: installed,
# started, killed, frozen, reloaded, stopped, upgraded, downgraded, removed and
# purged, in a booted container.
#
# Usage: life_test.sh SOURCE BUILD WORK
#
# DFL_PACKAGES is a folder of packages for this machine's release, made by
# scripts/release.sh; without it they are built as --quick does. DFL_ROOT is a
# folder that debootstrap has made of it, with systemd; without it one is made.
# Both are left as they are. Takes root, and a Debian mirror.
set -euo pipefail
source="$1" build="$2" work="$3"

missing=()
for tool in systemd-nspawn debootstrap dh apt-ftparchive nsenter; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((EUID != 0)); then
  echo "this test is skipped: it takes root"
  exit 0
elif ((${#missing[@]})); then
  echo "this test is skipped: install systemd-container, debootstrap," \
    "debhelper and apt-utils; missing: ${missing[*]}"
  exit 0
fi

machine="dfl-life-$$"
started=$SECONDS
say() { echo "[$((SECONDS - started)) s] $*"; }
fail() {
  say "FAILED: $*"
  inside journalctl -u dfld -u dfld@b --no-pager -n 40 2>/dev/null || true
  exit 1
}

# ------------------------------------------------------------- the container

mkdir -p "$work"
boot_pid=
finish() {
  local status=$?
  if [[ -n $boot_pid ]]; then
    kill "$boot_pid" 2>/dev/null || true
    wait "$boot_pid" 2>/dev/null || true
  fi
  [[ -n ${DFL_KEEP_WORK-} ]] || rm -rf "$work"
  exit "$status"
}
trap finish EXIT

# in_root COMMAND...: in the container's folder, without booting it, with this
# machine's network.
in_root() {
  # shellcheck disable=SC2016
  unshare -m --propagation private bash -c '
    root="$1"
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    cp --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
    exec chroot "$root" /usr/bin/env -i HOME=/ LC_ALL=C \
      PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
  ' _ "$root" "$@"
}

# inside COMMAND...: in the booted container. Nothing there may ask a person.
inside() {
  nsenter -t "$leader" -m -u -i -n -p -C -r -w -- env -i HOME=/root \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LC_ALL=C \
    DEBIAN_FRONTEND=noninteractive "$@" </dev/null
}

# eventually SECONDS WHAT COMMAND...: COMMAND succeeds within SECONDS.
eventually() {
  local limit=$((SECONDS + $1)) what="$2"
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < limit)) || fail "$what"
    sleep 0.2
  done
}

packages="${DFL_PACKAGES-}"
if [[ -z $packages ]]; then
  "$source/scripts/release.sh" --quick --no-image --out "$work/release"
  packages="$work/release/packages"
fi
root="$work/root"
if [[ -n ${DFL_ROOT-} ]]; then
  cp -a "$DFL_ROOT" "$root"
else
  # shellcheck disable=SC1091
  suite="$(. /etc/os-release && echo "$VERSION_CODENAME")"
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus \
    "$suite" "$root" >"$work/debootstrap.log" 2>&1 || {
    tail -n 3 "$work/debootstrap.log"
    echo "this test is skipped: no Debian mirror is reached"
    exit 0
  }
fi
rm -f "$root/etc/hostname"
share="$work/share"
mkdir -p "$share"
cp "$packages"/{dfld,dfld-torch,dflctl,dfl-sim,libdfl-client-dev}_*_"$(
  dpkg --print-architecture
)".deb "$packages"/python3-dfl_*_all.deb "$build/bin/freeze_thread" "$share/"
# next VERSION PACKAGE: the same package under another version.
next() {
  dpkg-deb -R "$share/$2"_[0-9]*.deb "$work/again"
  sed -i "s/^Version: .*/Version: $1/" "$work/again/DEBIAN/control"
  dpkg-deb -b --root-owner-group "$work/again" "$share/next-$2.deb" >/dev/null
  rm -rf "$work/again"
}
next 0.9.9 dfld
# What the packages need, while there is a network.
in_root apt-get -q update >"$work/apt.log" 2>&1 ||
  fail "apt-get update: $(tail -n 3 "$work/apt.log")"
mkdir -p "$root/share"
cp "$share"/*.deb "$root/share/"
in_root sh -c 'cd /share && apt-get -q -y --no-install-recommends \
  --download-only install ./dfld_*.deb ./dfld-torch_*.deb ./dflctl_*.deb' >>"$work/apt.log" 2>&1 ||
  fail "the packages cannot be had: $(tail -n 5 "$work/apt.log")"
rm -rf "$root/share"

# Rows of two classes, the label last.
seq 200 | awk '{c = $1 % 2; print c + ($1 % 7) / 20 "," c - ($1 % 5) / 20 "," c}' \
  >"$share/train.csv"
printf '%s\n' 'members: [a, b]' 'model: {kind: logistic, classes: 2}' \
  'algorithm: {name: d-psgd}' 'batch_size: 8' 'topology: {kind: complete}' \
  >"$share/plan.yaml"

say "boots"
systemd-nspawn --quiet --directory="$root" --volatile=overlay --boot \
  --register=no --keep-unit --private-network --console=pipe \
  --machine="$machine" --bind-ro="$share:/share" >"$work/console" 2>&1 \
  </dev/null &
boot_pid=$!
leader=
find_leader() { leader="$(pgrep -P "$boot_pid" | head -n 1)" && [[ -n $leader ]]; }
eventually 20 "systemd-nspawn: $(cat "$work/console")" find_leader
booted() {
  [[ "$(inside systemctl is-system-running || true)" =~ ^(running|degraded)$ ]]
}
eventually 120 "the container does not come up: $(cat "$work/console")" booted

main_pid() { inside systemctl show -p MainPID --value dfld; }
status_text() { inside systemctl show -p StatusText --value dfld; }
says() { status_text | grep -q "$1"; }
b_trains() {
  inside systemctl show -p StatusText --value dfld@b | grep -q '^training, '
}
journal() { inside journalctl -u dfld --no-pager -o cat | grep -q "$1"; }
active() { inside systemctl is-active --quiet dfld; }
same_process() { [[ "$(main_pid)" == "$pid" ]] && active; }
step() { status_text | sed -n 's/.*step \([0-9]*\).*/\1/p'; }
absent() { ! inside test -e "$1"; }
write() { inside sh -c "cat >$1 <<'TEXT'
$2
TEXT"; }

# ------------------------------------------------------------------- install

inside sh -c 'cd /share && apt-get -q -y --no-install-recommends \
  install ./dfld_*.deb ./dfld-torch_*.deb ./dflctl_*.deb' >"$work/install.log" 2>&1 ||
  fail "apt-get install: $(tail -n 20 "$work/install.log")"
! active || fail "it runs although nobody has configured it"
[[ "$(inside systemctl is-enabled dfld || true)" == disabled ]] ||
  fail "it is enabled although nobody has configured it"
inside getent passwd dfld >/dev/null || fail "there is no user dfld"
[[ "$(inside stat -c '%U %a' /etc/dfld/tls)" == 'dfld 700' ]] ||
  fail "/etc/dfld/tls is not for user dfld alone"
# shellcheck disable=SC2016
inside dpkg-query -W -f '${Conffiles}' dfld | grep -q ' /etc/dfld/dfld.yaml ' ||
  fail "dfld.yaml is no conffile"
inside dfld --version >/dev/null
inside systemd-analyze verify --man=no dfld.service dfld@b.service ||
  fail "systemd does not like the units"
say "installed"

# --------------------------------------------------------------- start, ready

inside sed -i -e 's/^#name: .*/name: a/' -e 's/^#security: .*/security: insecure/' \
  -e 's|^#peers: .*|peers: ["127.0.0.1:7610"]|' \
  -e 's|^  #format: idx|  format: csv|' \
  -e '0,/^    #paths: \[\]/s||    paths: [/srv/train.csv]|' /etc/dfld/dfld.yaml
inside cp /share/train.csv /srv/train.csv
inside systemctl enable --now dfld || fail "it does not start"
active || fail "systemctl returned before it was ready"
[[ "$(main_pid)" != 0 ]] || fail "no main process"
[[ "$(inside ps -o user= -p "$(main_pid)" 2>/dev/null ||
  inside stat -c %U "/proc/$(main_pid)")" == dfld ]] ||
  fail "it does not run as user dfld"
says '^idle, step 0' || fail "STATUS is '$(status_text)'"
inside dflctl status >/dev/null || fail "dflctl does not reach it"
say "ready: $(status_text)"

# Another one on this host.
inside mkdir /etc/dfld-b
write /etc/dfld-b/dfld.yaml 'name: b
security: insecure
peer: {listen: ["127.0.0.1:7610"]}
data: {format: csv, train: {paths: [/srv/train.csv]}}'
inside systemctl start dfld@b || fail "dfld@b does not start"
b=unix:/run/dfld-b/control.sock
inside dflctl --target "$b" status >/dev/null ||
  fail "dflctl does not reach dfld@b"
inside dflctl plan apply /share/plan.yaml || fail "the plan is not taken"
inside dflctl train start || fail "it does not train"
eventually 60 "STATUS is '$(status_text)'" \
  says '^training, step [1-9].*, loss [0-9].*, 1 of 1 neighbours'
eventually 60 'b does not train' b_trains
say "two nodes train: $(status_text)"

# ------------------------------------------------------- kill, freeze, reload

pid="$(main_pid)"
before="$(step)"
inside kill -9 "$pid"
again() { [[ "$(main_pid)" != "$pid" && "$(main_pid)" != 0 ]] && active; }
eventually 30 'it is not started again after kill -9' again
further() { [[ "$(step)" -gt "$before" ]]; }
eventually 60 "it does not go on after kill -9: $(status_text)" further
say "started again after kill -9: $(status_text)"

pid="$(main_pid)"
inside mkdir -p /etc/dfld/conf.d /etc/systemd/system/dfld.service.d
write /etc/dfld/conf.d/50-test.yaml 'log: {level: debug}
labels: {site: north}
compute: {frozen_after: 2s, threads: 1}'
inside systemctl reload dfld || fail "reload fails"
eventually 10 'the reload is not told' \
  journal 'reload: in force: labels, compute.frozen_after, log.level; after a restart: compute.threads'
same_process || fail "a reload is no restart"
write /etc/dfld/conf.d/60-wrong.yaml 'log: {leve: debug}'
inside systemctl reload dfld || fail "reload of wrong settings fails"
eventually 10 'wrong settings are not told' \
  journal 'reload: the settings are as before'
same_process || fail "wrong settings end it"
inside rm /etc/dfld/conf.d/60-wrong.yaml
say "reloaded"

write /etc/systemd/system/dfld.service.d/test.conf '[Service]
WatchdogSec=3
RestartSec=1'
inside systemctl daemon-reload
inside systemctl restart dfld || fail "it does not start again"
eventually 60 'it does not train again' says '^training, step '
pid="$(main_pid)"
inside /share/freeze_thread "$pid" dfld-train >"$work/frozen" 2>&1 &
eventually 20 "STATUS is '$(status_text)' with a frozen trainer" says '^frozen: '
eventually 60 'the watchdog does not start it again' again
inside journalctl -u dfld --no-pager -o cat |
  grep -q "result 'watchdog'\|Watchdog timeout" ||
  fail "it was not the watchdog"
eventually 60 'it does not train after the watchdog' says '^training, step '
inside rm /etc/systemd/system/dfld.service.d/test.conf
inside rm /etc/dfld/conf.d/50-test.yaml
inside systemctl daemon-reload
inside systemctl restart dfld
say "started again by the watchdog"

# ----------------------------------------------------------------- stop, keys

eventually 60 'it does not train again' says '^training, step '
stopping=$SECONDS
inside systemctl stop dfld || fail "it does not stop"
((SECONDS - stopping <= 10)) || fail "it stops after $((SECONDS - stopping)) s"
[[ "$(inside systemctl show -p Result --value dfld)" == success ]] ||
  fail "its end is no success"
inside dflctl --target "$b" status >/dev/null ||
  fail "the end of dfld takes the socket of dfld@b away"
say "stopped within $((SECONDS - stopping)) s"

inside sed -i 's/^security: insecure/security: tls/' /etc/dfld/dfld.yaml
inside mkdir /tmp/ada
inside sh -c 'cd /tmp && export HOME=/tmp/ada &&
  dflctl cert init plant-4 && dflctl cert issue a --out /tmp/a-tls &&
  cp /tmp/a-tls/*.pem /etc/dfld/tls/ && chown root: /etc/dfld/tls/key.pem &&
  chmod 600 /etc/dfld/tls/key.pem && chown dfld: /etc/dfld/tls/ca.pem \
    /etc/dfld/tls/cert.pem' >"$work/cert.log" 2>&1 ||
  fail "no certificate: $(cat "$work/cert.log")"
# As user dfld it cannot read the key; as a credential it can.
! inside systemctl start dfld 2>/dev/null || fail "it reads a key of root's"
inside systemctl reset-failed dfld
docs=/usr/share/doc/dfld/drop-ins
inside cp $docs/credentials.conf /etc/systemd/system/dfld.service.d/
inside systemctl daemon-reload
inside systemctl start dfld || fail "it does not start with LoadCredential"
inside systemctl stop dfld
inside mv /etc/systemd/system/dfld.service.d/credentials.conf /tmp/
inside cp $docs/dynamic-user.conf /etc/systemd/system/dfld.service.d/
inside chmod -R a+rX /etc/dfld/tls
inside chmod 600 /etc/dfld/tls/key.pem
inside systemctl daemon-reload
inside systemctl start dfld || fail "it does not start with DynamicUser"
inside test -d /var/lib/private/dfld || fail "its state is not private"
inside systemctl stop dfld
inside rm -r /etc/systemd/system/dfld.service.d
inside systemctl daemon-reload
inside sed -i 's/^security: tls/security: insecure/' /etc/dfld/dfld.yaml
inside systemctl start dfld || fail "it does not start as user dfld again"
say "took its key from systemd, and ran as a dynamic user"

# ------------------------------------------- upgrade, downgrade, remove, purge

install() {
  inside apt-get -q -y --no-install-recommends "$@" \
    >"$work/install.log" 2>&1 ||
    fail "apt-get $*: $(tail -n 20 "$work/install.log")"
}
# shellcheck disable=SC2016
version() { inside dpkg-query -W -f '${Version}' dfld; }
old="$(version)"
pid="$(main_pid)"
b_pid() { inside systemctl show -p MainPID --value dfld@b; }
old_b="$(b_pid)"
install install /share/next-dfld.deb
[[ "$(version)" == 0.9.9 ]] || fail "no upgrade"
again || fail "the upgrade does not start it again"
[[ "$(b_pid)" != "$old_b" && "$(b_pid)" != 0 ]] ||
  fail "the upgrade does not start the other node again"
inside grep -q '^name: a' /etc/dfld/dfld.yaml || fail "the settings are lost"
pid="$(main_pid)"
install install --allow-downgrades "/share/$(basename "$share"/dfld_*.deb)"
[[ "$(version)" == "$old" ]] || fail "no downgrade"
again || fail "the downgrade does not start it again"
eventually 60 'it does not train after the downgrade' says '^training, '
say "upgraded and downgraded"

install remove dfld
! active || fail "it runs on when it is removed"
! inside systemctl is-active --quiet dfld@b ||
  fail "another node runs on when it is removed"
absent /usr/bin/dfld || fail "removed, and still there"
inside test -e /etc/dfld/dfld.yaml || fail "removing took the settings"
inside test -e /var/lib/dfld || inside test -e /var/lib/private/dfld ||
  fail "removing took the state"
install purge dfld
for path in /etc/dfld /var/lib/dfld /var/lib/private/dfld /var/cache/dfld; do
  absent $path || fail "purged, and $path is still there"
done
[[ -z "$(inside find /etc/systemd/system -name 'dfld*')" ]] ||
  fail "purged, and still enabled"
say "removed and purged"
echo well
