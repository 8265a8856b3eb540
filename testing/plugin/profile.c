/*
 * A QEMU TCG plugin that counts, exactly, which guest instructions a benchmark executes.
 *
 * Every translated block gets a counter that QEMU's generated code increments itself. Two marks in the guest's code,
 * no-ops with a magic operand (testing/guest/bench/bench.h), open and close a span; at its close the counters' growth
 * is added to the block's sum. At a third mark, the end of a benchmark, a section is written: "SECTION <number>" and
 * one line "<address> <instructions> <executions>" per block that ran, addresses in hexadecimal.
 *
 * Debian ships no header for plugins, so the functions of plugin API version 1 that are used are declared here, as
 * QEMU's manual ("TCG Plugins") describes them.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { CB_NO_REGS = 0, INLINE_ADD_U64 = 0 };

typedef void (*tb_translated)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*executed)(unsigned, void *);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, tb_translated);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int operation, void *at, uint64_t value);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, executed, int flags, void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);

__attribute__((visibility("default"))) extern int qemu_plugin_version;
int qemu_plugin_version = 1;

/* A block of guest code: counters live for ever, since generated code points to them. */
typedef struct Block {
    uint64_t address, instructions, count, base, sum;
    struct Block *next, *same;
} Block;

enum { BUCKETS = 1 << 16, MARK_BYTES = 7 };

/* nopl imm32(%rax), the operand spelling "kwb" and the mark's letter. */
static const unsigned char mark[] = {0x0f, 0x1f, 0x80, 'k', 'w', 'b'};

static Block *blocks, *table[BUCKETS];
static FILE *output;
static bool is_open;
static unsigned sections;

/* The counter of a block; one that is translated again keeps its own. */
static Block *block_at(uint64_t address, uint64_t instructions) {
    Block **bucket = &table[(address * 0x9e3779b97f4a7c15u) >> 48];
    for (Block *block = *bucket; block; block = block->same)
        if (block->address == address && block->instructions == instructions) return block;
    Block *block = calloc(1, sizeof *block);
    if (!block) abort();
    block->address = address;
    block->instructions = instructions;
    block->next = blocks;
    block->same = *bucket;
    return blocks = *bucket = block;
}

static void on_open(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    for (Block *block = blocks; block; block = block->next) block->base = block->count;
    is_open = true;
}

static void on_close(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    if (!is_open) return;
    for (Block *block = blocks; block; block = block->next) block->sum += block->count - block->base;
    is_open = false;
}

static void on_end(unsigned cpu, void *data) {
    (void)cpu, (void)data;
    fprintf(output, "SECTION %u\n", sections++);
    for (Block *block = blocks; block; block = block->next) {
        if (block->sum)
            fprintf(output, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", block->address, block->instructions, block->sum);
        block->sum = 0;
    }
    fflush(output);
}

/* A block that is translated while a span is open starts from nothing, as its base does. */
static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t instructions = qemu_plugin_tb_n_insns(tb);
    Block *block = block_at(qemu_plugin_tb_vaddr(tb), instructions);
    qemu_plugin_register_vcpu_tb_exec_inline(tb, INLINE_ADD_U64, &block->count, 1);
    for (size_t index = 0; index < instructions; index++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, index);
        if (qemu_plugin_insn_size(insn) != MARK_BYTES) continue;
        const unsigned char *bytes = qemu_plugin_insn_data(insn);
        if (memcmp(bytes, mark, sizeof mark) != 0) continue;
        executed callback = bytes[6] == 'o' ? on_open : bytes[6] == 'c' ? on_close : bytes[6] == 'e' ? on_end : NULL;
        if (callback) qemu_plugin_register_vcpu_insn_exec_cb(insn, callback, CB_NO_REGS, NULL);
    }
}

/* The one argument is `output=<path>`. */
__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count,
                                                               char **arguments) {
    (void)info;
    const char *file = count == 1 && strncmp(arguments[0], "output=", 7) == 0 ? arguments[0] + 7 : NULL;
    if (!file || !(output = fopen(file, "w"))) {
        fprintf(stderr, "profile: output=<path> is missing or cannot be written\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    return 0;
}
