/*
 * A QEMU TCG plugin that records which code of our kernel each system call runs. For one processor.
 *
 * A visit is what a thread does between its entry to the kernel and its return to user mode: a system call, an
 * exception of the program, or the start of a thread: the boot, all that a kernel thread does, and what comes before
 * the first user mode of another. Of each visit the blocks that ran are kept in the order in which they ran first.
 * What an interrupt runs inside a visit is left out, and so are the functions given by `skip` with all that they call
 * (the kernel's own recording). A visit follows its thread through `switch_stacks`; the thread is known by its stack.
 *
 * Arguments: output=PATH, entry=, traps=, switch=, begin= with the addresses of `syscall_entry`, `trap_stubs`,
 * `switch_stacks` and `user_begin`, skip=ADDRESS once per function. The output, line by line; numbers are decimal but
 * addresses:
 *
 *   kwab-paths 3             the format
 *   b ADDRESS BYTES          the next block, from 0
 *   p BLOCK[*TIMES]...       the next path, from 0; how often a block ran if more than once, 255 for more
 *   o BLOCK...               its blocks in the order of all their turns, a block that follows itself once, as far as
 *                            MOST_TURNS
 *   c NUMBER STACK PATH      a call: how many calls of the machine began before it, its thread
 *   u NUMBER STACK PATH      the same, of a call that did not return
 *   t NUMBER STACK PATH V    an exception from user mode, its vector, and how many calls had begun
 *   s NUMBER STACK PATH      the start of a thread: how many began before it; the boot is 0
 *   ... i                    behind one of these four: an interrupt fell into it
 *   i ADDRESS                the next instruction that uses memory, from 0
 *   r VISIT FLOW...          behind a visit, its number, and what flowed through memory in it, each once:
 *                            LOAD<STORE the instruction LOAD read what STORE had written in the same visit,
 *                            LOAD<STORE@VISIT in another one; visit 0 is what ran outside of visits: interrupts, and
 *                            what is skipped; STORE> an instruction wrote to the program's memory. The thread's own
 *                            stack is left out, unless another visit wrote there or whole strings are copied
 *   e STACK                  the machine ended while this thread ran: visits behind this line have not ended
 *   x                        the output has reached its limit: the rest is missing
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* QEMU's plugin API version 1, as its manual ("TCG Plugins") describes it: Debian ships no header. */
typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
/* QEMU 7.2 does not call back for a load when loads alone are asked for. */
enum { CB_NO_REGS = 0, MEM_W = 2, MEM_RW = 3 };

typedef void (*tb_translated)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*executed)(unsigned, void *);
typedef void (*accessed)(unsigned, uint32_t, uint64_t, void *);

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, tb_translated);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, executed, int flags, void *data);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, accessed, int flags, int rw, void *data);
extern bool qemu_plugin_mem_is_store(uint32_t);
extern unsigned qemu_plugin_mem_size_shift(uint32_t);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);

__attribute__((visibility("default"))) extern int qemu_plugin_version;
int qemu_plugin_version = 1;

enum {
    BUCKETS = 1 << 16,
    /* Blocks of one visit that are kept. */
    MOST_BLOCKS = 1 << 16,
    /* Turns of blocks of one visit that are kept. */
    MOST_TURNS = 1 << 13,
    /* How often a block ran is counted up to here. */
    MOST_TIMES = 255,
    /* Entries that are open inside each other. */
    DEEPEST = 8,
    STUB = 16,
    VECTORS = 256,
    /* Vectors below are the processor's exceptions. */
    INTERRUPTS = 32,
    /* Flows of one visit that are kept, and the last ones of an instruction that are not kept twice. */
    MOST_FLOWS = 1 << 16,
    RECENT = 4,
    /* Pieces of eight bytes whose bytes have several writers are split. */
    PIECE = 8,
    PIECES = 4096 / PIECE,
    /* Memory is taken in chunks of so many. */
    CHUNK = 1 << 16,
    MOST_CHUNKS = 1 << 12,
    /* A kernel stack lies in a slot of this many bits. */
    SLOT_BITS = 16,
    SWITCH_BYTES = 48,
    /* Vector of a visit that is a system call, */
    CALL = -1,
    /* and of one that is the start of a thread. */
    START = -2,
};

static const uint64_t kernel = 0xffff800000000000u, limit = 64u << 20;

/* A block of guest code; it lives for ever, since generated code points to it. */
typedef struct Block {
    uint64_t address, end, stamp;
    unsigned bytes, id, at;
    bool is_written, calls, leaves, is_skipped;
    struct Block *same;
} Block;

/* An instruction of the kernel that uses memory. */
typedef struct Insn {
    uint64_t address, wrote_in, read_in;
    unsigned id, writer, recent[RECENT], recent_count;
    bool is_written, is_string;
    struct Insn *same;
} Insn;

/* An instruction in a visit that wrote memory. */
typedef struct Writer {
    Insn *insn;
    uint64_t visit;
} Writer;

/* What an instruction read, or that it wrote to the program's memory. */
typedef struct Flow {
    Insn *insn;
    unsigned writer;
} Flow;

/* Who wrote each piece of a page last: 0, a number, or with the highest bit set that of a split. */
typedef struct Page {
    uint64_t number;
    unsigned writers[PIECES];
    struct Page *same;
} Page;

/* A thread of the guest and the visit that it is in. */
typedef struct Thread {
    uint64_t stack, serial, number, skip_until, last_end;
    bool is_open, last_calls, was_interrupted;
    int vector;
    /* The vectors of traps inside the visit. */
    int inside[DEEPEST], depth;
    unsigned *path, length, room, *turns, turn_count;
    unsigned char *times;
    Flow *flows;
    unsigned flow_count;
    struct Thread *next;
} Thread;

typedef struct Known {
    uint64_t hash;
    unsigned id;
    struct Known *same;
} Known;

static Block *blocks[BUCKETS];
static Known *paths[BUCKETS];
static Insn *insns[BUCKETS];
static Page *pages[BUCKETS];
/* The first writer is none: what wrote to the program's memory. */
static Writer *writers[MOST_CHUNKS];
static unsigned (*splits[MOST_CHUNKS])[PIECE];
static unsigned writer_count = 1, split_count = 1, insn_count;
static const unsigned split = 1u << 31;
static Thread *threads, *current;
static FILE *output;
static uint64_t entry, traps, switching, begin, skips[1024], calls, starts, serial, written;
static unsigned skip_count, block_count, path_count;
static bool is_full;

static void *zeroed(size_t size) {
    void *memory = calloc(1, size);
    if (!memory) abort();
    return memory;
}

static void open_visit(Thread *, int vector);

static Thread *thread_of(uint64_t address) {
    uint64_t stack = address >> SLOT_BITS;
    for (Thread *thread = threads; thread; thread = thread->next)
        if (thread->stack == stack) return thread;
    Thread *thread = zeroed(sizeof *thread);
    thread->stack = stack;
    thread->next = threads;
    open_visit(thread, START);
    return threads = thread;
}

static Block *block_at(uint64_t address, unsigned bytes) {
    Block **bucket = &blocks[(address * 0x9e3779b97f4a7c15u) >> 48];
    for (Block *block = *bucket; block; block = block->same)
        if (block->address == address && block->bytes == bytes) return block;
    Block *block = zeroed(sizeof *block);
    block->address = address;
    block->bytes = bytes;
    block->end = address + bytes;
    block->same = *bucket;
    return *bucket = block;
}

static void add_turn(Thread *thread, const Block *block) {
    if (thread->turn_count == MOST_TURNS) return;
    if (thread->turn_count && thread->turns[thread->turn_count - 1] == block->id) return;
    if (!thread->turns) thread->turns = zeroed(MOST_TURNS * sizeof *thread->turns);
    thread->turns[thread->turn_count++] = block->id;
}

static void add(Thread *thread, Block *block) {
    if (block->stamp == thread->serial) {
        thread->times[block->at] += thread->times[block->at] < MOST_TIMES;
        add_turn(thread, block);
        return;
    }
    if (thread->length == MOST_BLOCKS) return;
    block->stamp = thread->serial;
    block->at = thread->length;
    if (!block->is_written) {
        block->is_written = true;
        block->id = block_count++;
        written += (uint64_t)fprintf(output, "b %" PRIx64 " %u\n", block->address, block->bytes);
    }
    if (thread->length == thread->room) {
        thread->room = thread->room ? 2 * thread->room : 256;
        thread->path = realloc(thread->path, thread->room * sizeof *thread->path);
        thread->times = realloc(thread->times, thread->room);
        if (!thread->path || !thread->times) abort();
    }
    thread->times[thread->length] = 1;
    thread->path[thread->length++] = block->id;
    add_turn(thread, block);
}

/* The number of the thread's path, which is written when it is new. */
static unsigned path_of(const Thread *thread) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (unsigned index = 0; index < thread->length; index++)
        hash = ((hash ^ thread->path[index] ^ (uint64_t)thread->times[index] << 32) * 0x100000001b3u) ^ (hash >> 29);
    for (unsigned index = 0; index < thread->turn_count; index++)
        hash = ((hash ^ thread->turns[index]) * 0x100000001b3u) ^ (hash >> 29);
    Known **bucket = &paths[hash >> 48];
    for (Known *known = *bucket; known; known = known->same)
        if (known->hash == hash) return known->id;
    Known *known = zeroed(sizeof *known);
    *known = (Known){hash, path_count++, *bucket};
    *bucket = known;
    written += (uint64_t)fprintf(output, "p");
    for (unsigned index = 0; index < thread->length; index++) {
        written += (uint64_t)fprintf(output, " %u", thread->path[index]);
        if (thread->times[index] > 1) written += (uint64_t)fprintf(output, "*%d", thread->times[index]);
    }
    written += (uint64_t)fprintf(output, "\no");
    for (unsigned index = 0; index < thread->turn_count; index++)
        written += (uint64_t)fprintf(output, " %u", thread->turns[index]);
    written += (uint64_t)fprintf(output, "\n");
    return known->id;
}

static Insn *insn_at(uint64_t address) {
    Insn **bucket = &insns[(address * 0x9e3779b97f4a7c15u) >> 48];
    for (Insn *insn = *bucket; insn; insn = insn->same)
        if (insn->address == address) return insn;
    Insn *insn = zeroed(sizeof *insn);
    *insn = (Insn){.address = address, .wrote_in = UINT64_MAX, .read_in = UINT64_MAX, .same = *bucket};
    return *bucket = insn;
}

static Page *page_at(uint64_t address, bool is_needed) {
    static Page *last;
    uint64_t number = address >> 12;
    if (last && last->number == number) return last;
    Page **bucket = &pages[(number * 0x9e3779b97f4a7c15u) >> 48];
    for (Page *page = *bucket; page; page = page->same)
        if (page->number == number) return last = page;
    if (!is_needed) return NULL;
    Page *page = zeroed(sizeof *page);
    page->number = number;
    page->same = *bucket;
    return last = *bucket = page;
}

/* The number of an instruction in a visit as a writer; 0 when there are too many. */
static unsigned writer_of(Insn *insn, uint64_t visit) {
    if (insn->wrote_in == visit) return insn->writer;
    unsigned chunk = writer_count / CHUNK;
    if (chunk == MOST_CHUNKS) return 0;
    if (!writers[chunk]) writers[chunk] = zeroed(CHUNK * sizeof **writers);
    writers[chunk][writer_count % CHUNK] = (Writer){insn, visit};
    insn->wrote_in = visit;
    return insn->writer = writer_count++;
}

static unsigned *split_of(unsigned number) {
    return splits[(number & ~split) / CHUNK][(number & ~split) % CHUNK];
}

static void write_byte(uint64_t address, unsigned writer) {
    unsigned *piece = &page_at(address, true)->writers[address % 4096 / PIECE];
    if (!(*piece & split)) {
        unsigned chunk = split_count / CHUNK;
        if (chunk == MOST_CHUNKS) return;
        if (!splits[chunk]) splits[chunk] = zeroed(CHUNK * sizeof **splits);
        for (unsigned index = 0; index < PIECE; index++) splits[chunk][split_count % CHUNK][index] = *piece;
        *piece = split_count++ | split;
    }
    split_of(*piece)[address % PIECE] = writer;
}

static void write_memory(uint64_t address, unsigned size, unsigned writer) {
    for (unsigned at = 0; at < size;) {
        unsigned *piece = &page_at(address + at, true)->writers[(address + at) % 4096 / PIECE];
        if ((address + at) % PIECE == 0 && size - at >= PIECE && !(*piece & split)) {
            *piece = writer;
            at += PIECE;
        } else {
            write_byte(address + at++, writer);
        }
    }
}

static void add_flow(Thread *thread, Insn *insn, unsigned writer) {
    if (insn->read_in != thread->serial) insn->recent_count = 0;
    insn->read_in = thread->serial;
    for (unsigned index = 0; index < insn->recent_count && index < RECENT; index++)
        if (insn->recent[index] == writer) return;
    insn->recent[insn->recent_count++ % RECENT] = writer;
    if (thread->flow_count == MOST_FLOWS) return;
    if (!thread->flows) thread->flows = zeroed(MOST_FLOWS * sizeof *thread->flows);
    thread->flows[thread->flow_count++] = (Flow){insn, writer};
}

static void read_memory(Thread *thread, Insn *insn, uint64_t address, unsigned size) {
    bool is_own = address >> SLOT_BITS == thread->stack && !insn->is_string;
    unsigned last = 0;
    for (unsigned at = 0; at < size; at++) {
        const Page *page = page_at(address + at, false);
        if (!page) continue;
        unsigned piece = page->writers[(address + at) % 4096 / PIECE];
        unsigned writer = piece & split ? split_of(piece)[(address + at) % PIECE] : piece;
        if (writer == 0 || writer == last) continue;
        last = writer;
        if (is_own && writers[writer / CHUNK][writer % CHUNK].visit == thread->serial) continue;
        add_flow(thread, insn, writer);
    }
}

static void declare(Insn *insn) {
    if (insn->is_written) return;
    insn->is_written = true;
    insn->id = insn_count++;
    written += (uint64_t)fprintf(output, "i %" PRIx64 "\n", insn->address);
}

/* What flowed through memory in a visit. */
static void write_flows(const Thread *thread) {
    for (unsigned index = 0; index < thread->flow_count; index++) {
        const Flow *flow = &thread->flows[index];
        declare(flow->insn);
        if (flow->writer) declare(writers[flow->writer / CHUNK][flow->writer % CHUNK].insn);
    }
    written += (uint64_t)fprintf(output, "r %" PRIu64, thread->serial);
    for (unsigned index = 0; index < thread->flow_count; index++) {
        const Flow *flow = &thread->flows[index];
        if (!flow->writer) {
            written += (uint64_t)fprintf(output, " %u>", flow->insn->id);
            continue;
        }
        const Writer *writer = &writers[flow->writer / CHUNK][flow->writer % CHUNK];
        written += (uint64_t)fprintf(output, " %u<%u", flow->insn->id, writer->insn->id);
        if (writer->visit != thread->serial) written += (uint64_t)fprintf(output, "@%" PRIu64, writer->visit);
    }
    written += (uint64_t)fprintf(output, "\n");
}

static void close_visit(Thread *thread, char kind) {
    if (!thread->is_open) return;
    thread->is_open = false;
    if (is_full || thread->vector >= INTERRUPTS) return;
    unsigned path = path_of(thread);
    if (thread->vector < 0)
        written += (uint64_t)fprintf(output, "%c %" PRIu64 " %" PRIx64 " %u", thread->vector == START ? 's' : kind,
                                     thread->number, thread->stack, path);
    else
        written += (uint64_t)fprintf(output, "t %" PRIu64 " %" PRIx64 " %u %d", thread->number, thread->stack, path,
                                     thread->vector);
    written += (uint64_t)fprintf(output, thread->was_interrupted ? " i\n" : "\n");
    write_flows(thread);
    if (written > limit) {
        is_full = true;
        fprintf(output, "x\n");
    }
    fflush(output);
}

static void open_visit(Thread *thread, int vector) {
    close_visit(thread, 'u');
    thread->is_open = true;
    thread->vector = vector;
    thread->number = vector == CALL ? calls++ : vector == START ? starts++ : calls;
    thread->serial = ++serial;
    thread->skip_until = thread->last_end = 0;
    thread->length = thread->turn_count = thread->flow_count = 0;
    thread->depth = 0;
    thread->was_interrupted = false;
}

/* Whether a trap is none of the code it falls into: an interrupt or an NMI. */
static bool interrupts(int vector) {
    return vector >= INTERRUPTS || vector == 2;
}

static bool is_interrupted(const Thread *thread) {
    for (int index = 0; index < thread->depth && index < DEEPEST; index++)
        if (interrupts(thread->inside[index])) return true;
    return false;
}

/* A processor's trap: what it interrupts is in the kernel when the thread is in a visit. */
static void trapped(Thread *thread, int vector) {
    if (!thread->is_open) {
        open_visit(thread, vector);
        return;
    }
    thread->was_interrupted |= interrupts(vector);
    if (thread->depth < DEEPEST) thread->inside[thread->depth] = vector;
    thread->depth++;
}

static void on_block(unsigned cpu, void *data) {
    Block *block = data;
    if (cpu != 0) return;
    /* The boot runs on a stack that is known when it leaves it. */
    if (!current) current = thread_of(0);
    Thread *thread = current;
    uint64_t address = block->address;
    if (address - traps < STUB * VECTORS) trapped(thread, (int)((address - traps) / STUB));
    /* The stack may have been another thread's, whose last call did not return. */
    if (address == begin && !(thread->is_open && thread->vector == START && thread->length == 0))
        open_visit(thread, START);
    if (!thread->is_open) return;
    bool is_in_visit = !is_interrupted(thread);
    if (is_in_visit) {
        if (thread->skip_until == address) thread->skip_until = 0;
        if (!thread->skip_until && block->is_skipped && thread->last_calls) thread->skip_until = thread->last_end;
        if (!thread->skip_until && !is_full && thread->vector < INTERRUPTS) add(thread, block);
        thread->last_end = block->end;
        thread->last_calls = block->calls;
    }
    if (!block->leaves) return;
    if (thread->depth > 0)
        thread->depth--;
    else
        close_visit(thread, 'c');
}

/* A use of memory by an instruction of the kernel. */
static void on_memory(unsigned cpu, uint32_t info, uint64_t address, void *data) {
    Insn *insn = data;
    if (cpu != 0 || is_full) return;
    Thread *thread = current;
    bool is_in_visit = thread && thread->is_open && !thread->skip_until && thread->vector < INTERRUPTS &&
                       !is_interrupted(thread);
    unsigned size = 1u << qemu_plugin_mem_size_shift(info);
    if (qemu_plugin_mem_is_store(info)) {
        if (address >= kernel)
            write_memory(address, size, writer_of(insn, is_in_visit ? thread->serial : 0));
        else if (is_in_visit)
            add_flow(thread, insn, 0);
    } else if (is_in_visit && address >= kernel) {
        read_memory(thread, insn, address, size);
    }
}

/* The first push of a system call: onto the stack of its thread. */
static void on_entry(unsigned cpu, uint32_t info, uint64_t address, void *data) {
    (void)info, (void)data;
    if (cpu != 0) return;
    current = thread_of(address);
    open_visit(current, CALL);
}

/* The first push onto the stack that is left. */
static void on_leave(unsigned cpu, uint32_t info, uint64_t address, void *data) {
    (void)info, (void)data;
    if (cpu == 0 && current && current->stack == 0) current->stack = address >> SLOT_BITS;
}

/* The first pop from the stack that is switched to. */
static void on_switch(unsigned cpu, uint32_t info, uint64_t address, void *data) {
    (void)info, (void)data;
    if (cpu == 0) current = thread_of(address);
}

/* Whether an instruction is a call, by its opcode. */
static bool is_call(const unsigned char *bytes, size_t size) {
    if (size > 2 && (bytes[0] & 0xf0) == 0x40) bytes++, size--;
    return bytes[0] == 0xe8 || (size > 1 && bytes[0] == 0xff && (bytes[1] >> 3 & 7) == 2);
}

/* Whether an instruction copies a string, by its opcode. */
static bool is_copy(const unsigned char *bytes, size_t size) {
    if (size > 1 && bytes[0] == 0xf3) bytes++, size--;
    if (size > 1 && bytes[0] == 0x48) bytes++, size--;
    return size == 1 && (bytes[0] == 0xa4 || bytes[0] == 0xa5);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    uint64_t address = qemu_plugin_tb_vaddr(tb);
    if (address < kernel) return;
    size_t count = qemu_plugin_tb_n_insns(tb), bytes = 0;
    bool is_entering = false;
    for (size_t index = 0; index < count; index++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, index);
        const unsigned char *code = qemu_plugin_insn_data(insn);
        uint64_t at = qemu_plugin_insn_vaddr(insn);
        size_t size = qemu_plugin_insn_size(insn);
        bytes += size;
        Insn *place = insn_at(at);
        place->is_string = is_copy(code, size);
        qemu_plugin_register_vcpu_mem_cb(insn, on_memory, CB_NO_REGS, MEM_RW, place);
        if (at - switching < SWITCH_BYTES && size == 2 && code[0] == 0x41 && code[1] == 0x5f)
            qemu_plugin_register_vcpu_mem_cb(insn, on_switch, CB_NO_REGS, MEM_RW, NULL);
        if (at == switching) qemu_plugin_register_vcpu_mem_cb(insn, on_leave, CB_NO_REGS, MEM_W, NULL);
        if (address == entry && !is_entering && code[0] == 0x6a) {
            is_entering = true;
            qemu_plugin_register_vcpu_mem_cb(insn, on_entry, CB_NO_REGS, MEM_W, NULL);
        }
    }
    Block *block = block_at(address, (unsigned)bytes);
    const unsigned char *last = qemu_plugin_insn_data(qemu_plugin_tb_get_insn(tb, count - 1));
    size_t size = qemu_plugin_insn_size(qemu_plugin_tb_get_insn(tb, count - 1));
    block->calls = is_call(last, size);
    /* SYSRETQ or IRETQ. */
    block->leaves = (size == 3 && last[0] == 0x48 && last[1] == 0x0f && last[2] == 0x07) ||
                    (size == 2 && last[0] == 0x48 && last[1] == 0xcf);
    for (unsigned index = 0; index < skip_count; index++) block->is_skipped |= skips[index] == address;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, CB_NO_REGS, block);
}

static void finish(void) {
    fprintf(output, "e %" PRIx64 "\n", current ? current->stack : 0);
    for (Thread *thread = threads; thread; thread = thread->next) close_visit(thread, 'u');
    fclose(output);
}

static uint64_t *place(const char *name, size_t length) {
    const struct { const char *name; uint64_t *place; } places[] = {
        {"entry", &entry}, {"traps", &traps}, {"switch", &switching}, {"begin", &begin}};
    for (size_t index = 0; index < sizeof places / sizeof *places; index++)
        if (strlen(places[index].name) == length && strncmp(name, places[index].name, length) == 0)
            return places[index].place;
    bool has_room = skip_count < sizeof skips / sizeof *skips;
    return length == 4 && strncmp(name, "skip", 4) == 0 && has_room ? &skips[skip_count++] : NULL;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int count,
                                                               char **arguments) {
    (void)info;
    for (int index = 0; index < count; index++) {
        const char *value = strchr(arguments[index], '=');
        if (!value) continue;
        size_t length = (size_t)(value++ - arguments[index]);
        uint64_t *number = place(arguments[index], length);
        if (number) *number = strtoull(value, NULL, 16);
        else if (length == 6 && strncmp(arguments[index], "output", 6) == 0) output = fopen(value, "w");
    }
    if (!output || !entry || !traps || !switching || !begin) {
        fprintf(stderr, "paths: output, entry, traps, switch and begin are wanted, and the output must be writable\n");
        return 1;
    }
    written = (uint64_t)fprintf(output, "kwab-paths 3\n");
    atexit(finish);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    return 0;
}
