#include "planner/timeline/allocator_settings.h"

#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"

enum { MIB = 1 << 20, MAX_MB = 1 << 30, LEAST_LARGE_MB = 11, LEAST_ROUNDING_MB = 20 };

enum treatment { READ, IGNORED };

static const struct known_key {
    const char *name;
    enum treatment treatment;
} KEYS[] = {
#define X(name, treatment) {name, treatment},
#include "planner/timeline/allocator_keys.def"
#undef X
};

/* The text without spaces, cut into words and the signs , : [ ] */
struct reader {
    struct vp_arena *arena;
    struct vp_allocator_settings *out;
    struct vp_allocator_notes *notes;
    const char *at;
    const char *key; /* under which faults are noted */
    bool failed;
};

struct vp_allocator_settings vp_allocator_defaults(void) {
    return (struct vp_allocator_settings){
        .max_split_bytes = VP_NO_SPLIT_LIMIT,
        .max_rounding_bytes = 20 * MIB,
        .large_segment_bytes = 20 * MIB,
    };
}

static void note(struct reader *r, enum vp_allocator_fault fault, const char *text) {
    if (fault != VP_ALLOC_NO_EFFECT)
        r->failed = true;
    if (r->notes->count < VP_ALLOCATOR_NOTES)
        r->notes->item[r->notes->count++] = (struct vp_allocator_note){fault, r->key, text};
}

static void skip_spaces(struct reader *r) { r->at += strspn(r->at, " \t\r\n"); }

/* The next character, if it is this sign. */
static bool sign(struct reader *r, char c) {
    skip_spaces(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* Everything up to the next sign, without the spaces at its end. */
static char *word(struct reader *r) {
    skip_spaces(r);
    size_t n = strcspn(r->at, ",:[]");
    const char *begin = r->at;
    r->at += n;
    while (n > 0 && strchr(" \t\r\n", begin[n - 1]))
        n--;
    return vp_arena_text(r->arena, begin, n);
}

/* Leaves a value that was not read, a list included. */
static void skip_value(struct reader *r) {
    size_t depth = 0;
    for (; *r->at && (depth > 0 || *r->at != ','); r->at++) {
        if (*r->at == '[')
            depth++;
        else if (*r->at == ']' && depth > 0)
            depth--;
    }
}

static void read_mb(struct reader *r, uint64_t *out, const char *expected, uint64_t least) {
    uint64_t mb;
    if (vp_parse_u64(&mb, word(r)) && mb >= least)
        *out = vp_min(mb, MAX_MB) * MIB;
    else
        note(r, VP_ALLOC_BAD_VALUE, expected);
}

/* A decimal number in (0, 1], or [0, 1) when `below`, as parts per billion; digits after the ninth
 * are left out. */
static bool parse_share(uint64_t *out, const char *text, bool below) {
    uint64_t value = 0, digit = VP_BILLION;

    if (*text == '0' || *text == '1')
        value = (uint64_t)(*text++ - '0') * VP_BILLION;
    else if (*text != '.')
        return false;
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9'; text++) {
            digit /= 10;
            value += (uint64_t)(*text - '0') * digit;
        }
    }
    *out = value;
    return *text == '\0' && value > 0 && (below ? value < VP_BILLION : value <= VP_BILLION);
}

static void read_share(struct reader *r, uint64_t *out, const char *expected, bool below) {
    uint64_t ppb;
    if (parse_share(&ppb, word(r), below))
        *out = ppb;
    else
        note(r, VP_ALLOC_BAD_VALUE, expected);
}

static bool power_of_two(uint64_t v) { return v > 0 && (v & (v - 1)) == 0; }

static uint32_t log2_floor(uint64_t v) { return 63u - (uint32_t)__builtin_clzll(v); }

static void fill(uint32_t *divisions, uint32_t from, uint32_t to, uint64_t value) {
    for (uint32_t i = from; i < to; i++)
        divisions[i] = (uint32_t)value;
}

/* One "256:4" or ">:4" of a list. The first limit also stands for everything smaller; what lies
 * between two limits and is not named is not rounded; ">" is what lies above the last one. */
static bool read_division(struct reader *r, uint32_t *last, bool *first) {
    uint32_t *divisions = r->out->divisions;
    uint64_t limit = 0, value;
    const char *name = word(r);
    bool above = strcmp(name, ">") == 0;

    if (!above && (!vp_parse_u64(&limit, name) || !power_of_two(limit)))
        return false;
    if (!sign(r, ':') || !vp_parse_u64(&value, word(r)) || value > MAX_MB ||
        (value > 0 && !power_of_two(value)))
        return false;
    if (above) {
        fill(divisions, *last + 1, VP_ROUNDUP_INTERVALS, value);
        return true;
    }
    *last = (uint32_t)vp_min(log2_floor(limit), VP_ROUNDUP_INTERVALS - 1);
    if (*first)
        fill(divisions, 0, *last, value);
    *first = false;
    divisions[*last] = (uint32_t)value;
    return true;
}

static void read_divisions(struct reader *r) {
    const char *expected =
        "powers of two: one number of steps, or a list such as [256:1,512:2,>:4] of MiB and steps";
    uint32_t last = 0;
    uint64_t value;
    bool first = true;

    if (!sign(r, '[')) {
        if (vp_parse_u64(&value, word(r)) && power_of_two(value) && value <= MAX_MB)
            fill(r->out->divisions, 0, VP_ROUNDUP_INTERVALS, value);
        else
            note(r, VP_ALLOC_BAD_VALUE, expected);
        return;
    }
    fill(r->out->divisions, 0, VP_ROUNDUP_INTERVALS, 0);
    do {
        if (!read_division(r, &last, &first)) {
            note(r, VP_ALLOC_BAD_VALUE, expected);
            return;
        }
    } while (sign(r, ','));
    if (!sign(r, ']'))
        note(r, VP_ALLOC_BAD_VALUE, expected);
}

static void read_expandable(struct reader *r, bool works) {
    const char *value = word(r);
    bool on = strcmp(value, "True") == 0;

    if (!on && strcmp(value, "False") != 0)
        note(r, VP_ALLOC_BAD_VALUE, "True or False is expected");
    else if (on && !works)
        note(r, VP_ALLOC_NO_EFFECT, "this build of PyTorch has no expandable segments");
    else
        r->out->expandable = on;
}

static void read_backend(struct reader *r) {
    const char *value = word(r);

    if (strcmp(value, "cudaMallocAsync") == 0 || strcmp(value, "hipMallocAsync") == 0)
        note(r, VP_ALLOC_UNMODELLED, "only the native caching allocator is modelled");
    else if (strcmp(value, "native") != 0)
        note(r, VP_ALLOC_BAD_VALUE, "native is expected");
}

static void read_value(struct reader *r, bool expandable_works) {
    struct vp_allocator_settings *out = r->out;

    if (strcmp(r->key, "max_split_size_mb") == 0)
        read_mb(r, &out->max_split_bytes, "a number of MiB is expected", 1);
    else if (strcmp(r->key, "max_non_split_rounding_mb") == 0)
        read_mb(r, &out->max_rounding_bytes, "at least 20 is expected", LEAST_ROUNDING_MB);
    else if (strcmp(r->key, "large_segment_size_mb") == 0)
        read_mb(r, &out->large_segment_bytes, "more than 10 is expected", LEAST_LARGE_MB);
    else if (strcmp(r->key, "garbage_collection_threshold") == 0)
        read_share(r, &out->collect_ppb, "a number above 0 and below 1 is expected", true);
    else if (strcmp(r->key, "per_process_memory_fraction") == 0)
        read_share(r, &out->fraction_ppb, "a number above 0 and up to 1 is expected", false);
    else if (strcmp(r->key, "roundup_power2_divisions") == 0)
        read_divisions(r);
    else if (strcmp(r->key, "expandable_segments") == 0)
        read_expandable(r, expandable_works);
    else
        read_backend(r);
}

static const struct known_key *find_key(const char *name) {
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (strcmp(KEYS[i].name, name) == 0)
            return &KEYS[i];
    return NULL;
}

static void read_pair(struct reader *r, bool expandable_works) {
    r->key = word(r);
    const struct known_key *known = find_key(r->key);
    bool has_value = sign(r, ':');
    const char *value = r->at;

    if (!known) {
        note(r, VP_ALLOC_UNKNOWN, "PyTorch has no such allocator setting");
    } else if (!has_value) {
        note(r, VP_ALLOC_BAD_VALUE, "key:value is expected");
    } else if (known->treatment == IGNORED) {
        note(r, VP_ALLOC_NO_EFFECT, "moves no bytes of the device");
    } else {
        uint32_t before = r->notes->count;
        read_value(r, expandable_works);
        skip_spaces(r);
        if (*r->at && *r->at != ',' && r->notes->count == before)
            note(r, VP_ALLOC_BAD_VALUE, "a comma is expected after the value");
    }
    r->at = value; /* a value that could not be read ends at the same comma */
    skip_value(r);
}

bool vp_allocator_parse(struct vp_arena *arena, struct vp_allocator_settings *out,
                        struct vp_allocator_notes *notes, const char *text, bool expandable_works) {
    struct reader r = {.arena = arena, .out = out, .notes = notes, .at = text};

    notes->count = 0;
    skip_spaces(&r);
    while (*r.at) {
        read_pair(&r, expandable_works);
        if (*r.at)
            r.at++; /* the comma */
        skip_spaces(&r);
    }
    r.key = "max_split_size_mb";
    if (out->max_split_bytes < out->large_segment_bytes) /* in whatever order they stand */
        note(&r, VP_ALLOC_BAD_VALUE, "at least large_segment_size_mb (20) is expected");
    return !r.failed;
}
