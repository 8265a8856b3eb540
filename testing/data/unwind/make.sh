#!/bin/sh
# Makes the fixtures of the unwinder's tests: two builds of chain.c, one of chain-signal.c and, for each, what gdb saw when it died.
set -eu
cd "$(dirname "$0")"
build() {
    gcc -O2 -g1 -static -nostdlib -ffreestanding -fno-pie -no-pie -fno-stack-protector -fcf-protection=none \
        -fno-optimize-sibling-calls -fdebug-prefix-map="$PWD"=. -Wl,--build-id -Wl,-z,max-page-size=4096 "$@"
}
build -fomit-frame-pointer -fasynchronous-unwind-tables -o chain-cfi.elf chain.c
build -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -o chain-fp.elf chain.c
for kind in cfi fp; do
    gdb -q -batch -nx -ex 'set disable-randomization on' -ex run \
        -ex 'printf "backtrace\n"' -ex bt \
        -ex 'printf "registers\n"' -ex 'info registers rip rsp rbp rbx r12 r13 r14 r15' \
        -ex 'printf "stack\n"' -ex 'x/128gx $rsp' "chain-$kind.elf" 2>/dev/null | sed -n '/^backtrace$/,$p' > "chain-$kind.gdb" || true
done

# The frames by their program counters: gdb prints none for the trampoline, nor where a line begins.
build -fomit-frame-pointer -fasynchronous-unwind-tables -o chain-signal.elf chain-signal.c
frames="exec('frame, n = gdb.newest_frame(), 0\nwhile frame:\n print(f\"#{n} {frame.pc():#x}\")\n frame, n = frame.older(), n + 1')"
gdb -q -batch -nx -ex 'set disable-randomization on' -ex 'handle SIGUSR1 nostop noprint' -ex run \
    -ex 'printf "backtrace\n"' -ex "python $frames" \
    -ex 'printf "registers\n"' -ex 'info registers rip rsp rbp rbx r12 r13 r14 r15' \
    -ex 'printf "stack\n"' -ex 'x/64gx $rsp' -ex 'frame 3' -ex 'x/16gx $rsp' chain-signal.elf 2>/dev/null \
    | sed -n '/^backtrace$/,$p' | grep -v -e '^#.* at ' -e '^[0-9]*[[:space:]]' > chain-signal.gdb || true
