#include "probe/sysfs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"

enum {
    FILE_BYTES = 16384, /* of any file; a page in sysfs, a few more in /proc */
    TEXT_BYTES = 96,
    MOST_NODES = 512, /* of the compute driver's topology */
    AMD = 0x1002,
    NVIDIA = 0x10de
};

struct system {
    struct vp_ctx *ctx;
    const char *sys, *proc, *dev, *opt;
};

/* One device of the compute driver: a card, or a partition of one. */
struct node {
    uint64_t gpu_id, domain, location, arch, units, bytes, hive;
};

/* ---- files ---- */

static const char *join(const struct system *s, const char *folder, const char *name) {
    return vp_arena_printf(s->ctx->arena, "%s/%s", folder, name);
}

/* The beginning of a file; NULL: it cannot be read. */
static const char *read_file(const struct system *s, const char *path) {
    const struct vp_io *io = s->ctx->io;
    int fd = io->open(path);
    char data[FILE_BYTES];
    size_t size = 0;

    if (fd < 0)
        return NULL;
    while (size < sizeof data) {
        long n = io->read(fd, data + size, sizeof data - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        size += (size_t)n;
    }
    io->close(fd);
    return vp_arena_text(s->ctx->arena, data, size);
}

/* Plain characters of `text` up to the end of its line, without blanks around; NULL: none. */
static const char *clean_line(const struct system *s, const char *text) {
    char out[TEXT_BYTES];
    size_t n = 0;

    while (text && (*text == ' ' || *text == '\t'))
        text++;
    for (; text && *text && *text != '\n' && n < sizeof out; text++)
        out[n++] = *text >= ' ' && *text <= '~' ? *text : '?';
    while (n && out[n - 1] == ' ')
        n--;
    return n ? vp_arena_text(s->ctx->arena, out, n) : NULL;
}

static const char *read_line(const struct system *s, const char *folder, const char *name) {
    return clean_line(s, read_file(s, join(s, folder, name)));
}

/* Decimal, or hexadecimal behind "0x". 0 where a text does not begin with a number, or with one
 * that is followed by anything but blanks. */
static uint64_t number_of(const char *text) {
    char *end;
    if (!text)
        return 0;
    while (*text == ' ' || *text == '\t')
        text++;
    if (*text < '0' || *text > '9')
        return 0;
    errno = 0;
    bool hex = text[0] == '0' && text[1] == 'x';
    unsigned long long value = strtoull(text, &end, hex ? 16 : 10);
    return errno || (*end && !strchr(" \t\n", *end)) ? 0 : value;
}

static uint64_t read_number(const struct system *s, const char *folder, const char *name) {
    return number_of(read_file(s, join(s, folder, name)));
}

/* What follows `key` at the beginning of a line; NULL: no line begins so. */
static const char *after(const char *text, const char *key) {
    size_t length = strlen(key);
    while (text && strncmp(text, key, length) != 0) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text ? text + length : NULL;
}

/* "MemTotal:  32811356 kB"; a unit that is not known makes it 0. */
static uint64_t sized_line(const char *text, const char *key) {
    const char *at = after(text, key);
    uint64_t value = number_of(at);
    const char *unit = at ? at + strspn(at, " \t0123456789") : "";
    unsigned shift = vp_text_starts(unit, "kB") || vp_text_starts(unit, "KiB") ? 10
                     : vp_text_starts(unit, "MiB")                             ? 20
                                                                               : 0;
    return value <= UINT64_MAX >> shift ? value << shift : 0;
}

static char **list(const struct system *s, const char *folder, size_t *count) {
    char **names = NULL;
    *count = 0;
    if (s->ctx->io->list(s->ctx, folder, &names, count) != 0)
        *count = 0;
    return names;
}

static bool all_digits(const char *text) {
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* ---- the compute driver's nodes ---- */

const char *vp_sysfs_arch(struct vp_arena *arena, uint64_t version) {
    uint64_t major = version / 10000, minor = version / 100 % 100, step = version % 100;
    if (!major || major > 99 || minor > 15 || step > 15)
        return NULL;
    return vp_arena_printf(arena, "gfx%" PRIu64 "%" PRIx64 "%" PRIx64, major, minor, step);
}

/* Memory of the device itself: heaps 1 (visible) and 2 (not visible). */
static uint64_t bank_bytes(const struct system *s, const char *node) {
    const char *folder = join(s, node, "mem_banks");
    struct vp_sum sum = {0, false};
    size_t count;
    char **names = list(s, folder, &count);

    for (size_t i = 0; i < count && i < MOST_NODES; i++) {
        const char *text = read_file(s, join(s, join(s, folder, names[i]), "properties"));
        uint64_t heap = number_of(after(text, "heap_type "));
        if (heap == 1 || heap == 2)
            sum = vp_sum_add(sum, number_of(after(text, "size_in_bytes ")));
    }
    return sum.overflow ? 0 : sum.v;
}

static uint32_t read_nodes(const struct system *s, struct node *out) {
    const char *folder = join(s, s->sys, "class/kfd/kfd/topology/nodes");
    uint32_t found = 0;
    size_t count;
    char **names = list(s, folder, &count);

    for (size_t i = 0; i < count && found < MOST_NODES; i++) {
        const char *node = join(s, folder, names[i]);
        const char *text = read_file(s, join(s, node, "properties"));
        uint64_t lanes = number_of(after(text, "simd_count "));
        uint64_t per_unit = number_of(after(text, "simd_per_cu "));
        struct node n = {.gpu_id = read_number(s, node, "gpu_id"),
                         .domain = number_of(after(text, "domain ")),
                         /* a partition's number stands in the four highest bits */
                         .location = number_of(after(text, "location_id ")) & 0xffff,
                         .arch = number_of(after(text, "gfx_target_version ")),
                         .units = per_unit ? lanes / per_unit : 0,
                         .hive = number_of(after(text, "hive_id ")),
                         .bytes = bank_bytes(s, node)};
        if (n.gpu_id && n.units)
            out[found++] = n;
    }
    return found;
}

static const char *pci_of(const struct system *s, const struct node *n) {
    return vp_arena_printf(s->ctx->arena, "%04" PRIx64 ":%02" PRIx64 ":%02" PRIx64 ".%" PRIx64,
                           n->domain, n->location >> 8, n->location >> 3 & 31, n->location & 7);
}

/* ---- processes ---- */

struct holders {
    struct vp_fact_holder item[VP_FACT_HOLDERS + 1];
    uint32_t count;
};

static bool less(const struct vp_fact_holder *a, const struct vp_fact_holder *b) {
    uint64_t x = a->vram_bytes + a->gtt_bytes, y = b->vram_bytes + b->gtt_bytes;
    return x != y ? x < y : a->pid > b->pid;
}

/* Keeps the list in order. One process may be told of twice, by the compute driver and by the
 * graphics driver, which counts the same memory: the larger figure holds. */
static void add_holder(const struct system *s, struct holders *to, struct vp_fact_holder one) {
    uint32_t at = 0;
    while (at < to->count && to->item[at].pid != one.pid)
        at++;
    if (at < to->count) {
        one.vram_bytes = vp_max(one.vram_bytes, to->item[at].vram_bytes);
        one.gtt_bytes = vp_max(one.gtt_bytes, to->item[at].gtt_bytes);
        to->count--;
        memmove(&to->item[at], &to->item[at + 1], (to->count - at) * sizeof one);
    }
    if (one.vram_bytes > UINT64_MAX / 2 || one.gtt_bytes > UINT64_MAX / 2)
        return;
    if (!one.program) {
        const char *folder = vp_arena_printf(s->ctx->arena, "%s/%" PRIu64, s->proc, one.pid);
        one.program = read_line(s, folder, "comm");
    }
    at = to->count++;
    for (; at > 0 && less(&to->item[at - 1], &one); at--)
        to->item[at] = to->item[at - 1];
    to->item[at] = one;
    if (to->count > VP_FACT_HOLDERS)
        to->count = VP_FACT_HOLDERS;
}

/* /sys/class/kfd/kfd/proc/PID/vram_GPUID: bytes. */
static void compute_holders(const struct system *s, struct holders *to, const struct node *nodes,
                            uint32_t node_count, const char *pci) {
    const char *folder = join(s, s->sys, "class/kfd/kfd/proc");
    size_t count;
    char **names = list(s, folder, &count);

    for (size_t i = 0; i < count; i++) {
        struct vp_fact_holder one = {.pid = number_of(names[i])};
        struct vp_sum sum = {0, false};
        for (uint32_t k = 0; all_digits(names[i]) && k < node_count; k++) {
            if (!vp_text_eq(pci_of(s, &nodes[k]), pci))
                continue;
            const char *name = vp_arena_printf(s->ctx->arena, "vram_%" PRIu64, nodes[k].gpu_id);
            sum = vp_sum_add(sum, read_number(s, join(s, folder, names[i]), name));
        }
        one.vram_bytes = sum.v;
        if (one.pid && one.vram_bytes && !sum.overflow)
            add_holder(s, to, one);
    }
}

/* A client of the graphics driver, by one of a process's open files. */
struct client {
    uint64_t id, vram_bytes, gtt_bytes;
    const char *pci;
};
enum { MOST_CLIENTS = 64 };

static bool is_gpu_file(const struct system *s, const char *process, const char *fd) {
    char target[TEXT_BYTES];
    const char *path = vp_arena_printf(s->ctx->arena, "%s/fd/%s", process, fd);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return false;
    target[n] = '\0';
    return strstr(target, "/dri/") != NULL;
}

static uint32_t read_clients(const struct system *s, struct client *out, const char *process) {
    const char *folder = join(s, process, "fdinfo");
    uint32_t found = 0;
    size_t count;
    char **names = list(s, folder, &count);

    for (size_t i = 0; i < count && found < MOST_CLIENTS; i++) {
        if (!is_gpu_file(s, process, names[i]))
            continue;
        const char *text = read_file(s, join(s, folder, names[i]));
        struct client c = {.id = number_of(after(text, "drm-client-id:")),
                           .vram_bytes = sized_line(text, "drm-memory-vram:"),
                           .gtt_bytes = sized_line(text, "drm-memory-gtt:"),
                           .pci = clean_line(s, after(text, "drm-pdev:"))};
        uint32_t k = 0; /* duplicates of one file tell the same client again */
        while (k < found && out[k].id != c.id)
            k++;
        if (c.pci && k == found)
            out[found++] = c;
    }
    return found;
}

/* /proc/PID/fdinfo, of the processes whose files may be looked at: the user's own. False: it holds
 * nothing. */
static bool graphics_holder(const struct system *s, struct holders *to, const char *pci,
                            const char *pid) {
    struct client client[MOST_CLIENTS];
    struct vp_fact_holder one = {.pid = number_of(pid)};
    uint32_t count = read_clients(s, client, join(s, s->proc, pid));
    struct vp_sum vram = {0, false}, gtt = {0, false};

    for (uint32_t i = 0; i < count; i++) {
        if (!vp_text_eq(client[i].pci, pci))
            continue;
        vram = vp_sum_add(vram, client[i].vram_bytes);
        gtt = vp_sum_add(gtt, client[i].gtt_bytes);
    }
    one.vram_bytes = vram.v;
    one.gtt_bytes = gtt.v;
    if (vram.overflow || gtt.overflow || (!one.vram_bytes && !one.gtt_bytes))
        return false;
    add_holder(s, to, one);
    return true;
}

static void read_holders(const struct system *s, struct vp_fact_gpu *gpu, const struct node *nodes,
                         uint32_t node_count) {
    struct holders found = {.count = 0};
    size_t count;
    char **pids = list(s, s->proc, &count);

    compute_holders(s, &found, nodes, node_count, gpu->pci);
    for (size_t i = 0; i < count; i++) {
        struct vp_arena_mark mark = vp_arena_mark(s->ctx->arena);
        if (!all_digits(pids[i]) || !graphics_holder(s, &found, gpu->pci, pids[i]))
            vp_arena_rewind(s->ctx->arena, mark);
    }
    gpu->holder_count = found.count;
    gpu->holders = VP_NEW_ARRAY(s->ctx->arena, found.count, struct vp_fact_holder);
    if (found.count)
        memcpy(gpu->holders, found.item, found.count * sizeof *found.item);
}

/* ---- cards ---- */

static uint64_t first_monitor(const struct system *s, const char *device, const char *name) {
    const char *folder = join(s, device, "hwmon");
    uint64_t value = 0;
    size_t count;
    char **names = list(s, folder, &count);
    for (size_t i = 0; i < count && !value; i++)
        value = read_number(s, join(s, folder, names[i]), name);
    return value;
}

static void add_nodes(const struct system *s, struct vp_fact_gpu *gpu, const struct node *nodes,
                      uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const struct node *n = &nodes[i];
        if (!vp_text_eq(pci_of(s, n), gpu->pci))
            continue;
        if (!gpu->arch)
            gpu->arch = vp_sysfs_arch(s->ctx->arena, n->arch);
        gpu->devices++;
        gpu->compute_units += n->units <= UINT32_MAX ? n->units : 0;
        if (!gpu->node_bytes || n->bytes < gpu->node_bytes)
            gpu->node_bytes = n->bytes;
        if (n->hive)
            gpu->xgmi_hive = vp_arena_printf(s->ctx->arena, "%" PRIx64, n->hive);
    }
}

static struct vp_fact_gpu amd_card(const struct system *s, const char *device) {
    return (struct vp_fact_gpu){
        .vendor = "amd",
        .pci = clean_line(s, after(read_file(s, join(s, device, "uevent")), "PCI_SLOT_NAME=")),
        .name = read_line(s, device, "product_name"),
        .device_id = read_number(s, device, "device"),
        .vram_total_bytes = read_number(s, device, "mem_info_vram_total"),
        .vram_used_bytes = read_number(s, device, "mem_info_vram_used"),
        .visible_bytes = read_number(s, device, "mem_info_vis_vram_total"),
        .gtt_total_bytes = read_number(s, device, "mem_info_gtt_total"),
        .gtt_used_bytes = read_number(s, device, "mem_info_gtt_used"),
        .partition = read_line(s, device, "current_compute_partition"),
        .partitions = read_line(s, device, "available_compute_partition"),
        .memory_partition = read_line(s, device, "current_memory_partition"),
        .memory_partitions = read_line(s, device, "available_memory_partition"),
        .power_cap_mw = first_monitor(s, device, "power1_cap") / 1000,
        .clock_khz = first_monitor(s, device, "freq1_input") / 1000};
}

static struct vp_fact_gpu *find(struct vp_device_facts *facts, const char *pci) {
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        if (vp_text_eq(facts->gpus[i].pci, pci))
            return &facts->gpus[i];
    return NULL;
}

static void add(struct vp_device_facts *facts, struct vp_fact_gpu gpu) {
    if (gpu.pci && !find(facts, gpu.pci) && facts->gpu_count < VP_FACT_GPUS)
        facts->gpus[facts->gpu_count++] = gpu;
}

/* card0, card1; not card0-DP-1, nor the partitions' own cards, which have no PCI device. */
static void read_drm(const struct system *s, struct vp_device_facts *out) {
    const char *folder = join(s, s->sys, "class/drm");
    size_t count;
    char **names = list(s, folder, &count);

    for (size_t i = 0; i < count; i++) {
        if (!vp_text_starts(names[i], "card") || !all_digits(names[i] + 4))
            continue;
        const char *device = join(s, join(s, folder, names[i]), "device");
        uint64_t vendor = read_number(s, device, "vendor");
        if (vendor == AMD)
            add(out, amd_card(s, device));
        else if (vendor == NVIDIA)
            add(out, (struct vp_fact_gpu){
                         .vendor = "nvidia",
                         .pci = clean_line(
                             s, after(read_file(s, join(s, device, "uevent")), "PCI_SLOT_NAME=")),
                         .device_id = read_number(s, device, "device")});
    }
}

/* /proc/driver/nvidia/gpus/ADDRESS/information */
static void read_nvidia(const struct system *s, struct vp_device_facts *out) {
    const char *driver = join(s, s->proc, "driver/nvidia"), *folder = join(s, driver, "gpus");
    const char *version = read_file(s, join(s, driver, "version"));
    size_t count;
    char **names = list(s, folder, &count);

    for (size_t i = 0; i < count; i++) {
        const char *text = read_file(s, join(s, join(s, folder, names[i]), "information"));
        const char *pci = clean_line(s, names[i]);
        if (!text || !pci)
            continue;
        add(out, (struct vp_fact_gpu){.vendor = "nvidia", .pci = pci});
        struct vp_fact_gpu *gpu = find(out, pci);
        if (gpu && !gpu->name)
            gpu->name = clean_line(s, after(text, "Model:"));
    }
    /* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 ..." */
    const char *module = version ? strstr(version, "Kernel Module") : NULL;
    if (module)
        module += strcspn(module, "0123456789\n");
    if (module && *module && *module != '\n')
        out->nvidia =
            vp_arena_text(s->ctx->arena, module, vp_min(strspn(module, "0123456789."), TEXT_BYTES));
}

/* ---- the rest ---- */

static void read_host(const struct system *s, struct vp_device_facts *out) {
    const char *memory = read_file(s, join(s, s->proc, "meminfo"));
    const char *module = join(s, s->sys, "module");
    const char *gttsize = read_line(s, module, "amdgpu/parameters/gttsize");

    out->host_total_bytes = sized_line(memory, "MemTotal:");
    out->host_available_bytes = sized_line(memory, "MemAvailable:");
    out->ttm_pages_limit = read_number(s, module, "ttm/parameters/pages_limit");
    if (!out->ttm_pages_limit) /* the module of AMD's packaged driver */
        out->ttm_pages_limit = read_number(s, module, "amdttm/parameters/pages_limit");
    out->gttsize_mib = number_of(gttsize); /* -1: not set */
    out->amdgpu_loaded = read_line(s, module, "amdgpu/initstate") != NULL;
    out->amdgpu = read_line(s, module, "amdgpu/version");
    out->kernel = read_line(s, s->proc, "sys/kernel/osrelease");
    out->rocm = read_line(s, s->opt, "rocm/.info/version");
    const char *kfd = join(s, s->dev, "kfd");
    out->kfd_refused = access(kfd, F_OK) == 0 && access(kfd, R_OK | W_OK) != 0;
}

static int by_address(const void *a, const void *b) {
    return strcmp(((const struct vp_fact_gpu *)a)->pci, ((const struct vp_fact_gpu *)b)->pci);
}

void vp_sysfs_read(struct vp_ctx *ctx, struct vp_device_facts *out) {
    const char *given = getenv("VRAMPLAN_SYSFS");
    const char *top = given && *given ? vp_arena_printf(ctx->arena, "%s/..", given) : "";
    struct system s = {.ctx = ctx,
                       .sys = given && *given ? given : "/sys",
                       .proc = vp_arena_printf(ctx->arena, "%s/proc", top),
                       .dev = vp_arena_printf(ctx->arena, "%s/dev", top),
                       .opt = vp_arena_printf(ctx->arena, "%s/opt", top)};
    struct node *nodes = VP_NEW_ARRAY(ctx->arena, MOST_NODES, struct node);
    uint32_t node_count = read_nodes(&s, nodes);

    *out = (struct vp_device_facts){.gpus =
                                        VP_NEW_ARRAY(ctx->arena, VP_FACT_GPUS, struct vp_fact_gpu)};
    read_host(&s, out);
    read_drm(&s, out);
    read_nvidia(&s, out);
    /* a card that only the compute driver shows, as in a container without /sys/class/drm */
    for (uint32_t i = 0; i < node_count; i++)
        add(out, (struct vp_fact_gpu){.vendor = "amd", .pci = pci_of(&s, &nodes[i])});
    for (uint32_t i = 0; i < out->gpu_count; i++)
        if (vp_text_eq(out->gpus[i].vendor, "amd")) {
            add_nodes(&s, &out->gpus[i], nodes, node_count);
            read_holders(&s, &out->gpus[i], nodes, node_count);
        }
    if (out->gpu_count)
        qsort(out->gpus, out->gpu_count, sizeof *out->gpus, by_address);
}
