/* ps(1), kill(1), pidof(8): applets see processes through /proc and end them. */
#include "../contract.h"

int main(void)
{
    const char *script =
        "exec 2>/dev/null; sleep 71 & one=$!; sleep 72 & two=$!\n"
        "until grep -q ^sleep /proc/$one/cmdline && grep -q ^sleep /proc/$two/cmdline; do :; done\n"
        "test -d /proc/$one && echo listed; tr '\\0' ' ' < /proc/$one/cmdline; echo; cat /proc/$two/comm\n"
        "kill $one; wait $one; echo $?; kill -9 $two; wait $two; echo $?\n"
        "test -d /proc/$one || echo gone; kill -0 $two 2>/dev/null || echo gone too; kill -l 15\n";
    run_script(script);
    return 0;
}
