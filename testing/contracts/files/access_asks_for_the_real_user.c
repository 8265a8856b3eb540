/* access(2), faccessat(2): checks the real ids, honours AT_EACCESS, and rejects unknown modes. */
#include "../contract.h"

static int effective_user(void *unused)
{
    (void)unused;
    need(setresuid(0, 1000, 0) == 0);
    RESULT(access("private", R_OK));
    RESULT(faccessat(AT_FDCWD, "private", R_OK, AT_EACCESS));
    OUTCOME(open("private", O_RDONLY));
    return 0;
}

int main(void)
{
    scratch();
    put_file("private", "", 0600);
    RESULT(access("private", F_OK));
    RESULT(access("private", R_OK | W_OK));
    RESULT(access("private", X_OK));
    RESULT(access("private", 8));
    RESULT(access("absent", F_OK));
    RESULT(access("private/x", F_OK));
    RESULT(access(BAD_POINTER, F_OK));
    RESULT(access("/proc/version", W_OK));
    show_status("user", in_child(effective_user, NULL));
    return 0;
}
