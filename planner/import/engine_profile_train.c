/* Rules of training frameworks. What torch itself does has its home in pytorch.yaml: the other
 * profiles are based on it. */
#include <stddef.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/engine_args.h"
#include "planner/import/engine_profile_parts.h"

enum kind { TRUTH, COUNT, AMOUNT, PERMILLE };

static const struct rule {
    const char *name;
    enum kind kind;
    size_t offset;
} RULES[] = {
#define X(name, kind, meaning) {#name, kind, offsetof(struct vp_train_rules, name)},
#include "planner/model/train_rules.def"
#undef X
};

/* The version of torch beside a framework: as said, else what that framework came with. */
static bool find_torch(struct vp_situation *s, struct vp_scenario *torch) {
    const struct vp_engine *engine = &s->scenario->engine;
    const char *text = engine->torch_text;

    if (!text) {
        const struct vp_node *row = vp_rule_row(s, "torch");
        text = row ? vp_node_text(vp_node_get(row, "value")) : NULL;
    }
    *torch = *s->scenario;
    torch->engine.version_text = text;
    if (text && vp_version_parse(&torch->engine.version, text))
        return true;
    vp_rule_broken(s, s->root, "no version of torch that it is based on");
    return false;
}

/* The user's own number, where a row says that an argument is the value. */
static void read_argument(struct vp_situation *s, const char *key, uint64_t *out) {
    const uint64_t most = UINT64_C(1) << 40;
    const struct vp_engine *engine = &s->scenario->engine;

    for (uint32_t i = 0; i < engine->arg_count; i++) {
        const struct vp_engine_arg *arg = &engine->args[i];
        if (!vp_text_eq(arg->key, key) || (vp_parse_u64(out, arg->value) && *out <= most))
            continue;
        vp_diag_add(s->ctx->diags, VP_D_BAD_VALUE, &arg->pos,
                    "engine.args.%s must be a whole number, not %.100s", key, arg->value);
        s->broken = true;
    }
}

static bool read_count(struct vp_situation *s, const struct vp_node *row, uint64_t *out) {
    const char *key = vp_node_text(vp_node_get(row, "from_arg"));

    if (!key)
        return vp_node_u64(out, vp_node_get(row, "value"));
    read_argument(s, key, out);
    return true;
}

static void read_rule(struct vp_situation *s, const struct rule *rule, struct vp_train_rules *out) {
    void *member = (char *)out + rule->offset;
    const struct vp_node *row = vp_rule_row(s, rule->name);
    bool ok = true;

    if (!row)
        return;
    switch (rule->kind) {
    case TRUTH:
        ok = vp_node_bool(member, vp_node_get(row, "value"));
        break;
    case COUNT:
        ok = read_count(s, row, member);
        break;
    case AMOUNT:
        *(struct vp_amount *)member = vp_rule_interval(s, row, "value", UINT64_C(1) << 20);
        break;
    case PERMILLE:
        *(struct vp_amount *)member = vp_rule_interval(s, row, "value", 1);
        break;
    }
    if (!ok)
        vp_rule_broken(
            s, row, vp_arena_printf(s->ctx->arena, "the value of '%s' cannot be read", rule->name));
}

void vp_rules_read_train(struct vp_situation *s, struct vp_train_rules *out) {
    const char *base = vp_node_text(vp_node_get(s->root, "based_on"));
    const struct vp_node *own = vp_node_get(s->root, "rules");
    struct vp_engine_profile profile = {.root = NULL};
    struct vp_scenario torch;
    struct vp_situation below = {.ctx = s->ctx, .scenario = &torch};

    if (base) {
        if (!find_torch(s, &torch))
            return;
        if (vp_engine_profile_open(s->ctx, &profile, base) != VP_OK) {
            vp_rule_broken(s, s->root, "the profile that it is based on cannot be read");
            return;
        }
        below.root = profile.root;
        below.path = profile.path;
    }
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++)
        read_rule(base && !vp_node_get(own, RULES[i].name) ? &below : s, &RULES[i], out);
    s->broken |= below.broken;
}
