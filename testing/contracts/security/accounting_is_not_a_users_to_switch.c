/* acct(2): EPERM without CAP_SYS_PACCT, whatever the name; root may switch off what is off. */
#include "security.h"
#include <sys/syscall.h>

static int user(void *unused)
{
    (void)unused;
    RESULT(syscall(SYS_acct, NULL));
    RESULT(syscall(SYS_acct, "/tmp"));
    RESULT(syscall(SYS_acct, "/nothing"));
    RESULT(syscall(SYS_acct, BAD_POINTER));
    return 0;
}

int main(void)
{
    show_status("user", as_nobody(user, NULL));
    RESULT(syscall(SYS_acct, NULL));
    return 0;
}
