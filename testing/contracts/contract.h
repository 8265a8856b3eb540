/*
 * What every contract program shares: one way to print a line, and one way to name an errno.
 *
 * A contract is one C file, one behaviour, one program. It prints what it observed; the judge compares those lines with
 * what Linux printed. So print facts ("read = -1 EAGAIN"), never opinions that need no kernel ("ok"), and nothing that
 * varies: no pids, addresses, times or inode numbers. README.md beside this file has the rules.
 *
 * Lines leave by write(2) at once, so a fork never prints a line twice and a crash never swallows one.
 */
#ifndef CONTRACT_H
#define CONTRACT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define CONTRACT_UNUSED __attribute__((unused))

/* The errno's symbolic name, or "E<number>" for one this table does not know. */
CONTRACT_UNUSED static const char *errno_name(int number) {
#define E(name) case name: return #name;
    switch (number) {
    case 0: return "0";
    E(EPERM) E(ENOENT) E(ESRCH) E(EINTR) E(EIO) E(ENXIO) E(E2BIG) E(ENOEXEC) E(EBADF) E(ECHILD) E(EAGAIN) E(ENOMEM)
    E(EACCES) E(EFAULT) E(ENOTBLK) E(EBUSY) E(EEXIST) E(EXDEV) E(ENODEV) E(ENOTDIR) E(EISDIR) E(EINVAL) E(ENFILE)
    E(EMFILE) E(ENOTTY) E(ETXTBSY) E(EFBIG) E(ENOSPC) E(ESPIPE) E(EROFS) E(EMLINK) E(EPIPE) E(EDOM) E(ERANGE)
    E(EDEADLK) E(ENAMETOOLONG) E(ENOLCK) E(ENOSYS) E(ENOTEMPTY) E(ELOOP) E(EIDRM) E(ENODATA) E(ETIME) E(EPROTO)
    E(EOVERFLOW) E(EILSEQ) E(ENOTSOCK) E(EDESTADDRREQ) E(EMSGSIZE) E(EPROTOTYPE) E(ENOPROTOOPT) E(EPROTONOSUPPORT)
    E(ESOCKTNOSUPPORT) E(EOPNOTSUPP) E(EAFNOSUPPORT) E(EADDRINUSE) E(EADDRNOTAVAIL) E(ENETDOWN) E(ENETUNREACH)
    E(ECONNABORTED) E(ECONNRESET) E(ENOBUFS) E(EISCONN) E(ENOTCONN) E(ESHUTDOWN) E(ETIMEDOUT) E(ECONNREFUSED)
    E(EHOSTUNREACH) E(EALREADY) E(EINPROGRESS) E(ESTALE) E(EDQUOT) E(ECANCELED) E(EOWNERDEAD) E(ENOTRECOVERABLE)
    }
#undef E
    static char text[16];
    snprintf(text, sizeof text, "E%d", number);
    return text;
}

/* Prints one line (the newline is added) by a single write; longer lines than the buffer are cut. */
__attribute__((format(printf, 1, 2))) CONTRACT_UNUSED static void say(const char *format, ...) {
    char line[1024];
    int saved = errno;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
    line[length++] = '\n';
    for (int done = 0; done < length;) {
        ssize_t wrote = write(1, line + done, (size_t)(length - done));
        if (wrote <= 0 && errno != EINTR) break;
        if (wrote > 0) done += (int)wrote;
    }
    errno = saved;
}

/* Prints a call's outcome as strace would: "what = 3", or "what = -1 ENOENT" from errno. Returns the value. */
CONTRACT_UNUSED static long report(const char *what, long value) {
    if (value == -1) say("%s = -1 %s", what, errno_name(errno));
    else say("%s = %ld", what, value);
    return value;
}

/* As report, for values that vary (descriptors, pids, addresses): prints "what = ok" for any success. */
CONTRACT_UNUSED static long outcome(const char *what, long value) {
    if (value == -1) say("%s = -1 %s", what, errno_name(errno));
    else say("%s = ok", what);
    return value;
}

/* Set-up that is not what the contract is about: on -1 it says so and the program ends with status 99. */
CONTRACT_UNUSED static long must_line(const char *call, int line, long value) {
    if (value == -1) {
        say("set-up failed at line %d: %s: %s", line, call, errno_name(errno));
        _exit(99);
    }
    return value;
}
#define must(call) must_line(#call, __LINE__, (long)(call))

/* Prints "what: yes" or "what: no". */
CONTRACT_UNUSED static void fact(const char *what, int holds) { say("%s: %s", what, holds ? "yes" : "no"); }

#endif
