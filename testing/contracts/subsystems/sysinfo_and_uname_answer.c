/* sysinfo(2), uname(2): memory is counted in units, totals are not below what is free, names are strings. */
#include "../contract.h"
#include <sys/sysinfo.h>
#include <sys/utsname.h>

int main(void)
{
    struct sysinfo info;
    struct utsname name;
    RESULT(sysinfo(&info));
    say("unit %u, total %d, free below total %d, processes %d, up less than a year %d", info.mem_unit,
        info.totalram > 0, info.freeram < info.totalram, info.procs > 0, info.uptime < 365 * 86400);
    show("swap", info.totalswap);
    RESULT(uname(&name));
    say("sysname %s machine %s release starts with a digit %d", name.sysname, name.machine,
        name.release[0] >= '0' && name.release[0] <= '9');
    RESULT(syscall(SYS_sysinfo, BAD_POINTER));
    RESULT(syscall(SYS_uname, BAD_POINTER));
    RESULT(syscall(100000));
    RESULT(syscall(-1));
    show("cpus", sysconf(_SC_NPROCESSORS_ONLN) >= 1);
    return 0;
}
