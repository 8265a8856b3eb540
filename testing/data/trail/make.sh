#!/bin/sh
# Makes trail.elf: functions whose flow of values is known (gcc and binutils).
set -eu
cd "$(dirname "$0")"
gcc -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,noseparate-code -o trail.elf trail.s
strip --strip-debug trail.elf
