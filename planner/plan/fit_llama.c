#include "planner/plan/fit_llama.h"

#include <string.h>

#include "planner/plan/fit_search.h"

enum {
    MARGIN_MIB = 1024,    /* llama-server's --fit-target */
    LEAST_CONTEXT = 4096, /* its --fit-ctx */
    LEAST_UBATCH = 128,
    MOST_SLOTS = 256, /* LLAMA_MAX_SEQ */
    CONTEXTS = 32
};

/* Pairs for which every build has kernels of flash attention; others need a build with all of them
 * (GGML_CUDA_FA_ALL_QUANTS), else attention runs on the processor. Source: ggml-cuda/fattn.cu. */
static const enum vp_dtype TYPES[] = {VP_DTYPE_FP16, VP_DTYPE_Q8_0, VP_DTYPE_Q4_0};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

/* ---- what is given ---- */

struct vp_fit_fixed vp_fit_llama_fixed(const struct vp_scenario *s) {
    struct vp_fit_fixed fixed = {
        .total = vp_scenario_is_given(s, VP_F_CTX_SIZE),
        .layers = vp_scenario_is_given(s, VP_F_N_GPU_LAYERS) || s->hardware.count == 0,
        .cache = vp_scenario_is_given(s, VP_F_CACHE_TYPE_K) ||
                 vp_scenario_is_given(s, VP_F_CACHE_TYPE_V) ||
                 vp_scenario_is_given(s, VP_F_KV_DTYPE),
        .slots =
            vp_scenario_is_given(s, VP_F_LLAMA_SLOTS) || vp_scenario_is_given(s, VP_F_CONCURRENCY),
        .batch =
            vp_scenario_is_given(s, VP_F_LLAMA_UBATCH) || vp_scenario_is_given(s, VP_F_LLAMA_BATCH),
    };

    fixed.split = s->hardware.count < 2 || s->llama.split != VP_SPLIT_LAYER ||
                  vp_scenario_is_given(s, VP_F_TENSOR_SPLIT) || s->engine.kind == VP_ENGINE_OLLAMA;
    fixed.context = fixed.total || vp_scenario_is_given(s, VP_F_CONTEXT);
    /* ollama has no such argument; overrides say where tensors go, each by itself */
    fixed.experts = !vp_model_has_experts(s->model) || s->engine.kind == VP_ENGINE_OLLAMA ||
                    vp_scenario_is_given(s, VP_F_CPU_MOE) ||
                    vp_scenario_is_given(s, VP_F_N_CPU_MOE) || s->llama.overrides > 0 ||
                    s->hardware.count == 0;
    return fixed;
}

/* Flash attention is on unless it was given otherwise, whatever the version's default. */
static enum vp_flash flash_of(const struct vp_scenario *s) {
    return vp_scenario_is_given(s, VP_F_FLASH_ATTN) ? s->llama.flash : VP_FLASH_ON;
}

/* Sequences whose contexts are full at once: slots that share a cache are not taken to be, unless
 * serve.concurrency says so (as import/ reads it). */
static uint64_t full_sequences(const struct vp_scenario *scenario, const struct vp_fit_fixed *fixed,
                               uint64_t slots) {
    bool shared = fixed->slots && scenario->llama.unified &&
                  !vp_scenario_is_given(scenario, VP_F_CONCURRENCY);

    return shared ? 1 : slots;
}

struct vp_scenario vp_fit_llama_scenario(const struct vp_scenario *scenario,
                                         const struct vp_fit_fixed *fixed,
                                         const struct vp_fit_settings *set) {
    struct vp_scenario s = *scenario;
    uint64_t sequences = full_sequences(scenario, fixed, set->slots);
    struct vp_sum total = vp_sum_mul(vp_sum(set->context), sequences);
    bool asked = vp_scenario_is_given(scenario, VP_F_KV_UNIFIED) || fixed->slots;

    s.llama.fit_context = s.llama.fit_layers = false;
    s.llama.flash = flash_of(scenario);
    s.llama.gpu_layers = set->gpu_layers;
    s.llama.cpu_moe_layers = set->host_experts;
    s.llama.type_k = set->type_k;
    s.llama.type_v = set->type_v;
    s.llama.slots = set->slots;
    s.serve.concurrency = sequences;
    /* slots that are asked for have caches of their own unless told otherwise */
    s.llama.unified = asked ? scenario->llama.unified : scenario->engine.rules.llama.always_unified;
    s.llama.ubatch = set->ubatch;
    if (s.engine.kind == VP_ENGINE_OLLAMA && set->ubatch != scenario->llama.ubatch)
        s.llama.batch = set->ubatch; /* num_batch is both */
    for (uint32_t g = 0; g < set->shares; g++)
        s.llama.share_ppb[g] = set->share[g] * UINT64_C(1000000000);
    if (set->shares > 0)
        s.llama.shares = set->shares;
    s.serve.context = set->context;
    if (!fixed->total)
        s.llama.context = total.overflow ? UINT64_MAX : total.v;
    return s;
}

/* ---- comparing ---- */

static uint64_t quality(const struct vp_fit_proposal *p) {
    enum { SOME = 256 }; /* elements: whole blocks of every type */
    return vp_dtype_bytes(p->set.type_k, vp_sum(SOME)).v +
           vp_dtype_bytes(p->set.type_v, vp_sum(SOME)).v;
}

/* A cache of 8 bits or more: what it costs in quality is hardly measurable. */
static bool is_fine(const struct vp_fit_proposal *p) {
    return vp_dtype_bytes(p->set.type_k, vp_sum(256)).v >= 256 &&
           vp_dtype_bytes(p->set.type_v, vp_sum(256)).v >= 256;
}

static bool is_whole(const struct vp_fit_llama *fit, const struct vp_fit_proposal *p) {
    return p->set.gpu_layers >= fit->layer_slots && p->set.host_experts == 0;
}

static int more(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* Above 0: a ranks before b. */
static int compare(const struct vp_fit_llama *fit, const struct vp_fit_proposal *a,
                   const struct vp_fit_proposal *b) {
    const struct vp_fit_settings *x = &a->set, *y = &b->set;
    int whole = is_whole(fit, a) - is_whole(fit, b), fine = is_fine(a) - is_fine(b);
    int context = more(x->context, y->context), slots = more(x->slots, y->slots);
    int layers = more(x->gpu_layers, y->gpu_layers), batch = more(x->ubatch, y->ubatch);
    int experts = more(y->host_experts, x->host_experts), best = more(quality(a), quality(b));
    int one = (a->question != VP_FIT_Q_SLOTS) - (b->question != VP_FIT_Q_SLOTS);
    const int orders[][9] = {
        [VP_FIT_BALANCED] = {one, fine, whole, batch, layers, experts, context, best, slots},
        [VP_FIT_CONTEXT] = {one, whole, context, best, layers, experts, batch, slots, 0},
        [VP_FIT_LAYERS] = {one, layers, experts, fine, batch, context, best, slots, 0},
        [VP_FIT_SLOTS] = {-one, whole, slots, context, best, layers, experts, batch, 0},
    };
    int order = a->sure - b->sure;

    for (int i = 0; order == 0 && i < 9; i++)
        order = orders[fit->goal][i];
    return order;
}

/* As good in everything that is wanted. More sequences are another wish than one. */
static bool covers(const struct vp_fit_proposal *a, const struct vp_fit_proposal *b) {
    const struct vp_fit_settings *x = &a->set, *y = &b->set;
    bool same = (a->question == VP_FIT_Q_SLOTS) == (b->question == VP_FIT_Q_SLOTS);

    return same && a->sure >= b->sure && x->gpu_layers >= y->gpu_layers &&
           x->host_experts <= y->host_experts && x->context >= y->context && x->slots >= y->slots &&
           x->ubatch >= y->ubatch && quality(a) >= quality(b);
}

/* Keeps what nothing else covers. */
static void add(struct vp_fit_llama *fit, const struct vp_fit_proposal *p) {
    uint32_t kept = 0;

    for (uint32_t i = 0; i < fit->count; i++)
        if (covers(&fit->item[i], p))
            return;
    for (uint32_t i = 0; i < fit->count; i++)
        if (!covers(p, &fit->item[i]))
            fit->item[kept++] = fit->item[i];
    fit->count = kept;
    if (fit->count < VP_FIT_PROPOSALS)
        fit->item[fit->count++] = *p;
}

static void rank(struct vp_fit_llama *fit) {
    for (uint32_t i = 1; i < fit->count; i++) {
        struct vp_fit_proposal p = fit->item[i];
        uint32_t at = i;
        for (; at > 0 && compare(fit, &p, &fit->item[at - 1]) > 0; at--)
            fit->item[at] = fit->item[at - 1];
        fit->item[at] = p;
    }
    fit->sure = 0;
    while (fit->sure < fit->count && fit->item[fit->sure].sure)
        fit->sure++;
}

/* ---- proposals ---- */

static uint64_t quantity(const struct vp_fit_settings *set, enum vp_fit_question question) {
    switch (question) {
    case VP_FIT_Q_CONTEXT:
        return set->context;
    case VP_FIT_Q_LAYERS:
        return set->gpu_layers;
    case VP_FIT_Q_EXPERTS:
        return set->host_experts;
    case VP_FIT_Q_SLOTS:
        break;
    }
    return set->slots;
}

/* The settings that fit for sure, else the ones that may; perhaps: those that may. NULL: none. */
static void propose(struct vp_fit_search *s, const struct vp_fit_settings *sure,
                    const struct vp_fit_settings *perhaps, enum vp_fit_question question) {
    if (!sure && !perhaps)
        return;
    struct vp_fit_settings set = sure ? *sure : *perhaps;
    enum vp_fit_sureness how = sure ? VP_FIT_SURE : VP_FIT_LIKELY;
    vp_fit_holds(s, &set, how); /* its own shares */
    struct vp_fit_proposal p = vp_fit_try(s, &set).figures;
    p.question = question;
    p.sure = sure != NULL;
    if (sure && perhaps && quantity(sure, question) != quantity(perhaps, question)) {
        p.further = true;
        p.further_to = quantity(perhaps, question);
    }
    add(s->out, &p);
}

/* How far it goes at risk is not asked of divisions, for which that would be another division. */
static bool wants_more(const struct vp_fit_search *s, bool sure) { return !sure || !s->dividing; }

/* Everything on the GPUs, or the layers given: how long a context. 0: none. */
static uint64_t ask_context(struct vp_fit_search *s, struct vp_fit_settings set, uint64_t least) {
    struct vp_fit_settings perhaps = set;
    bool sure = vp_fit_longest(s, &set, least, s->longest, VP_FIT_SURE);
    bool may = wants_more(s, sure) &&
               vp_fit_longest(s, &perhaps, sure ? set.context : least, s->longest, VP_FIT_LIKELY);

    propose(s, sure ? &set : NULL, may ? &perhaps : NULL, VP_FIT_Q_CONTEXT);
    return sure ? set.context : 0;
}

/* At this context: the fewest experts on the host, then the most layers on the GPUs. */
static bool place(struct vp_fit_search *s, struct vp_fit_settings *set, enum vp_fit_sureness how) {
    struct vp_fit_settings all = *set;
    bool open = !s->fixed.layers;

    if (!s->fixed.experts) {
        if (vp_fit_fewest_experts(s, &all, how)) {
            *set = all;
            return true;
        }
        set->host_experts = s->base.model->layer_count;
    }
    if (open)
        return vp_fit_most_layers(s, set, set->gpu_layers, how);
    return vp_fit_holds(s, set, how);
}

/* What a placement drove as far as it goes. */
static enum vp_fit_question question_of(const struct vp_fit_search *s,
                                        const struct vp_fit_settings *set) {
    bool all = set->gpu_layers >= s->out->layer_slots;

    return all && !s->fixed.experts && set->host_experts > 0 ? VP_FIT_Q_EXPERTS : VP_FIT_Q_LAYERS;
}

/* set: layers to begin with; returns those found for sure. next: a context that is asked for
 * separately, up to which this one may be stretched. */
static uint64_t ask_layers(struct vp_fit_search *s, struct vp_fit_settings set, uint64_t next) {
    struct vp_fit_settings perhaps = set;
    bool sure = place(s, &set, VP_FIT_SURE), may;
    enum vp_fit_question question;

    if (sure && next > set.context) {
        question = VP_FIT_Q_CONTEXT;
        vp_fit_longest(s, &set, set.context, next, VP_FIT_SURE);
        perhaps = set;
        may = wants_more(s, sure) &&
              vp_fit_longest(s, &perhaps, set.context, s->longest, VP_FIT_LIKELY);
    } else {
        may = wants_more(s, sure) && place(s, &perhaps, VP_FIT_LIKELY);
        question = question_of(s, sure ? &set : &perhaps);
        /* one quantity at a time: anything else is another proposal */
        may = may && (!sure || question == question_of(s, &perhaps));
        if (sure && question == VP_FIT_Q_LAYERS && perhaps.host_experts != set.host_experts)
            may = false;
    }
    propose(s, sure ? &set : NULL, may ? &perhaps : NULL, question);
    return sure ? set.gpu_layers : 0;
}

/* ---- the search ---- */

struct contexts {
    uint64_t item[CONTEXTS];
    uint32_t count;
};

/* The one given; else from the least one on twice as long each, to the model's own. */
static struct contexts contexts_of(const struct vp_fit_search *s) {
    uint64_t least = s->base.llama.fit_context_least;
    struct contexts all = {{0}, 0};

    if (s->fixed.context) {
        all.item[all.count++] = s->longest;
        return all;
    }
    for (uint64_t c = least > 0 ? least : LEAST_CONTEXT; c < s->longest && all.count < CONTEXTS - 1;
         c *= 2)
        all.item[all.count++] = c;
    all.item[all.count++] = s->longest;
    return all;
}

/* All questions with one type of cache and one batch. */
static void ask_all(struct vp_fit_search *s, struct vp_fit_settings set) {
    struct contexts contexts = contexts_of(s);
    uint64_t done = 0;

    if (!s->fixed.context)
        done = ask_context(s, set, contexts.item[0]);
    for (uint32_t c = 0; c < contexts.count; c++) {
        uint64_t next = c + 1 < contexts.count ? contexts.item[c + 1] : contexts.item[c];
        set.context = contexts.item[c];
        if (set.context <= done)
            continue;
        if (s->fixed.layers && s->fixed.experts && !s->fixed.context)
            break; /* asked above */
        uint64_t layers = ask_layers(s, set, next);
        if (s->fixed.experts && !s->fixed.layers)
            set.gpu_layers = layers; /* a longer context has no room for more */
    }
}

/* Whether a smaller batch is worth its slower prompts: with a context that is given, to get
 * everything on the GPUs; else only when nothing fits. */
static bool is_settled(const struct vp_fit_search *s, const struct vp_fit_settings *set) {
    for (uint32_t i = 0; i < s->out->count; i++) {
        const struct vp_fit_proposal *p = &s->out->item[i];
        if (p->sure && p->set.type_k == set->type_k && p->set.type_v == set->type_v &&
            (!s->fixed.context || is_whole(s->out, p)))
            return true;
    }
    return false;
}

static void ask_type(struct vp_fit_search *s, struct vp_fit_settings set) {
    ask_all(s, set);
    if (s->fixed.batch)
        return;
    while (set.ubatch / 2 >= LEAST_UBATCH && !is_settled(s, &set)) {
        set.ubatch /= 2;
        ask_all(s, set);
    }
}

/* More sequences with what ranks first; when that is the goal, of shorter contexts, too. */
static void ask_slots(struct vp_fit_search *s) {
    struct vp_fit_settings best = s->out->item[0].set;
    struct contexts contexts = contexts_of(s);
    bool types = !s->fixed.cache && flash_of(&s->base) != VP_FLASH_OFF;

    if (s->fixed.slots || s->fixed.total || s->out->sure == 0)
        return;
    if (s->out->goal != VP_FIT_SLOTS)
        contexts.count = 0;
    for (uint32_t c = 0; c <= contexts.count; c++)
        for (int t = 0; t < (types ? TYPE_COUNT : 1); t++) {
            struct vp_fit_settings set = best, perhaps;
            set.context = c < contexts.count ? contexts.item[c] : best.context;
            if (types)
                set.type_k = set.type_v = TYPES[t];
            perhaps = set;
            if (!vp_fit_most_slots(s, &set, VP_FIT_SURE) || set.slots < 2)
                continue;
            bool may = wants_more(s, true) && vp_fit_most_slots(s, &perhaps, VP_FIT_LIKELY);
            propose(s, &set, may ? &perhaps : NULL, VP_FIT_Q_SLOTS);
        }
}

/* As much to spare as there can be, where layers are divided one by one. */
static void even_out(struct vp_fit_search *s, struct vp_fit_proposal *p) {
    struct vp_fit_proposal old = *p;

    if (p->set.shares == 0)
        return;
    vp_fit_divide_evenly(s, &p->set, p->sure ? VP_FIT_SURE : VP_FIT_LIKELY);
    *p = vp_fit_try(s, &p->set).figures;
    p->question = old.question;
    p->sure = old.sure;
    p->further = old.further;
    p->further_to = old.further_to;
}

static void search(struct vp_fit_search *s) {
    const struct vp_llama *l = &s->base.llama;
    bool types = !s->fixed.cache && flash_of(&s->base) != VP_FLASH_OFF;
    struct vp_fit_settings set = {
        .gpu_layers =
            s->fixed.layers ? vp_min(l->gpu_layers, s->out->layer_slots) : s->out->layer_slots,
        .host_experts = l->cpu_moe_layers,
        .context = s->longest,
        .slots = s->fixed.slots ? l->slots : 1,
        .ubatch = vp_min(l->ubatch, l->batch),
        .type_k = s->fixed.cache ? l->type_k : VP_DTYPE_FP16,
        .type_v = s->fixed.cache ? l->type_v : VP_DTYPE_FP16,
    };

    for (int divided = 0; divided <= !s->fixed.split; divided++)
        for (int t = 0; t < (types ? TYPE_COUNT : 1); t++) {
            s->dividing = divided;
            if (types)
                set.type_k = set.type_v = TYPES[t];
            ask_type(s, set);
        }
    rank(s->out);
    ask_slots(s);
    rank(s->out);
    for (uint32_t i = 0; i < s->out->count; i++)
        even_out(s, &s->out->item[i]);
}

/* ---- what would have to give way ---- */

static bool *flag_of(struct vp_fit_fixed *fixed, enum vp_fit_freed freed) {
    bool *const flags[VP_FIT_FREED] = {
        [VP_FIT_CACHE] = &fixed->cache,    [VP_FIT_UBATCH] = &fixed->batch,
        [VP_FIT_PARALLEL] = &fixed->slots, [VP_FIT_MOE] = &fixed->experts,
        [VP_FIT_NGL] = &fixed->layers,     [VP_FIT_CTX] = &fixed->context};
    return flags[freed];
}

struct vp_fit_fixed vp_fit_llama_freed(const struct vp_fit_fixed *fixed, enum vp_fit_freed freed) {
    struct vp_fit_fixed out = *fixed;

    *flag_of(&out, freed) = false;
    out.total = out.total && out.context;
    return out;
}

static bool can_free(const struct vp_fit_search *s, enum vp_fit_freed freed) {
    struct vp_fit_fixed fixed = s->fixed;

    if (freed == VP_FIT_MOE) /* unless there is nothing to move, or it is placed by hand */
        return fixed.experts && vp_model_has_experts(s->base.model) &&
               s->base.llama.overrides == 0 && s->base.engine.kind != VP_ENGINE_OLLAMA &&
               s->base.hardware.count > 0 && !s->base.llama.cpu_moe;
    if (freed == VP_FIT_NGL && s->base.hardware.count == 0)
        return false;
    if (freed == VP_FIT_PARALLEL && s->base.llama.slots < 2)
        return false;
    return *flag_of(&fixed, freed);
}

static void free_one(const struct vp_fit_search *given, enum vp_fit_freed freed) {
    static const enum vp_fit_goal GOALS[VP_FIT_FREED] = {
        [VP_FIT_PARALLEL] = VP_FIT_SLOTS, [VP_FIT_CTX] = VP_FIT_CONTEXT};
    struct vp_fit_llama *sub = VP_NEW(given->arena, struct vp_fit_llama);
    struct vp_fit_search s = *given;

    *sub = (struct vp_fit_llama){.goal = GOALS[freed],
                                 .margin_bytes = given->out->margin_bytes,
                                 .layer_slots = given->out->layer_slots};
    s.out = sub;
    s.fixed = vp_fit_llama_freed(&given->fixed, freed);
    if (freed == VP_FIT_PARALLEL)
        s.most_slots = s.base.llama.slots - 1;
    if (freed == VP_FIT_MOE)
        s.base.llama.cpu_moe_layers = 0;
    search(&s);
    given->out->tried += sub->tried;
    given->out->has_freed[freed] = sub->sure > 0;
    given->out->freed[freed] = sub->item[0];
}

static void keep_nearest_plan(struct vp_fit_search *s) {
    struct vp_result *plan = VP_NEW(s->arena, struct vp_result);
    struct vp_scenario *scenario = VP_NEW(s->arena, struct vp_scenario);

    *scenario = vp_fit_llama_scenario(&s->base, &s->fixed, &s->out->nearest);
    if (s->any_nearest && vp_plan_evaluate(s->arena, plan, scenario))
        s->out->nearest_plan = plan;
    if (s->nearest_bytes == UINT64_MAX)
        s->out->short_bytes = 0;
}

/* The longest sequence that may be asked for: the one given, else the model's own. */
static uint64_t longest_of(const struct vp_scenario *s, const struct vp_fit_fixed *fixed) {
    uint64_t slots = fixed->slots ? vp_max(s->llama.slots, 1) : 1;

    if (fixed->total)
        return vp_max(s->llama.context / full_sequences(s, fixed, slots), 1);
    return fixed->context ? s->serve.context : vp_max(s->model->max_position, 1);
}

bool vp_fit_llama_find(struct vp_arena *arena, struct vp_fit_llama *out,
                       const struct vp_scenario *scenario, enum vp_fit_goal goal) {
    struct vp_fit_search s = {.arena = arena, .base = *scenario, .out = out};
    struct vp_result plan;
    uint64_t margin = scenario->llama.fit_margin_mib;
    struct vp_gguf_table *table;

    if (!vp_plan_evaluate(arena, &plan, scenario))
        return false;
    /* the table is made once */
    table = VP_NEW(arena, struct vp_gguf_table);
    *table = *plan.llama->table;
    s.base.model = VP_NEW(arena, struct vp_model);
    *s.base.model = *scenario->model;
    s.base.model->gguf = table;

    memset(out, 0, sizeof *out);
    s.fixed = out->fixed = vp_fit_llama_fixed(scenario);
    s.longest = longest_of(scenario, &s.fixed);
    s.most_slots = MOST_SLOTS;
    out->goal = goal;
    if (!vp_scenario_is_given(scenario, VP_F_FIT_TARGET))
        margin = MARGIN_MIB;
    out->margin_bytes = vp_min(margin, UINT64_C(1) << 40) << 20;
    out->layer_slots = plan.llama->layer_slots;
    out->experts = !s.fixed.experts;
    search(&s);
    if (out->count > 0)
        return true;
    for (int f = 0; f < VP_FIT_FREED; f++)
        if (can_free(&s, (enum vp_fit_freed)f))
            free_one(&s, (enum vp_fit_freed)f);
    keep_nearest_plan(&s);
    return true;
}
