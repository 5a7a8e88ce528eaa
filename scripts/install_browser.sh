#!/bin/sh
# Chromium without a window, which tests/server/pages drive. Nothing is done where one is there already.
set -e
for name in chromium-headless-shell chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if [ -n "$DITHER_TEST_BROWSER" ]; then
  if [ -x "$DITHER_TEST_BROWSER" ]; then exit 0; fi
  echo "DITHER_TEST_BROWSER: expected a program, got none at this path. Fix: correct the path." >&2
  exit 1
fi
run=""
if command -v id >/dev/null && [ "$(id -u)" != 0 ]; then run="sudo"; fi
if command -v apt-get >/dev/null && { [ -z "$run" ] || command -v sudo >/dev/null; }; then
  $run apt-get install -y --no-install-recommends chromium-headless-shell && exit 0
  $run apt-get update && $run apt-get install -y --no-install-recommends chromium-headless-shell && exit 0
fi
while read -r line; do printf '%s\n' "$line"; done >&2 <<'WORDS'
The tests of the pages need a browser, and none is there. Install one of
  chromium-headless-shell   Debian:  apt-get install chromium-headless-shell
  chromium                  Fedora:  dnf install chromium        Arch:  pacman -S chromium
  Google Chrome             macOS:   brew install --cask google-chrome
or set DITHER_TEST_BROWSER to the path of a Chromium or Chrome that is installed elsewhere.
WORDS
exit 1
