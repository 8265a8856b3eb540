/* POSIX utilities: mkdir, cp, mv, ln, find, du-free walks, chmod and rm over a small tree leave what they should. */
#include "../contract.h"

int main(void)
{
    scratch();
    const char *script =
        "set -e; mkdir -p a/b/c a/d; echo one > a/one; echo two > a/b/two; ln -s ../one a/b/link; ln a/one a/hard\n"
        "cp -r a copy; mv copy/b/two copy/moved; chmod 640 copy/one; rm -r copy/d\n"
        "find a copy | sort; find . -type l | sort; find . -name 't*' | sort\n"
        "cat a/b/link copy/moved; test a/one -ef a/hard && echo same file; stat -c '%a %h %s' copy/one a/hard\n"
        "cmp a/one copy/one && echo equal; cmp -s a/one copy/moved || echo different\n"
        "readlink a/b/link; basename /x/y.c .c; dirname /x/y; rm -rf a copy; ls -a | wc -l\n";
    run_script(script);
    return 0;
}
