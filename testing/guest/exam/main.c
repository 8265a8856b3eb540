/*
 * The programs of the exam: each makes one planted bug of the kernel hurt, by ordinary calls with ordinary arguments.
 *
 * "exam NAME..." runs the programs of these names one after the other. A bug that does not kill by itself is shown to
 * the kernel's crash path in the end: the last thing a run does is to ask for a dump (sysrq c). On a kernel without a
 * bug every program ends quietly, so that the same words make the clean run. "exam --live NAME..." asks for no dump.
 */
#include "exam.h"

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"boundary", boundary},
    {"children", children},
    {"constants", constants},
    {"huge", huge},
    {"jit", jit},
    {"names", names},
    {"once", once},
    {"pieces", pieces},
    {"pipes", pipes},
    {"reload", reload},
    {"renew", renew},
    {"runs", runs},
    {"spawn", spawn},
    {"statistics", statistics},
    {"threads", threads},
    {"wild-argument", wild_argument},
};

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--renewed") == 0) return renewed(argv[2]);
    for (int word = 1; word < argc; word++) {
        for (unsigned number = 0; number < sizeof programs / sizeof *programs; number++) {
            if (strcmp(argv[word], programs[number].name) != 0) continue;
            printf("exam: %s\n", argv[word]);
            fflush(stdout);
            programs[number].run();
        }
    }
    puts("exam: done");
    fflush(stdout);
    if (argc < 2 || strcmp(argv[1], "--live") != 0) ask_for_dump();
    return 0;
}
