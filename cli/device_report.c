#include "cli/device_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/report.h"

enum { INDENT = 2, VALUE = 18, MIB_SHIFT = 20 };

/* ---- what both forms say ---- */

static const struct vp_gpu *gpu_of(const struct vp_device_card *card) {
    return card->profiles.count ? card->profiles.items[0] : NULL;
}

/* All of them are alike in what is shown by family, so that the first one may stand for them. */
static const char *names_of(struct vp_arena *arena, const struct vp_card_profiles *profiles) {
    struct vp_buf buf = {.arena = arena};
    for (uint32_t i = 0; i < profiles->count; i++)
        vp_buf_printf(&buf, "%s%s", i ? ", " : "", profiles->items[i]->id);
    return vp_buf_text(&buf);
}

/* In three states: "native", "emulated" (bytes are widened on the way), NULL: not known. */
static const char *fp8_support(const struct vp_gpu *gpu) {
    return gpu->fp8 ? "native" : *gpu->arch ? "emulated" : NULL;
}

static const char *fp8_kind(const struct vp_gpu *gpu) {
    if (!gpu->fp8)
        return NULL;
    return strstr(gpu->fp8_formats, "fnuz") ? "fnuz" : "ocp";
}

/* One memory domain of a mode ("NPS4"), and the devices that share it. */
struct domain {
    const char *name;
    uint64_t bytes, devices;
};
static bool domain_of(struct domain *out, const struct vp_gpu *gpu, const struct vp_node *nps,
                      uint64_t devices) {
    const char *name = vp_node_text(nps);
    uint64_t mib = gpu->runtime_mib ? gpu->runtime_mib : gpu->driver_mib, parts;

    if (!name || !vp_text_starts(name, "NPS") || !vp_parse_u64(&parts, name + 3) || !parts ||
        !mib || devices % parts)
        return false;
    *out = (struct domain){name, (mib << MIB_SHIFT) / parts, devices / parts};
    return true;
}

static const struct vp_node *modes_of(const struct vp_device_card *card) {
    const struct vp_node *modes = vp_node_get(vp_node_get(card->profile, "partitions"), "modes");
    return modes && modes->kind == VP_NODE_LIST ? modes : NULL;
}

static uint64_t mode_number(const struct vp_node *mode, const char *key) {
    uint64_t value = 0;
    return vp_node_u64(&value, vp_node_get(mode, key)) ? value : 0;
}

/* ---- text ---- */

static const char *gib(const struct vp_page *page, uint64_t bytes) {
    return vp_format_gib(page->out->arena, bytes, 2);
}

static void label(const struct vp_page *page, const char *name) {
    vp_page_spaces(page, INDENT);
    vp_page_left(page, name, VALUE - INDENT);
}

/* "  name            text", further lines below the text. */
static void line(const struct vp_page *page, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void line(const struct vp_page *page, const char *name, const char *format, ...) {
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    label(page, name);
    vp_page_wrap(page, VALUE, VALUE, text);
}

static void title(const struct vp_page *page, const struct vp_device_card *card) {
    const struct vp_fact_gpu *fact = card->fact;
    const struct vp_gpu *gpu = gpu_of(card);
    const char *name = fact && fact->name ? fact->name : gpu ? gpu->name : "GPU";
    struct vp_buf text = {.arena = page->out->arena};

    if (fact)
        vp_buf_printf(&text, "%s  %s", fact->pci ? fact->pci : "?", name);
    else
        vp_buf_printf(&text, "%s", name);
    vp_page_title(page, vp_page_shorten(page, vp_buf_text(&text), page->width));
}

static void profile_lines(const struct vp_page *page, const struct vp_device_card *card) {
    const struct vp_fact_gpu *fact = card->fact;
    const struct vp_gpu *gpu = gpu_of(card);
    const char *arch = fact && fact->arch ? fact->arch : gpu ? gpu->arch : NULL;
    uint64_t units = fact && fact->compute_units ? fact->compute_units
                     : gpu                       ? gpu->compute_units
                                                 : 0;

    if (!gpu)
        line(page, "profile",
             "none that is like it: describe the card, as gpu: {id, vendor, arch, runtime_mib} "
             "(profiles/gpus/README.md)");
    else
        line(page, "profile", "%s%s", names_of(page->out->arena, &card->profiles),
             card->profiles.count > 1 ? ": which of them is not told apart" : "");
    if (arch && *arch)
        line(page, "architecture", "%s%s", arch,
             units ? vp_arena_printf(page->out->arena, ", %" PRIu64 " %s", units,
                                     vp_text_starts(arch, "gfx") ? "compute units"
                                                                 : "multiprocessors")
                   : "");
}

static void fp8_lines(const struct vp_page *page, const struct vp_gpu *gpu) {
    const char *kind = fp8_kind(gpu);

    if (!fp8_support(gpu))
        return;
    if (kind && strcmp(kind, "fnuz") == 0)
        line(page, "FP8",
             "native: %s; checkpoints hold e4m3fn (OCP), which engines convert while "
             "loading, to the same bytes",
             gpu->fp8_formats);
    else if (kind)
        line(page, "FP8", "native: %s", gpu->fp8_formats);
    else
        line(page, "FP8",
             "emulated: no matrix units. A kernel that widens the weights as it reads them keeps "
             "0.93 GiB per 10^9 of them, at the 16-bit rate at best; an engine that widens them "
             "while loading keeps 1.86 GiB%s",
             vp_text_eq(gpu->vendor, "amd")
                 ? "; refused: torch's _scaled_mm (per-tensor and per-channel checkpoints)"
                 : "");
    if (!kind && *gpu->fp8_formats)
        line(page, "", "narrow formats with units: %s", gpu->fp8_formats);
}

static void mode_lines(const struct vp_page *page, const struct vp_device_card *card) {
    const struct vp_node *modes = modes_of(card);
    const struct vp_gpu *gpu = gpu_of(card);

    for (uint32_t i = 0; modes && i < modes->count; i++) {
        const struct vp_node *mode = modes->items[i], *nps = vp_node_get(mode, "nps");
        uint64_t devices = mode_number(mode, "devices");
        struct vp_buf text = {.arena = page->out->arena};
        vp_buf_printf(&text, "%-4s %" PRIu64 " device%s of %s GiB, %" PRIu64 " compute units",
                      vp_node_text(vp_node_get(mode, "mode")), devices, devices == 1 ? "" : "s",
                      gib(page, mode_number(mode, "memory_mib") << MIB_SHIFT),
                      mode_number(mode, "cus"));
        for (uint32_t k = 0; nps && nps->kind == VP_NODE_LIST && k < nps->count; k++) {
            struct domain d;
            if (!domain_of(&d, gpu, nps->items[k], devices) || d.devices == devices)
                vp_buf_printf(&text, "; %s", vp_node_text(nps->items[k]));
            else
                vp_buf_printf(&text, "; %s: domains of %s GiB, %" PRIu64 " device%s each", d.name,
                              gib(page, d.bytes), d.devices, d.devices == 1 ? "" : "s");
        }
        label(page, i ? "" : "partition modes");
        vp_page_wrap(page, VALUE, VALUE + 5, vp_buf_text(&text));
    }
}

/* ---- text: what is here ---- */

static void holder_lines(const struct vp_page *page, const struct vp_fact_gpu *fact, bool verbose) {
    enum { SHOWN = 5 };
    uint32_t shown = verbose ? fact->holder_count : (uint32_t)vp_min(fact->holder_count, SHOWN);
    for (uint32_t i = 0; i < shown; i++) {
        const struct vp_fact_holder *h = &fact->holders[i];
        line(page, "", "%s (%" PRIu64 "): %s GiB%s", h->program ? h->program : "process", h->pid,
             gib(page, h->vram_bytes),
             h->gtt_bytes ? vp_arena_printf(page->out->arena, ", and %s GiB of the host's",
                                            gib(page, h->gtt_bytes))
                          : "");
    }
    if (shown < fact->holder_count)
        line(page, "", "and %" PRIu32 " more processes (-v)", fact->holder_count - shown);
}

static void total_lines(const struct vp_page *page, const struct vp_device_card *card,
                        bool verbose) {
    const struct vp_fact_gpu *fact = card->fact;
    const struct vp_device_budget *b = &card->budget;
    bool shared = b->apu && b->pool == VP_POOL_GTT;
    uint64_t used = shared ? fact->gtt_used_bytes : fact->vram_used_bytes;

    if (!b->known) {
        line(page, "total", "not told");
        return;
    }
    line(page, "total", "%s GiB (%" PRIu64 " bytes)%s, by %s", gib(page, b->total_bytes),
         b->total_bytes, b->devices > 1 ? " of each device" : "", b->total_by);
    if (b->devices > 1)
        line(page, "",
             "the card: %s GiB, listed as %" PRIu64 " devices; tools may show all of it on each",
             gib(page, fact->vram_total_bytes), b->devices);
    if (b->apu)
        line(page, "",
             "of the host's memory that the driver may map (GTT): %s GiB; set aside by the "
             "firmware: %s GiB; %s is used, never both",
             gib(page, fact->gtt_total_bytes), gib(page, fact->vram_total_bytes),
             shared ? "the first" : "the second");
    if (used)
        line(page, "in use", "%s GiB%s", gib(page, used), b->devices > 1 ? " of the card" : "");
    holder_lines(page, fact, verbose);
}

static void usable_line(const struct vp_page *page, const struct vp_device_card *card) {
    const struct vp_device_budget *b = &card->budget;
    struct vp_buf text = {.arena = page->out->arena};

    if (!b->known || !b->usable.high)
        return;
    vp_buf_printf(&text, "%s GiB", gib(page, b->usable.likely));
    if (b->usable.low != b->usable.high)
        vp_buf_printf(&text, " (%s to %s)", gib(page, b->usable.low), gib(page, b->usable.high));
    vp_buf_add(&text, ", its own context included");
    if (b->tables_bytes)
        vp_buf_printf(&text, "; %" PRIu64 " MiB are kept back for page tables",
                      vp_ceil_div(b->tables_bytes, 1 << MIB_SHIFT));
    if (b->apu && b->usable.low < b->usable.high)
        vp_buf_add(&text, "; no more than the host has left");
    line(page, "for a process", "%s", vp_buf_text(&text));
}

/* What would change an APU's total. */
static void limit_lines(const struct vp_page *page, const struct vp_device_facts *facts,
                        const struct vp_device_budget *b) {
    if (!b->apu)
        return;
    if (facts->ttm_pages_limit)
        line(page, "limit", "ttm.pages_limit=%" PRIu64 ": x 4096 = %" PRIu64 " bytes, %s GiB",
             facts->ttm_pages_limit, b->limit_bytes, gib(page, b->limit_bytes));
    if (facts->gttsize_mib)
        line(page, "", "amdgpu.gttsize=%" PRIu64 " MiB is set too", facts->gttsize_mib);
    if (b->pool == VP_POOL_VRAM)
        line(page, "to change it",
             "the carve-out, in the firmware's settings; with a small one ttm.pages_limit decides, "
             "and the host keeps what no GPU process takes");
    if (!facts->host_total_bytes || b->pool == VP_POOL_VRAM)
        return;
    uint64_t pages = facts->host_total_bytes / VP_PAGE_BYTES / 4 * 3;
    line(page, "to change it",
         "the kernel parameter ttm.pages_limit: three quarters of the host's %s GiB would be "
         "ttm.pages_limit=%" PRIu64 " (--what-if gtt=SIZE counts others)",
         gib(page, facts->host_total_bytes), pages);
}

static void here_lines(const struct vp_page *page, const struct vp_device_view *view,
                       const struct vp_device_card *card, bool verbose) {
    const struct vp_fact_gpu *fact = card->fact;

    total_lines(page, card, verbose);
    usable_line(page, card);
    limit_lines(page, view->facts, &card->budget);
    if (fact->partition)
        line(page, "partition", "%s%s%s%s%s", fact->partition, fact->memory_partition ? ", " : "",
             fact->memory_partition ? fact->memory_partition : "",
             fact->partitions ? "; can be " : "", fact->partitions ? fact->partitions : "");
    if (fact->smi_total_bytes && fact->vram_total_bytes &&
        fact->smi_total_bytes != fact->vram_total_bytes)
        line(page, "disagreement", "librocm_smi64 says %s GiB in total, the kernel %s GiB",
             gib(page, fact->smi_total_bytes), gib(page, fact->vram_total_bytes));
    if (fact->power_cap_mw)
        line(page, "power cap", "%" PRIu64 " W", fact->power_cap_mw / 1000);
    if (verbose && fact->clock_khz)
        line(page, "clock now", "%" PRIu64 " MHz", fact->clock_khz / 1000);
    if (verbose && fact->xgmi_hive)
        line(page, "xGMI group", "%s", fact->xgmi_hive);
    if (verbose && fact->visible_bytes)
        line(page, "processor sees", "%s GiB of its memory", gib(page, fact->visible_bytes));
}

/* ---- text: a profile, the system, what-ifs ---- */

static void profile_total(const struct vp_page *page, const struct vp_device_card *card) {
    const struct vp_gpu *gpu = gpu_of(card);
    const char *note = vp_node_text(vp_node_get(vp_node_get(card->profile, "unified"), "note"));

    if (gpu->runtime_mib)
        line(page, "total", "%s GiB, as the runtime reports it",
             gib(page, gpu->runtime_mib << MIB_SHIFT));
    else if (gpu->driver_mib)
        line(page, "total", "%s GiB%s", gib(page, gpu->driver_mib << MIB_SHIFT),
             gpu->gtt_ppb ? " by default" : " by the driver; the runtime's is not known");
    else
        line(page, "total", "a setting: see below");
    if (!gpu->gtt_ppb && vp_text_eq(gpu->vendor, "amd") && gpu->driver_mib)
        line(page, "for a process",
             "%s GiB on an idle card less what it holds itself: %" PRIu64
             " MiB are kept back for page tables",
             gib(page, vp_above(gpu->driver_mib << MIB_SHIFT,
                                vp_page_table_bytes(gpu->driver_mib << MIB_SHIFT))),
             vp_ceil_div(vp_page_table_bytes(gpu->driver_mib << MIB_SHIFT), 1 << MIB_SHIFT));
    if (note)
        line(page, "shared memory", "%s", note);
    if (gpu->bandwidth_gbs > 0)
        line(page, "bandwidth", "%s GB/s", vp_format_real(page->out->arena, gpu->bandwidth_gbs));
}

static void card_text(const struct vp_page *page, const struct vp_device_view *view,
                      const struct vp_device_card *card, bool verbose) {
    const struct vp_gpu *gpu = gpu_of(card);

    title(page, card);
    profile_lines(page, card);
    if (card->fact)
        here_lines(page, view, card, verbose);
    else
        profile_total(page, card);
    if (gpu)
        fp8_lines(page, gpu);
    if (gpu && (!card->fact || verbose))
        mode_lines(page, card);
}

static void system_line(const struct vp_page *page, const char *name, const char *value) {
    if (value)
        line(page, name, "%s", value);
}

static void system_text(const struct vp_page *page, const struct vp_device_facts *facts,
                        bool verbose) {
    vp_page_title(page, "System");
    system_line(page, "kernel", facts->kernel);
    system_line(page, "amdgpu", facts->amdgpu);
    system_line(page, "ROCm", facts->rocm);
    system_line(page, "NVIDIA driver", facts->nvidia);
    system_line(page, "HIP", facts->hip);
    system_line(page, "CUDA", facts->cuda);
    if (verbose) /* only a second witness */
        system_line(page, "ROCm SMI", facts->smi);
    if (facts->host_total_bytes)
        line(page, "host memory", "%s GiB, %s GiB of them free", gib(page, facts->host_total_bytes),
             gib(page, facts->host_available_bytes));
    if (facts->kfd_refused)
        line(page, "access", "/dev/kfd may not be opened by this user: it takes the group render");
}

static void what_if_text(const struct vp_page *page, const struct vp_what_if *w) {
    vp_page_title(page, w->given);
    line(page, "GTT", "%" PRIu64 " pages x 4096 = %" PRIu64 " bytes, %s GiB", w->pages, w->bytes,
         gib(page, w->bytes));
    line(page, "parameter", "%s%s", w->parameter,
         w->alone ? "; by itself it did not change what HIP reports: set ttm.pages_limit" : "");
    line(page, "in a scenario", "--set hardware.gtt=%" PRIu64, w->bytes);
}

void vp_device_text(const struct vp_page *page, const struct vp_device_view *view, bool verbose) {
    for (uint32_t i = 0; i < view->card_count; i++) {
        vp_buf_add(page->out, i ? "\n" : "");
        card_text(page, view, &view->cards[i], verbose);
    }
    for (uint32_t i = 0; i < view->what_if_count; i++) {
        vp_buf_add(page->out, i || view->card_count ? "\n" : "");
        what_if_text(page, &view->what_ifs[i]);
    }
    if (view->facts) {
        vp_buf_add(page->out, "\n");
        system_text(page, view->facts, verbose);
    }
}

/* ---- JSON ---- */

static void number(struct vp_json *json, const char *key, uint64_t value) {
    vp_json_key(json, key);
    if (value)
        vp_json_u64(json, value);
    else
        vp_json_null(json);
}

static void fact_json(struct vp_json *json, const struct vp_fact_gpu *fact) {
#define GPU_NUMBER(member) number(json, #member, fact->member);
#define GPU_TEXT(member) vp_json_key_text(json, #member, fact->member);
#include "planner/model/device_facts.def"
    vp_json_key(json, "holders");
    vp_json_list(json);
    for (uint32_t i = 0; i < fact->holder_count; i++) {
        const struct vp_fact_holder *h = &fact->holders[i];
        vp_json_map_inline(json);
#define HOLDER_NUMBER(member) number(json, #member, h->member);
#define HOLDER_TEXT(member) vp_json_key_text(json, #member, h->member);
#include "planner/model/device_facts.def"
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void budget_json(struct vp_json *json, const struct vp_device_budget *b) {
    vp_json_key(json, "budget");
    vp_json_map(json);
    number(json, "devices", b->devices);
    number(json, "total_bytes", b->total_bytes);
    vp_json_key_text(json, "total_by", b->known ? b->total_by : NULL);
    number(json, "page_table_bytes", b->tables_bytes);
    vp_json_key_amount(json, "usable_bytes", b->usable);
    vp_json_key_text(json, "pool",
                     !b->known                          ? NULL
                     : b->apu && b->pool == VP_POOL_GTT ? "gtt"
                                                        : "vram");
    number(json, "limit_bytes", b->limit_bytes);
    vp_json_end(json, '}');
}

static void fp8_json(struct vp_json *json, const struct vp_gpu *gpu) {
    vp_json_key(json, "fp8");
    if (!gpu) {
        vp_json_null(json);
        return;
    }
    vp_json_map_inline(json);
    vp_json_key_text(json, "support", fp8_support(gpu));
    vp_json_key_text(json, "kind", fp8_kind(gpu));
    vp_json_key_text(json, "formats", gpu->fp8_formats);
    vp_json_end(json, '}');
}

static void modes_json(struct vp_json *json, const struct vp_device_card *card) {
    const struct vp_node *modes = modes_of(card);

    vp_json_key(json, "partition_modes");
    vp_json_list(json);
    for (uint32_t i = 0; modes && i < modes->count; i++) {
        const struct vp_node *mode = modes->items[i], *nps = vp_node_get(mode, "nps");
        uint64_t devices = mode_number(mode, "devices");
        vp_json_map(json);
        vp_json_key_text(json, "mode", vp_node_text(vp_node_get(mode, "mode")));
        number(json, "devices", devices);
        number(json, "device_bytes", mode_number(mode, "memory_mib") << MIB_SHIFT);
        number(json, "compute_units", mode_number(mode, "cus"));
        vp_json_key(json, "memory_domains");
        vp_json_list(json);
        for (uint32_t k = 0; nps && nps->kind == VP_NODE_LIST && k < nps->count; k++) {
            struct domain d;
            if (!domain_of(&d, gpu_of(card), nps->items[k], devices))
                continue;
            vp_json_map_inline(json);
            vp_json_key_text(json, "mode", d.name);
            number(json, "bytes", d.bytes);
            number(json, "devices", d.devices);
            vp_json_end(json, '}');
        }
        vp_json_end(json, ']');
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void card_json(struct vp_json *json, const struct vp_device_card *card) {
    const struct vp_gpu *gpu = gpu_of(card);

    vp_json_map(json);
    vp_json_key(json, "profiles");
    vp_json_list_inline(json);
    for (uint32_t i = 0; i < card->profiles.count; i++)
        vp_json_text(json, card->profiles.items[i]->id);
    vp_json_end(json, ']');
    if (card->fact) {
        fact_json(json, card->fact);
        budget_json(json, &card->budget);
    } else {
        vp_json_key_text(json, "name", gpu->name);
        vp_json_key_text(json, "vendor", gpu->vendor);
        vp_json_key_text(json, "arch", gpu->arch);
        number(json, "runtime_bytes", gpu->runtime_mib << MIB_SHIFT);
        number(json, "driver_bytes", gpu->driver_mib << MIB_SHIFT);
        number(json, "compute_units", gpu->compute_units);
    }
    fp8_json(json, gpu);
    modes_json(json, card);
    vp_json_end(json, '}');
}

static void what_if_json(struct vp_json *json, const struct vp_what_if *w) {
    vp_json_map(json);
    vp_json_key_text(json, "given", w->given);
    number(json, "pages", w->pages);
    number(json, "gtt_bytes", w->bytes);
    vp_json_key_text(json, "parameter", w->parameter);
    vp_json_end(json, '}');
}

static void system_json(struct vp_json *json, const struct vp_device_facts *facts) {
    vp_json_key(json, "system");
    if (!facts) {
        vp_json_null(json);
        return;
    }
    vp_json_map(json);
#define NUMBER(member) number(json, #member, facts->member);
#define TEXT(member) vp_json_key_text(json, #member, facts->member);
#include "planner/model/device_facts.def"
    vp_json_end(json, '}');
}

void vp_device_json(struct vp_buf *out, const struct vp_device_view *view,
                    const struct vp_diags *diags) {
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    vp_json_key_text(&json, "schema", "vramplan.device/1");
    system_json(&json, view->facts);
    vp_json_key(&json, "gpus");
    vp_json_list(&json);
    for (uint32_t i = 0; i < view->card_count; i++)
        card_json(&json, &view->cards[i]);
    vp_json_end(&json, ']');
    vp_json_key(&json, "what_if");
    vp_json_list(&json);
    for (uint32_t i = 0; i < view->what_if_count; i++)
        what_if_json(&json, &view->what_ifs[i]);
    vp_json_end(&json, ']');
    vp_json_key(&json, "diagnostics");
    vp_report_json_diagnostics(&json, diags);
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}
