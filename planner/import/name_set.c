#include "planner/import/name_set.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/import/regex.h"

struct vp_name_pattern {
    const struct vp_regex *regex; /* NULL: a glob */
    const char *glob;
    size_t literal; /* characters before the first wildcard */
    bool canonical; /* the glob is in canonical form and tried against that only */
    bool inside;    /* it names modules inside what it matches, too */
    bool wrapped;   /* it speaks of a wrapping model, so the module's names there are tried */
    bool anywhere;  /* it begins with any text: what matches a form matches a longer one, too */
};

/* ---- canonical names ---- */

static const char *const ROOTS[] = {"model", "language_model", "backbone", "transformer"};

static const struct {
    const char *word, *canonical;
} WORDS[] = {
    {"ffn", "mlp"},        {"feed_forward", "mlp"},         {"block_sparse_moe", "mlp"},
    {"attn", "self_attn"}, {"self_attention", "self_attn"}, {"attention", "self_attn"},
    {"h", "layers"},
};

static const struct {
    const char *part, *fused;
} FUSED[] = {
    {"q_proj", "qkv_proj"},
    {"k_proj", "qkv_proj"},
    {"v_proj", "qkv_proj"},
    {"gate_proj", "gate_up_proj"},
    {"up_proj", "gate_up_proj"},
    {"q_a_proj", "fused_qkv_a_proj"},
    {"kv_a_proj_with_mqa", "fused_qkv_a_proj"},
};

static bool is_part(const char *text, size_t n, const char *part) {
    return *text == *part && strlen(part) == n && memcmp(text, part, n) == 0;
}

/* Characters up to the next dot or the end. */
static size_t part_length(const char *name) {
    const char *dot = strchr(name, '.');
    return dot ? (size_t)(dot - name) : strlen(name);
}

/* The name after the prefixes of wrapping models; never empty, and never only a pattern. */
static const char *skip_roots(const char *name) {
    for (size_t i = 0; i < sizeof ROOTS / sizeof *ROOTS; i++) {
        size_t n = *name == *ROOTS[i] ? strlen(ROOTS[i]) : 0;
        if (n > 0 && strncmp(name, ROOTS[i], n) == 0 && name[n] == '.' && name[n + 1] &&
            !strchr("*?[", name[n + 1])) {
            name += n + 1;
            i = (size_t)-1; /* from the first root again */
        }
    }
    return name;
}

static const char *canonical_word(const char *part, size_t n) {
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (is_part(part, n, WORDS[i].word))
            return WORDS[i].canonical;
    return NULL;
}

static bool append(char *out, size_t size, size_t *used, const char *text, size_t n) {
    if (n >= size - *used)
        return false;
    memcpy(out + *used, text, n);
    *used += n;
    out[*used] = '\0';
    return true;
}

/* Writes the canonical form; false when it does not fit. Parts of a glob that end in "*" count as
 * the words before it. */
static bool canonicalise(char *out, size_t size, const char *name) {
    size_t used = 0;
    bool ok = append(out, size, &used, "", 0);
    for (const char *p = skip_roots(name); ok && *p;) {
        size_t n = part_length(p), stem = n > 0 && p[n - 1] == '*' ? n - 1 : n;
        const char *word = canonical_word(p, stem);
        size_t dot = (used || n) && p[n] && p[n + 1]; /* none at either end */
        ok = word ? append(out, size, &used, word, strlen(word)) &&
                        append(out, size, &used, p + stem, n - stem + dot)
                  : append(out, size, &used, p, n + dot);
        p += n + (p[n] != '\0');
    }
    return ok;
}

static bool add_form(struct vp_module_name *out, const char *prefix, const char *name) {
    char *form = out->forms[out->form_count];
    size_t n = strlen(prefix), m = strlen(name);
    if (n + m >= VP_MODULE_NAME)
        return false;
    memcpy(form, prefix, n + 1);
    memcpy(form + n, name, m + 1);
    out->form_count++;
    return true;
}

static void set_fused(struct vp_module_name *out) {
    const char *last = strrchr(out->canonical, '.');
    for (size_t i = 0; last && i < sizeof FUSED / sizeof *FUSED; i++) {
        if (last[1] != *FUSED[i].part || strcmp(last + 1, FUSED[i].part) != 0)
            continue;
        size_t n = (size_t)(last + 1 - out->canonical), m = strlen(FUSED[i].fused);
        if (n + m < VP_MODULE_NAME) {
            memcpy(out->fused, out->canonical, n);
            memcpy(out->fused + n, FUSED[i].fused, m + 1);
        }
    }
}

/* Patterns are written in the family's words, which the caller has used, or in canonical ones. */
bool vp_module_name(struct vp_module_name *out, const char *module) {
    const char *own = skip_roots(module);
    out->form_count = 0;
    out->fused[0] = '\0';
    if (!canonicalise(out->canonical, sizeof out->canonical, own))
        return false;
    out->length = strlen(out->canonical);
    set_fused(out);
    const char *names[] = {out->canonical, own};
    int name_count = strcmp(own, out->canonical) == 0 ? 1 : 2;
    bool head = vp_text_starts(own, "lm_head"); /* it stands beside "model" */
    bool ok = true;
    for (int i = 0; i < name_count; i++)
        ok = ok && add_form(out, head ? "" : "model.", names[i]);
    out->longest_forms = out->form_count;
    for (int i = 0; i < name_count && !head; i++)
        ok = ok && add_form(out, "", names[i]);
    return ok;
}

/* ---- building ---- */

static void add_name(struct vp_arena *arena, struct vp_name_set *set, const char *name) {
    if (set->name_count == set->name_capacity) {
        size_t capacity = set->name_capacity ? set->name_capacity * 2 : 16;
        const char **names = VP_NEW_ARRAY(arena, capacity, const char *);
        if (set->name_count)
            memcpy(names, set->names, set->name_count * sizeof *names);
        set->names = names;
        set->name_capacity = capacity;
    }
    set->names[set->name_count++] = name;
    uint32_t parts = 1;
    for (const char *p = name; *p && parts < 31; p++)
        parts += *p == '.';
    set->parts[(unsigned char)*name] |= UINT32_C(1) << parts;
}

static void add_pattern(struct vp_arena *arena, struct vp_name_set *set,
                        struct vp_name_pattern pattern) {
    if (set->pattern_count == set->pattern_capacity) {
        size_t capacity = set->pattern_capacity ? set->pattern_capacity * 2 : 16;
        struct vp_name_pattern *patterns = VP_NEW_ARRAY(arena, capacity, struct vp_name_pattern);
        if (set->pattern_count)
            memcpy(patterns, set->patterns, set->pattern_count * sizeof *patterns);
        set->patterns = patterns;
        set->pattern_capacity = capacity;
    }
    set->patterns[set->pattern_count++] = pattern;
}

static bool names_wrapper(const char *pattern) { return strstr(pattern, "language_model") != NULL; }

/* Canonical copy of an entry, which may be longer than any module's name. */
static const char *canonical_copy(struct vp_arena *arena, const char *entry) {
    size_t size =
        strlen(entry) * 2 + sizeof "self_attn"; /* no word grows to more than its triple */
    char *out;
    do {
        size *= 2;
        out = vp_arena_alloc(arena, size);
    } while (!canonicalise(out, size, entry));
    return out;
}

/* fnmatch's [...] is that of regular expressions, with "!" for "^". */
static const char *glob_to_regex(struct vp_arena *arena, const char *glob) {
    struct vp_buf buf = {.arena = arena};
    for (const char *p = glob; *p; p++) {
        if (*p == '*')
            vp_buf_add(&buf, ".*");
        else if (*p == '?')
            vp_buf_add(&buf, ".");
        else if (*p == '[' && p[1] == '!')
            vp_buf_add(&buf, "[^"), p++;
        else if (strchr("\\.+^$(){}|", *p))
            vp_buf_printf(&buf, "\\%c", *p);
        else
            vp_buf_add_n(&buf, p, 1);
    }
    vp_buf_add(&buf, "(\\.|$)"); /* the module, or what is inside it */
    return vp_buf_text(&buf);
}

/* Most regular expressions in real checkpoints are globs in disguise (".*self_attn.*",
 * "model\.layers\.0\..*"), and a glob is matched much faster. NULL: not one of them. */
static const char *regex_to_glob(struct vp_arena *arena, const char *pattern) {
    struct vp_buf buf = {.arena = arena};
    bool end = false;
    for (const char *p = pattern + (*pattern == '^'); *p && !end; p++) {
        if (p[0] == '.' && p[1] == '*')
            vp_buf_add(&buf, "*"), p++;
        else if (p[0] == '\\' && p[1] == '.')
            vp_buf_add(&buf, "."), p++;
        else if (p[0] == '$' && p[1] == '\0')
            end = true;
        else if (strchr("*+?[](){}|^$\\", *p) || strchr("*+?{", p[1] ? p[1] : ' '))
            return NULL;
        else
            vp_buf_add_n(&buf, *p == '.' ? "?" : p, 1);
    }
    if (!end)
        vp_buf_add(&buf, "*");
    return vp_buf_text(&buf);
}

/* ".*", and then neither an alternative to it ("a|b" outside parentheses) nor anything that could
 * ask what it stands for. What is not surely so gets "no", which is only slower. */
static bool begins_with_any_text(const char *pattern) {
    int depth = 0;
    if (!vp_text_starts(pattern, ".*") || pattern[2] == '+')
        return false;
    for (const char *p = pattern; *p; p++) {
        bool special = *p == '[' || *p == '^' || (*p == '(' && strchr("?*", p[1]));
        bool escape = *p == '\\' && strchr("._-/", p[1]);
        if (special || (*p == '\\' && !escape) || (*p == '|' && depth == 0))
            return false;
        depth += (*p == '(') - (*p == ')');
        p += escape && p[1];
    }
    return true;
}

bool vp_name_set_add_regex(struct vp_arena *arena, struct vp_name_set *set, const char **why,
                           const char *pattern) {
    struct vp_name_pattern entry = {.wrapped = names_wrapper(pattern)};
    *why = NULL;
    entry.glob = regex_to_glob(arena, pattern);
    entry.anywhere = entry.glob ? *entry.glob == '*' : begins_with_any_text(pattern);
    if (!entry.glob && !vp_regex_compile(arena, &entry.regex, why, pattern))
        return false;
    add_pattern(arena, set, entry);
    return true;
}

static bool add_glob(struct vp_arena *arena, struct vp_name_set *set, const char **why,
                     const char *glob) {
    if (strchr(glob, '['))
        return vp_name_set_add_regex(arena, set, why, glob_to_regex(arena, glob));
    const char *canonical = canonical_copy(arena, glob);
    struct vp_name_pattern entry = {.glob = canonical, .wrapped = names_wrapper(canonical)};
    entry.inside = !vp_text_ends(canonical, "*");
    entry.anywhere = *canonical == '*';
    entry.literal = strcspn(canonical, "*?");
    /* A leading wildcard may stand for a prefix that the canonical form has not. */
    entry.canonical = !strchr("*?", *canonical) && !entry.wrapped &&
                      !vp_text_starts(canonical, "model.") && *canonical;
    add_pattern(arena, set, entry);
    return true;
}

bool vp_name_set_add(struct vp_arena *arena, struct vp_name_set *set, const char **why,
                     const char *entry) {
    *why = NULL;
    if (!*entry)
        return true;
    if (vp_text_starts(entry, "re:"))
        return vp_name_set_add_regex(arena, set, why, entry + 3);
    if (strpbrk(entry, "*?["))
        return add_glob(arena, set, why, entry);
    add_name(arena, set, canonical_copy(arena, entry));
    return true;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void vp_name_set_finish(struct vp_name_set *set) {
    if (set->name_count > 1)
        qsort(set->names, set->name_count, sizeof *set->names, compare_names);
}

/* ---- matching ---- */

static bool has_name(const struct vp_name_set *set, const char *text, size_t n) {
    size_t low = 0, high = set->name_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strncmp(set->names[middle], text, n);
        if (order == 0)
            order = set->names[middle][n] != '\0';
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/* Every run of whole parts of the name: a module has about six parts, so some twenty runs, most of
 * which begin like no name or have another number of parts. last: only those with the last part. */
static bool has_run(const struct vp_name_set *set, const char *name, bool last) {
    const char *parts[VP_MODULE_PARTS + 1], *end = name + strlen(name);
    int count = 0;
    for (const char *p = name; p < end && count < VP_MODULE_PARTS; count++) {
        parts[count] = p;
        p += part_length(p) + 1;
    }
    parts[count] = end + 1; /* a part ends one before the next begins */
    for (int from = 0; from < count; from++) {
        uint32_t known = set->parts[(unsigned char)*parts[from]];
        for (int to = last ? count : from + 1; known && to <= count; to++)
            if ((known >> (to - from) & 1) &&
                has_name(set, parts[from], (size_t)(parts[to] - parts[from]) - 1))
                return true;
    }
    return false;
}

static bool glob_matches(const struct vp_name_pattern *pattern, const char *name) {
    if (vp_text_glob(pattern->glob, name))
        return true;
    if (!pattern->inside)
        return false;
    /* the module is inside what the glob names when one of its parents matches */
    char parent[VP_MODULE_NAME];
    snprintf(parent, sizeof parent, "%s", name);
    for (char *dot = strrchr(parent, '.'); dot; dot = strrchr(parent, '.')) {
        *dot = '\0';
        if (vp_text_glob(pattern->glob, parent))
            return true;
    }
    return false;
}

static bool form_matches(const struct vp_name_pattern *pattern, const char *form) {
    return pattern->regex ? vp_regex_match(pattern->regex, form) : glob_matches(pattern, form);
}

/* The forms as they are inside a wrapping model: those without a prefix get its own. */
static bool wrapped_matches(const struct vp_name_pattern *pattern,
                            const struct vp_module_name *module) {
    static const char *const PREFIXES[] = {"language_model.", "language_model.model.",
                                           "model.language_model."};
    bool head = module->longest_forms == module->form_count;
    char form[VP_MODULE_NAME];
    for (int i = head ? 0 : module->longest_forms; i < module->form_count; i++) {
        for (int k = 0; k < (head ? 1 : 3); k++) {
            int n = snprintf(form, sizeof form, "%s%s", PREFIXES[k], module->forms[i]);
            if (n > 0 && (size_t)n < sizeof form && form_matches(pattern, form))
                return true;
        }
    }
    return false;
}

static bool pattern_matches(const struct vp_name_pattern *pattern,
                            const struct vp_module_name *module) {
    if (pattern->canonical) {
        /* most of a list speaks of other layers: seen at once */
        return module->length >= pattern->literal &&
               memcmp(module->canonical, pattern->glob, pattern->literal) == 0 &&
               glob_matches(pattern, module->canonical);
    }
    int forms = pattern->anywhere ? module->longest_forms : module->form_count;
    for (int i = 0; i < forms; i++)
        if (form_matches(pattern, module->forms[i]))
            return true;
    return pattern->wrapped && wrapped_matches(pattern, module);
}

enum vp_name_match vp_name_set_match(const struct vp_name_set *set,
                                     const struct vp_module_name *module) {
    if (set->name_count && (has_run(set, module->canonical, false) ||
                            (*module->fused && has_run(set, module->fused, true))))
        return VP_NAME_BY_NAME; /* the fused name differs in its last part only */
    for (size_t i = 0; i < set->pattern_count; i++)
        if (pattern_matches(&set->patterns[i], module))
            return VP_NAME_BY_PATTERN;
    return VP_NAME_OTHER;
}
