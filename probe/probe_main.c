/* vramplan-probe: measures one device and writes what it found as CSV files. `vramplan probe` runs
 * it and makes a profile of that; by itself it needs nothing but a C library. Drivers are loaded in
 * a process of its own (child.h). Standard output is for a program that shows progress
 * (--progress), standard error for people. Exit codes as in vramplan: 0, 2 the command line, 4 the
 * device. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/facts.h"
#include "probe/session.h"

enum { EXIT_INPUT = 2, EXIT_DEVICE = 4 };

struct options {
    const char *backend, *device, *csv;
    struct vp_bench_options bench;
    bool list, facts, progress;
    double limit_s;
};

static const char HELP[] =
    "usage: vramplan-probe [OPTION]...\n"
    "Measures a GPU, or the processor, and writes the figures as CSV files.\n\n"
    "  --backend hip|cuda|cpu|fake   what to measure; default: the first GPU found\n"
    "  --gpu N|NAME    which device, by number or by part of its name\n"
    "  --csv DIR       where the files go (default: vramplan-samples)\n"
    "  --quick         fewer shapes, fewer repeats\n"
    "  --only KIND,... only that: see --list\n"
    "  --list          what would be measured\n"
    "  --facts         nothing is measured: what the system says about its GPUs, as JSON\n"
    "  --limit S       seconds that one figure may take before the device counts as hung (60)\n"
    "  --progress      lines for a program on standard output; to be the first option\n"
    "  --help, --version\n";

/* Returns the code. */
static int fail(const struct options *options, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int fail(const struct options *options, int code, const char *format, ...) {
    va_list arguments;
    FILE *f = options->progress ? stdout : stderr;

    fputs(options->progress ? "error " : "error: ", f);
    va_start(arguments, format);
    vfprintf(f, format, arguments);
    va_end(arguments);
    fputc('\n', f);
    return code;
}

/* ---- the command line ---- */

/* 0, or the exit code. */
static int read_only(struct options *out, char *names) {
    for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
        enum vp_bench_kind kind = 0;
        while (kind < VP_BENCH_KINDS && strcmp(vp_bench_kind_name(kind), name) != 0)
            kind++;
        if (kind == VP_BENCH_KINDS) {
            char all[256] = "";
            for (kind = 0; kind < VP_BENCH_KINDS; kind++)
                snprintf(all + strlen(all), sizeof all - strlen(all), " %s",
                         vp_bench_kind_name(kind));
            return fail(out, EXIT_INPUT, "nothing is called \"%s\"; --only takes%s", name, all);
        }
        out->bench.only |= 1U << kind;
    }
    return out->bench.only ? 0 : fail(out, EXIT_INPUT, "--only names nothing");
}

static int read_limit(struct options *out, const char *text) {
    char *end;
    out->limit_s = strtod(text, &end);
    if (*text && !*end && out->limit_s > 0 && out->limit_s < 1e6)
        return 0;
    return fail(out, EXIT_INPUT, "--limit takes a number of seconds, not \"%s\"", text);
}

/* -1: go on; else the exit code. */
static int read_options(struct options *out, int argc, char **argv) {
    enum { BACKEND, GPU, CSV, QUICK, ONLY, LIST, FACTS, LIMIT, PROGRESS, HELP_, VERSION };
    static const struct option OPTIONS[] = {
        {"backend", required_argument, NULL, BACKEND}, {"gpu", required_argument, NULL, GPU},
        {"csv", required_argument, NULL, CSV},         {"quick", no_argument, NULL, QUICK},
        {"only", required_argument, NULL, ONLY},       {"list", no_argument, NULL, LIST},
        {"facts", no_argument, NULL, FACTS},           {"limit", required_argument, NULL, LIMIT},
        {"progress", no_argument, NULL, PROGRESS},     {"help", no_argument, NULL, HELP_},
        {"version", no_argument, NULL, VERSION},       {NULL, 0, NULL, 0}};
    int option, code = 0;

    *out = (struct options){.csv = "vramplan-samples", .limit_s = 60};
    while (!code && (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1)
        switch (option) {
        case BACKEND:
            out->backend = optarg;
            break;
        case GPU:
            out->device = optarg;
            break;
        case CSV:
            out->csv = optarg;
            break;
        case QUICK:
            out->bench.quick = true;
            break;
        case ONLY:
            code = read_only(out, optarg);
            break;
        case LIST:
            out->list = true;
            break;
        case FACTS:
            out->facts = true;
            break;
        case LIMIT:
            code = read_limit(out, optarg);
            break;
        case PROGRESS:
            out->progress = true;
            break;
        case HELP_:
            fputs(HELP, stdout);
            return 0;
        case VERSION:
            puts("vramplan-probe " VP_VERSION);
            return 0;
        default:
            return EXIT_INPUT;
        }
    if (code)
        return code;
    if (optind < argc)
        return fail(out, EXIT_INPUT, "unexpected word \"%s\"", argv[optind]);
    if (out->backend && !vp_dev_backend_find(out->backend))
        return fail(out, EXIT_INPUT,
                    "there is no back end \"%s\"; --backend takes hip, cuda, cpu or fake",
                    out->backend);
    return -1;
}

/* ---- what it shows ---- */

/* One line per event: a word, then its figures and text. */
static void show_program(const struct vp_session *s, enum vp_session_event event,
                         const char *text) {
    static const char *const WORDS[] = {"device", "begin",    "sample",
                                        "noisy",  "left-out", "trouble"};

    if (event == VP_SESSION_BEGIN)
        printf("begin %u %u %.1f %s\n", s->item, s->list->count, vp_session_left_s(s), text);
    else
        printf("%s %s\n", WORDS[event], text);
    fflush(stdout);
}

static void show_people(const struct vp_session *s, enum vp_session_event event, const char *text) {
    switch (event) {
    case VP_SESSION_DEVICE:
        fprintf(stderr, "%s, %s, %s\n", text, s->info.arch, s->info.kernels);
        break;
    case VP_SESSION_SAMPLE:
        fprintf(stderr, "[%3u/%u] %s\n", s->item + 1, s->list->count, text);
        break;
    case VP_SESSION_NOISY:
        fprintf(stderr, "  note: %s\n", text);
        break;
    case VP_SESSION_LEFT_OUT:
        fprintf(stderr, "  left out: %s\n", text);
        break;
    case VP_SESSION_TROUBLE:
        fprintf(stderr, "  warning: %s\n", text);
        break;
    case VP_SESSION_BEGIN:
        break;
    }
}

static int print_list(const struct vp_bench_list *list) {
    enum vp_bench_kind last = VP_BENCH_KINDS;

    for (uint32_t i = 0; i < list->count; i++) {
        char text[160];
        enum vp_bench_kind kind = list->item[i].kind;
        if (kind != last)
            printf("%s: %s\n", vp_bench_kind_name(kind), vp_bench_kind_meaning(kind));
        last = kind;
        vp_bench_describe(text, sizeof text, &list->item[i]);
        printf("    %s\n", text);
    }
    return ferror(stdout) ? EXIT_DEVICE : 0;
}

static int print_facts(struct vp_arena *arena, double limit_s) {
    struct vp_diags diags = {.arena = arena};
    struct vp_ctx ctx = {.arena = arena, .diags = &diags, .io = &vp_io_posix};
    struct vp_buf out = {.arena = arena};
    struct vp_device_facts facts;

    vp_facts_collect(&ctx, &facts, limit_s);
    vp_facts_json(&out, &facts);
    fputs(vp_buf_text(&out), stdout);
    vp_arena_free(arena);
    return fflush(stdout) ? EXIT_DEVICE : 0;
}

/* ---- the run ---- */

/* Opens nothing itself: a device that is not there is seen by the measuring process. */
static bool run_backend(struct vp_session *s, const struct options *options, const char *backend) {
    *s = (struct vp_session){.backend = vp_dev_backend_find(backend),
                             .list = s->list,
                             .method = s->method,
                             .device = options->device,
                             .limit_s = options->limit_s,
                             .files = s->files,
                             .show = options->progress ? show_program : show_people};
    return vp_session_run(s);
}

/* Which GPUs there are shows when their libraries are loaded. Reasons of both are kept. */
static bool run_any(struct vp_session *s, const struct options *options) {
    char first[sizeof s->why];

    if (options->backend)
        return run_backend(s, options, options->backend);
    bool good = run_backend(s, options, "hip");
    if (good || (s->status != VP_DEV_NO_LIBRARY && s->status != VP_DEV_NO_DEVICE))
        return good;
    snprintf(first, sizeof first, "%s", s->why);
    good = run_backend(s, options, "cuda");
    if (!good && s->status != VP_DEV_OK) {
        char second[sizeof s->why];
        snprintf(second, sizeof second, "%s", s->why);
        snprintf(s->why, sizeof s->why, "AMD: %.200s; NVIDIA: %.200s", first, second);
    }
    return good;
}

static int finish(const struct options *options, const struct vp_session *s, bool good) {
    if (s->write_failed)
        return fail(options, EXIT_DEVICE, "writing samples failed: %s", strerror(errno));
    if (!good && s->status == VP_DEV_OK)
        return fail(options, EXIT_DEVICE, "nothing could be measured");
    if (!good)
        return fail(options, EXIT_DEVICE, "%s: %s", vp_dev_status_name(s->status), s->why);
    if (options->progress)
        printf("done %u %u %u %u\n", s->samples, s->noisy, s->left_out, s->troubles);
    else
        fprintf(stderr, "%u figures, %u of them noisy, %u left out; in %s\n", s->samples, s->noisy,
                s->left_out + s->troubles, options->csv);
    return 0;
}

int main(int argc, char **argv) {
    static struct vp_bench_list list;
    struct vp_arena arena = {0};
    struct options options;
    int code = read_options(&options, argc, argv);

    if (code >= 0)
        return code;
    if (options.facts)
        return print_facts(&arena, options.limit_s);
    options.bench.host = options.backend && vp_dev_backend_find(options.backend)->host;
    vp_bench_list(&list, &options.bench);
    if (options.list)
        return print_list(&list);
    struct vp_session session = {.list = &list,
                                 .method = options.bench.quick ? &vp_method_quick : &vp_method_full,
                                 .files = vp_sample_files_open(&arena, options.csv)};
    if (!session.files) {
        code = fail(&options, EXIT_DEVICE, "%s: %s", options.csv, strerror(errno));
    } else {
        bool good = run_any(&session, &options);
        code = finish(&options, &session, good);
        if (!vp_sample_files_close(session.files) && code == 0)
            code = fail(&options, EXIT_DEVICE, "writing samples failed: %s", strerror(errno));
    }
    vp_arena_free(&arena);
    return code;
}
