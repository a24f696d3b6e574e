#!/bin/sh
# run.sh SOCKET: exports a model to what is no plain file, and prints what is
# there afterwards. PATH has dflctl.
set -u
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
export_to() { dflctl --target "unix:$socket" model export "$1"; }
export_file() { export_to "$1" >&2; }
socket=$1

export_file "$folder/plain" || exit 1

# Only root makes devices, and only where the file system has them.
device=$folder/device
mknod "$device" c 1 3 2>/dev/null && : 2>/dev/null >"$device" ||
  device=/dev/null
export_file "$device"
echo "device: $(stat -c %F "$device")"

echo OLD >"$folder/real"
chmod 640 "$folder/real"
ln -s real "$folder/link"
export_file "$folder/link"
echo "link: $(stat -c %F "$folder/link")"
echo "behind it: $(stat -c '%F %a' "$folder/real")"
cmp "$folder/real" "$folder/plain" && echo "behind it: the model"

mkfifo "$folder/fifo"
timeout 20 cat "$folder/fifo" >"$folder/read" &
export_file "$folder/fifo"
wait
echo "fifo: $(stat -c %F "$folder/fifo")"
cmp "$folder/read" "$folder/plain" && echo "fifo: the model"

cd "$folder" || exit 1
export_to - | cmp - plain && echo "-: the model"
export_to /dev/stdout | cmp - plain && echo "/dev/stdout: the model"
ls -- - 2>/dev/null
export_file "$folder" || echo "folder: refused"
