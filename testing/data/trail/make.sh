#!/bin/sh
# Makes trail.elf, functions whose flow of values is known, and reach.elf, a table of system calls and its handlers (gcc
# and binutils).
set -eu
cd "$(dirname "$0")"
for name in trail reach; do
    gcc -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,noseparate-code -o $name.elf $name.s
    strip --strip-debug $name.elf
done
