/* Shipped model profiles: each can be read, adds up to the parameters it names, and is found by
 * all of its names. */
#include <inttypes.h>
#include <string.h>

#include "planner/import/model_reader.h"
#include "planner/import/profile.h"
#include "planner/ops/ops.h"
#include "tests/unit/fixture.h"

static char **profile_names(struct fixture *f, size_t *count) {
    char **names;

    fixture_begin(f);
    f->ctx.profiles = "profiles";
    assert_int_equal(vp_profile_names(&f->ctx, &names, count, &VP_PROFILE_MODEL), VP_OK);
    assert_true(*count >= 60);
    return names;
}

static struct vp_node *root_of(struct fixture *f, const char *name) {
    struct vp_profile profile = {0};

    assert_int_equal(vp_profile_find(&f->ctx, &profile, &VP_PROFILE_MODEL, name), VP_OK);
    if (!profile.root)
        fail_msg("no profile is called %s", name);
    return profile.root;
}

static void parameters_add_up(void **state) {
    struct fixture f;
    size_t count;
    char **names = profile_names(&f, &count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        struct vp_pos pos = {.file = "test"};
        struct vp_node *name = vp_node_scalar(&f.ctx, VP_NODE_TEXT, names[i], pos);
        struct vp_model *model = NULL;
        uint64_t params;
        const struct vp_node *given = vp_node_get(root_of(&f, names[i]), "params");
        if (vp_model_read(&f.ctx, &model, name, ".") != VP_OK || f.diags.count > 0)
            fail_msg("%s: %s", names[i], f.diags.count ? f.diags.items[0].message : "refused");
        if (!given)
            continue; /* only exact numbers stand there */
        assert_true(vp_node_u64(&params, given));
        uint64_t total = vp_ops_params(model).total;
        if (total != params)
            fail_msg("%s: %" PRIu64 " parameters, the profile says %" PRIu64, names[i], total,
                     params);
    }
    fixture_end(&f);
}

static void names_lead_to_their_profile(void **state) {
    struct fixture f;
    size_t count;
    char **names = profile_names(&f, &count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const struct vp_node *aliases = vp_node_get(root_of(&f, names[i]), "aliases");
        const char *basis = vp_node_text(vp_node_get(root_of(&f, names[i]), "basis"));
        assert_non_null(basis);
        assert_true(strcmp(basis, "read") == 0 || strcmp(basis, "recalled") == 0);
        assert_string_equal(vp_node_text(vp_node_get(root_of(&f, names[i]), "id")), names[i]);
        for (uint32_t k = 0; aliases && k < aliases->count; k++) {
            const struct vp_node *root = root_of(&f, vp_node_text(aliases->items[k]));
            assert_string_equal(vp_node_text(vp_node_get(root, "id")), names[i]);
        }
    }
    fixture_end(&f);
}

/* Qwen3.5-35B-A3B: a prediction layer of 844640768 parameters on top of what counts: 2 x 2048^2 and
 * 3 x 2048, and a layer with full attention. */
static void prediction_layers(void **state) {
    struct fixture f;
    size_t count;
    struct vp_model *model;
    struct vp_pos pos = {.file = "test"};

    (void)state;
    profile_names(&f, &count);
    struct vp_node *name = vp_node_scalar(&f.ctx, VP_NODE_TEXT, "qwen3.5-35b-a3b", pos);
    assert_int_equal(vp_model_read(&f.ctx, &model, name, "."), VP_OK);
    const struct vp_extra *mtp = NULL;
    for (uint32_t i = 0; i < model->extra_count; i++)
        if (strcmp(model->extras[i].name, "MTP layers") == 0)
            mtp = &model->extras[i];
    assert_non_null(mtp);
    assert_false(mtp->counted || mtp->loaded);
    assert_int_equal(vp_ops_extra_parameters(model, mtp).v, 844640768);
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_add_up),
        cmocka_unit_test(names_lead_to_their_profile),
        cmocka_unit_test(prediction_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
