#!/bin/sh
# Debian's nginx for tests/server/test_nginx.py, unpacked below the folder that is given (.venv/nginx) and not installed:
# nothing is started, and no root is needed but to renew the lists of packages. Nothing is done where one is there already.
set -e
folder="${1:-.venv/nginx}"
PATH="$PATH:/usr/sbin:/usr/local/sbin"
if command -v nginx >/dev/null || [ -x "$folder/usr/sbin/nginx" ]; then exit 0; fi
run=""
if command -v id >/dev/null && [ "$(id -u)" != 0 ]; then run="sudo"; fi
unpack() {
  parts="$folder.parts"
  rm -rf "$parts" && mkdir -p "$parts"
  if (cd "$parts" && apt-get download nginx) && dpkg-deb -x "$parts"/nginx_*.deb "$folder" && "$folder/usr/sbin/nginx" -v; then
    rm -rf "$parts"
  else
    rm -rf "$parts" "$folder"
    return 1
  fi
}
if command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then
  if unpack; then exit 0; fi
  if $run apt-get update && unpack; then exit 0; fi
fi
while read -r line; do printf '%s\n' "$line"; done >&2 <<'WORDS'
The test of deploy/nginx.conf needs nginx, and none is there. Install it:
  Debian:  apt-get install nginx    Fedora:  dnf install nginx    Arch:  pacman -S nginx    macOS:  brew install nginx
WORDS
exit 1
