/* env(1), xargs(1): the environment and long argument lists reach programs unchanged. */
#include "../contract.h"

int main(void)
{
    scratch();
    const char *script =
        "A=1 env | grep '^A='; export B='two words'; sh -c 'echo \"$B\"'; env -i C=3 /bin/sh -c 'echo $C${B-unset}'\n"
        "seq 1 3000 | xargs echo | wc -w; seq 1 10 | xargs -n 4 echo; printf 'x\\0y z\\0' | xargs -0 -n1 echo\n"
        "set -- a 'b c' ''; echo $#; for i in \"$@\"; do echo \"[$i]\"; done\n"
        "cd / && pwd; umask 077; umask; ulimit -n > /dev/null && echo limit\n"
        "sh -c 'echo $0 $1' name first; echo \"${PWD}\"; unset B; echo \"${B:-default}\"\n"
        "echo $((7 * 6)) $((1 << 40))\n";
    run_script(script);
    return 0;
}
