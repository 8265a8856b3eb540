/* Twenty-two things people do with BusyBox, each a shell command (or a program) run again and again. */
#include "bench.h"

#define LINES_1000 "/tmp/lines.txt"

static const char *const words[] = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"};

/* The files that the commands read; made once, kept until the end. */
static void prepare(void) {
    if (access(LINES_1000, F_OK) == 0) return;
    bench_text(LINES_1000, 1000, words, sizeof words / sizeof *words);
    bench_shell("mkdir -p /tmp/tree20/a /tmp/tree20/b /tmp/tree20/c; cd /tmp/tree20; "
                "for d in a b c; do for i in 1 2 3 4 5 6 7; do echo $d$i >$d/$i; done; done; "
                "tar cf /tmp/tree20.tar -C /tmp tree20; gzip -c " LINES_1000 " >/tmp/lines.gz; "
                "i=0; while [ $i -lt 50 ]; do echo \"key$i = value$i\"; i=$((i+1)); done >/tmp/config");
}

static void repeat(const char *command, unsigned long iterations, Span *span) {
    prepare();
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) bench_shell(command);
    span_close(span);
}

static void run_bb_exec_true(unsigned long iterations, Span *span) {
    char *const arguments[] = {"/bin/true", 0};
    prepare();
    span_open(span);
    for (unsigned long i = 0; i < iterations; i++) bench_spawn(arguments);
    span_close(span);
}

#define SHELL(name, command)                                                                                           \
    static void run_##name(unsigned long iterations, Span *span) { repeat(command, iterations, span); }

SHELL(bb_shell_noop, "true")
SHELL(bb_echo, "echo hello world >/dev/null")
SHELL(bb_cp_small, "cp " LINES_1000 " /tmp/copy.txt")
SHELL(bb_dd_1m, "dd if=/dev/zero of=/tmp/zeros bs=4k count=256 2>/dev/null")
SHELL(bb_mkdir_deep, "mkdir -p /tmp/x/a/b/c/d/e/f/g/h && rm -rf /tmp/x")
SHELL(bb_find_tree, "find /tmp/tree20 -type f >/dev/null")
SHELL(bb_ls_dir, "ls -l /tmp/tree20/a >/dev/null")
SHELL(bb_grep, "grep -c gamma " LINES_1000 " >/dev/null")
SHELL(bb_sed, "sed 's/alpha/omega/g' " LINES_1000 " >/dev/null")
SHELL(bb_awk, "awk '{ sum += $1 } END { print sum }' " LINES_1000 " >/dev/null")
SHELL(bb_sort, "sort " LINES_1000 " >/dev/null")
SHELL(bb_wc, "wc " LINES_1000 " >/dev/null")
SHELL(bb_md5, "md5sum " LINES_1000 " >/dev/null")
SHELL(bb_sha256, "sha256sum " LINES_1000 " >/dev/null")
SHELL(bb_tar_create, "tar cf /tmp/new.tar -C /tmp tree20")
SHELL(bb_tar_extract, "mkdir -p /tmp/out2 && tar xf /tmp/tree20.tar -C /tmp/out2 && rm -rf /tmp/out2")
SHELL(bb_gzip, "gzip -c " LINES_1000 " >/tmp/new.gz")
SHELL(bb_gunzip, "gunzip -c /tmp/lines.gz >/dev/null")
SHELL(bb_script_loop, "i=0; while [ $i -lt 100 ]; do i=$((i+1)); done")
SHELL(bb_config_parse, "while IFS='= ' read -r key value; do [ -n \"$key\" ] && last=$value; done </tmp/config")
SHELL(bb_cat_null, "cat " LINES_1000 " >/dev/null")

const Bench bench_busybox[] = {
    {"bb_exec_true", 50, run_bb_exec_true},
    {"bb_shell_noop", 50, run_bb_shell_noop},
    {"bb_echo", 50, run_bb_echo},
    {"bb_cp_small", 50, run_bb_cp_small},
    {"bb_dd_1m", 20, run_bb_dd_1m},
    {"bb_mkdir_deep", 50, run_bb_mkdir_deep},
    {"bb_find_tree", 50, run_bb_find_tree},
    {"bb_ls_dir", 50, run_bb_ls_dir},
    {"bb_grep", 20, run_bb_grep},
    {"bb_sed", 20, run_bb_sed},
    {"bb_awk", 20, run_bb_awk},
    {"bb_sort", 20, run_bb_sort},
    {"bb_wc", 20, run_bb_wc},
    {"bb_md5", 20, run_bb_md5},
    {"bb_sha256", 20, run_bb_sha256},
    {"bb_tar_create", 20, run_bb_tar_create},
    {"bb_tar_extract", 20, run_bb_tar_extract},
    {"bb_gzip", 20, run_bb_gzip},
    {"bb_gunzip", 20, run_bb_gunzip},
    {"bb_script_loop", 20, run_bb_script_loop},
    {"bb_config_parse", 20, run_bb_config_parse},
    {"bb_cat_null", 50, run_bb_cat_null},
    {0, 0, 0},
};
