#include "planner/serving/step_tables.h"

#include <math.h>

#include "planner/memory/draft.h"
#include "planner/memory/stage.h"

enum {
    TOKEN_BITS = 4, /* nodes per octave, as powers of two: products of many tile sizes */
    ATTENTION_BITS = 2,
    CONTEXT_BITS = 1, /* what is read grows in a straight line */
    PROMPT_BITS = 3,
    PROMPTS = 8 /* that attention of several prompts is measured with */
};

struct maker {
    struct vp_arena *arena;
    const struct vp_scenario *scenario;
    struct vp_stack stack;
    const struct vp_serving_fit *fit; /* NULL: kernels alone, at their least */
    double scale;
    double sequences, tokens, context; /* the most of an iteration, of a sequence */
    double verified;                   /* tokens of a sequence that decodes */
};

static double us_of(const struct maker *m, struct vp_time time) {
    return m->fit ? m->scale * time.likely : time.low;
}

static const struct vp_pass EMPTY = {{.basis = VP_BASIS_CALIBRATED},
                                     {.basis = VP_BASIS_CALIBRATED},
                                     {.basis = VP_BASIS_CALIBRATED},
                                     {.basis = VP_BASIS_CALIBRATED},
                                     {.basis = VP_BASIS_CALIBRATED},
                                     0,
                                     0,
                                     0,
                                     0};

/* What an iteration may hold. A small engine's tables are no smaller than that of a middling one.
 */
static void set_limits(struct maker *m) {
    const struct vp_scenario *s = m->scenario;
    const double least_sequences = 256, least_tokens = 2048, least_context = 4096, most = 0x1p22;
    double context = (double)vp_max(s->engine.max_model_len, s->serve.context);
    double asked = (double)vp_max(s->engine.max_num_seqs, s->engine.max_running);
    double whole = s->engine.chunked_prefill ? 1 : context; /* a prompt in one iteration */

    m->context = fmax(context, least_context);
    m->sequences = fmax(asked, least_sequences);
    m->verified = 1 + (double)s->draft.tokens;
    if (s->engine.kind == VP_ENGINE_TRANSFORMERS) /* all prompts of a batch */
        whole *= fmax((double)s->serve.concurrency, 1);
    m->tokens = fmax((double)s->engine.max_batched_tokens, least_tokens);
    m->tokens = fmin(fmax(fmax(m->tokens, m->sequences * m->verified), whole), most);
}

static double active_experts(const struct vp_model *model) {
    double active = 0;

    for (uint32_t i = 0; i < model->block_count; i++)
        if (model->blocks[i].moe.kind != VP_MLP_NONE)
            active = fmax(active, (double)model->blocks[i].moe.top_k);
    return active;
}

static void fill_tokens(struct maker *m, struct vp_step_tables *t) {
    double active = active_experts(m->stack.model);
    double all = m->tokens * m->stack.data;
    double fullest =
        fmin(fmax(m->scenario->serve.expert_imbalance, 1), (double)m->stack.layout.expert_ranks);

    t->tokens = vp_curve_new(m->arena, vp_axis_to(TOKEN_BITS, true, m->tokens));
    t->experts = vp_curve_new(m->arena, vp_axis_to(TOKEN_BITS, true, active > 0 ? all : 1));
    t->head = vp_curve_new(m->arena, vp_axis_to(TOKEN_BITS, true, m->sequences * m->verified));
    for (uint32_t i = 1; i < t->tokens.x.nodes; i++) {
        struct vp_pass pass = EMPTY;
        vp_stack_tokens(&pass, &m->stack, vp_axis_at(&t->tokens.x, i), 0);
        t->tokens.us[i] = us_of(m, pass.linear) + us_of(m, pass.attention) + us_of(m, pass.other) +
                          us_of(m, pass.exchange);
    }
    for (uint32_t i = 1; active > 0 && i < t->experts.x.nodes; i++) {
        double tokens = vp_axis_at(&t->experts.x, i);
        t->experts.us[i] = us_of(m, vp_stack_experts(&m->stack, tokens * fullest));
    }
    for (uint32_t i = 1; i < t->head.x.nodes; i++) {
        struct vp_pass pass = EMPTY;
        vp_stack_head(&pass, &m->stack, vp_axis_at(&t->head.x, i));
        t->head.us[i] = us_of(m, pass.linear) + us_of(m, pass.other) + us_of(m, pass.exchange);
    }
    vp_curve_raise(&t->tokens);
    vp_curve_raise(&t->experts);
    vp_curve_raise(&t->head);
}

static struct vp_sheet decode_sheet(const struct maker *m, const struct vp_stack *stack,
                                    double fresh) {
    struct vp_sheet sheet = vp_sheet_new(m->arena, vp_axis_to(ATTENTION_BITS, false, m->sequences),
                                         vp_axis_to(CONTEXT_BITS, false, m->context));

    for (uint32_t x = 1; x < sheet.x.nodes; x++)
        for (uint32_t y = 0; y < sheet.y.nodes; y++)
            *vp_sheet_node(&sheet, x, y) =
                us_of(m, vp_stack_attention(stack, vp_axis_at(&sheet.x, x), fresh,
                                            fmax(vp_axis_at(&sheet.y, y), 1)));
    vp_sheet_raise(&sheet);
    return sheet;
}

static void fill_prompts(const struct maker *m, struct vp_step_tables *t) {
    struct vp_axis fresh = vp_axis_to(PROMPT_BITS, true, fmin(m->tokens, m->context));
    struct vp_axis past = vp_axis_to(ATTENTION_BITS, false, m->context);

    t->prompt = vp_sheet_new(m->arena, fresh, past);
    t->prompts = vp_sheet_new(m->arena, fresh, past);
    for (uint32_t x = 1; x < fresh.nodes; x++)
        for (uint32_t y = 0; y < past.nodes; y++) {
            double f = vp_axis_at(&fresh, x), p = vp_axis_at(&past, y);
            double one = us_of(m, vp_stack_attention(&m->stack, 1, f, p));
            double all = us_of(m, vp_stack_attention(&m->stack, PROMPTS, f, p));
            *vp_sheet_node(&t->prompt, x, y) = one;
            *vp_sheet_node(&t->prompts, x, y) = fmax(all - one, 0) / (PROMPTS - 1);
        }
    vp_sheet_raise(&t->prompt);
    vp_sheet_raise(&t->prompts);
}

/* ---- the draft ---- */

/* The layers that propose, as a stack of their own; false: no layers do. */
static bool draft_stack(struct maker *m, struct vp_stack *out) {
    const struct vp_draft *draft = &m->scenario->draft;
    struct vp_layout layout = vp_draft_layout(m->scenario);
    const struct vp_extra *mtp = vp_model_mtp(m->scenario->model);
    struct vp_model *model = VP_NEW(m->arena, struct vp_model);

    vp_stack_of(out, m->scenario, &layout, m->stack.data);
    out->stages = 1; /* it lives on the last one */
    out->host_bytes = 0;
    if (draft->model) {
        *model = *draft->model;
        if (draft->method != VP_DRAFT_MODEL) /* a head over the target's vocabulary, or its own */
            model->vocab = draft->head_vocab > 0 ? draft->head_vocab : m->scenario->model->vocab;
    } else if (draft->method == VP_DRAFT_MTP && mtp && mtp->layer) {
        struct vp_block *block = VP_NEW(m->arena, struct vp_block);
        *model = *m->scenario->model;
        *block = *mtp->layer;
        block->count = 1; /* one of them per token that is proposed */
        model->blocks = block;
        model->block_count = 1;
    } else {
        return false;
    }
    out->model = model;
    vp_stack_prepare(m->arena, out);
    return true;
}

/* All of one proposal of one token each: layers, head, and what the engine adds per layer. The
 * whole loop is one step of the host. */
static void fill_draft(struct maker *m, struct vp_step_tables *t) {
    struct vp_stack stack;

    t->drafts = (double)m->scenario->draft.tokens;
    if (m->scenario->draft.method == VP_DRAFT_NONE || !(t->drafts > 0)) {
        t->drafts = 0;
        return;
    }
    t->verify = decode_sheet(m, &m->stack, t->drafts + 1);
    for (size_t i = 0; i < (size_t)t->verify.x.nodes * t->verify.y.nodes; i++)
        t->verify.us[i] = fmax(t->verify.us[i], t->decode.us[i]); /* never less than one token */
    if (!draft_stack(m, &stack))
        return;
    t->draft = decode_sheet(m, &stack, 1);
    for (uint32_t x = 1; x < t->draft.x.nodes; x++) {
        struct vp_pass pass = EMPTY;
        double n = vp_axis_at(&t->draft.x, x);
        vp_stack_tokens(&pass, &stack, n, n * stack.data);
        vp_stack_head(&pass, &stack, n);
        double us = us_of(m, pass.linear) + us_of(m, pass.experts) + us_of(m, pass.attention) +
                    us_of(m, pass.other) + us_of(m, pass.exchange);
        if (m->fit)
            us += pass.layers * m->fit->layer_us + pass.expert_layers * m->fit->expert_layer_us;
        for (uint32_t y = 0; y < t->draft.y.nodes; y++)
            *vp_sheet_node(&t->draft, x, y) += us;
    }
    vp_sheet_raise(&t->draft);
}

/* ---- the whole ---- */

/* What a request that comes at any moment waits for the end of the iteration under way: events do
 * that by themselves, the constant holds it. */
static const double HALF_A_STEP = 0.5;

static void set_constants(const struct maker *m, struct vp_step_tables *t) {
    const struct vp_serving_fit *fit = m->fit;
    struct vp_pass pass = EMPTY;

    t->ranks = fmax(m->stack.data, 1);
    t->stages = m->stack.stages;
    t->budget = fmax((double)m->scenario->engine.max_batched_tokens, 1);
    t->most_running = m->sequences * t->ranks;
    t->typical_context = (double)m->scenario->serve.prompt_tokens;
    if (t->typical_context > 0)
        t->typical_context += (double)m->scenario->serve.output_tokens / 2;
    if (!fit)
        return;
    vp_stack_tokens(&pass, &m->stack, 1, 1);
    t->fixed_us =
        pass.layers * fit->layer_us + pass.expert_layers * fit->expert_layer_us + fit->step_us;
    t->sequence_us = fit->sequence_us;
    t->first_us = fit->first_us;
    t->first_token_us = fit->first_token_us;
    t->request_us = fit->request_us;
    t->wait_steps = fmax(fit->wait_steps - HALF_A_STEP, 0);
}

/* As unsure as a middling iteration: decode of half the sequences, half the context. */
static void set_spread(const struct maker *m, struct vp_step_time *out,
                       const struct vp_engine_constants *constants) {
    struct vp_pass_load load = {.decoding =
                                    fmax((double)m->scenario->serve.concurrency / m->stack.data, 1),
                                .past = fmax((double)m->scenario->serve.context / 2, 1),
                                .data = m->stack.data};
    struct vp_pass pass = vp_pass_of(&m->stack, &load);

    out->spread = out->first_spread = 1;
    if (!constants->fit)
        return;
    out->spread = vp_engine_spread(constants, constants->fit->tpot_spread, &pass);
    out->first_spread = vp_engine_spread(constants, constants->fit->ttft_spread, &pass);
}

/* Data ranks meet at experts, and where SGLang's attention ranks share the layers. */
static void set_ranks(const struct vp_scenario *s, struct vp_step_time *out) {
    uint64_t within =
        s->engine.kind == VP_ENGINE_SGLANG ? vp_max(s->parallel.attention_data, 1) : 1;
    uint64_t beside = vp_max(s->parallel.data, 1);
    bool meet = s->engine.kind == VP_ENGINE_VLLM && vp_model_has_experts(s->model);

    out->ranks = within * (meet ? beside : 1);
    out->copies = meet ? 1 : beside;
}

static const char *no_times(const struct vp_scenario *s) {
    if (s->model->encoder_only)
        return "the model generates nothing";
    return s->hardware.count == 0 ? "times on the processor are not modelled" : NULL;
}

bool vp_step_time_make(struct vp_arena *arena, struct vp_step_time *out,
                       const struct vp_scenario *scenario) {
    struct maker m = {.arena = arena, .scenario = scenario};
    struct vp_step_tables *tables = VP_NEW(arena, struct vp_step_tables);
    struct vp_layout layout = vp_stage_layout(scenario);
    struct vp_engine_constants constants;

    *out = (struct vp_step_time){.why = no_times(scenario), .factor = 1};
    if (out->why)
        return false;
    set_ranks(scenario, out);
    vp_engine_constants_of(arena, &constants, scenario);
    vp_stack_of(&m.stack, scenario, &layout, (double)out->ranks);
    vp_stack_prepare(arena, &m.stack);
    m.fit = constants.fit;
    m.scale = m.fit ? m.fit->kernel_scale : 1;
    set_limits(&m);
    set_constants(&m, tables);
    fill_tokens(&m, tables);
    if (!(vp_curve_us(&tables->tokens, 1) > 0)) {
        out->why = "the card's rates are not known";
        return false;
    }
    tables->decode = decode_sheet(&m, &m.stack, 1);
    fill_prompts(&m, tables);
    fill_draft(&m, tables);
    set_spread(&m, out, &constants);
    out->basis = constants.basis;
    out->why = constants.why;
    out->stages = (uint64_t)tables->stages;
    out->draft_tokens = (uint64_t)tables->drafts;
    out->tables = tables;
    return true;
}
