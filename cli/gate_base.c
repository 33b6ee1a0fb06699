#include "cli/gate_base.h"

#include <stdlib.h>
#include <string.h>

#include "cli/git_run.h"
#include "cli/git_tree.h"
#include "planner/base/text.h"
#include "planner/import/document.h"

struct repository {
    struct vp_ctx *ctx;
    const char *folder; /* where git is asked */
    const char *top;
    bool shallow;
};

/* ---- a folder ---- */

static const char *without_name(struct vp_ctx *ctx, const char *input) {
    const char *name;
    return vp_input_split(ctx, &name, input);
}

static enum vp_status base_of_folder(struct vp_ctx *ctx, struct vp_gate_base *out,
                                     const char *folder, struct vp_gate_input *inputs,
                                     size_t count) {
    if (vp_io_kind(ctx, folder) != VP_FILE_DIRECTORY) {
        vp_diag_add(ctx->diags, VP_D_BASE_MISSING, NULL, "--base-dir %s is not a folder", folder);
        return VP_ERR_INPUT;
    }
    for (size_t i = 0; i < count; i++) {
        const char *file = without_name(ctx, inputs[i].head);
        if (vp_text_eq(file, "-"))
            continue;
        if (file[0] == '/' || file[0] == '~') {
            vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                        "with --base-dir a file is named from the current directory, not as %s",
                        file);
            return VP_ERR_INPUT;
        }
        const char *before = vp_io_join(ctx, folder, file);
        if (vp_io_kind(ctx, before) != VP_FILE_NONE)
            inputs[i].base = before;
    }
    out->io = ctx->io;
    out->label = vp_arena_printf(ctx->arena, "folder %s", folder);
    return VP_OK;
}

/* ---- the repository ---- */

static enum vp_status none(struct vp_ctx *ctx, const char *why) {
    vp_diag_add(ctx->diags, VP_D_BASE_NONE, NULL, "%s: budgets are checked, growth is not", why);
    vp_diag_hint(ctx->diags, "--base REF, or --base-dir DIR");
    return VP_OK;
}

/* Git's answer; NULL: it said no. */
static enum vp_status ask(struct repository *r, const char **out, struct vp_git_answer *answer,
                          const char *const *words) {
    enum vp_status status = vp_git_run(r->ctx, answer, r->folder, words);
    *out = status == VP_OK && answer->code == 0 ? vp_buf_text(&answer->out) : NULL;
    return status;
}

/* The next line; NULL at the end. */
static const char *next_line(struct repository *r, const char **at) {
    size_t n = strcspn(*at, "\n");
    const char *line = **at ? vp_arena_text(r->ctx->arena, *at, n) : NULL;
    *at += n + ((*at)[n] != '\0');
    return line;
}

/* No repository is no fault, as long as nobody asked for a base. *found: there is one. */
static enum vp_status open_repository(struct repository *r, bool *found, bool wanted) {
    static const char *const WORDS[] = {"rev-parse", "--show-toplevel", "--is-shallow-repository",
                                        NULL};
    struct vp_git_answer answer;
    const char *text;
    enum vp_status status = ask(r, &text, &answer, WORDS);
    *found = status == VP_OK && text;
    if (status != VP_OK)
        return status;
    if (text) {
        r->top = next_line(r, &text);
        r->shallow = vp_text_eq(next_line(r, &text), "true");
        return VP_OK;
    }
    bool no_repository = strstr(answer.error, "not a git repository");
    if (answer.code == VP_GIT_NOT_FOUND || no_repository) {
        const char *why = no_repository ? "this is not a git repository" : "there is no git here";
        if (!wanted)
            return none(r->ctx, why);
        vp_diag_add(r->ctx->diags, no_repository ? VP_D_BASE_MISSING : VP_D_GIT_FAILED, NULL, "%s",
                    why);
        vp_diag_hint(r->ctx->diags, "--base-dir DIR compares with a folder");
        return no_repository ? VP_ERR_INPUT : VP_ERR_ENV;
    }
    vp_diag_add(r->ctx->diags, VP_D_GIT_FAILED, NULL, "git does not open the repository: %s",
                answer.error);
    if (strstr(answer.error, "ownership"))
        vp_diag_hint(r->ctx->diags, "git config --global --add safe.directory \"$PWD\"");
    return VP_ERR_ENV;
}

/* ---- the reference ---- */

struct reference {
    const char *name; /* "origin/main"; NULL: none */
    const char *id;   /* its commit */
    bool is_base;     /* it is the merge base itself */
};

static enum vp_status commit_of(struct repository *r, const char **id, const char *name) {
    const char *commit = vp_arena_printf(r->ctx->arena, "%s^{commit}", name);
    const char *const words[] = {"rev-parse",        "--verify", "--quiet",
                                 "--end-of-options", commit,     NULL};
    struct vp_git_answer answer;
    const char *text;
    enum vp_status status = ask(r, &text, &answer, words);
    *id = text ? next_line(r, &text) : NULL;
    return status;
}

static void how_to_get(struct repository *r) {
    if (getenv("GITLAB_CI"))
        vp_diag_hint(r->ctx->diags,
                     "GIT_DEPTH: 0 in the job's variables, or git fetch --unshallow");
    else
        vp_diag_hint(r->ctx->diags, "%s",
                     r->shallow
                         ? "the clone is shallow: fetch-depth: 0 in actions/checkout, or git fetch "
                           "--unshallow"
                         : "git fetch origin, or --base REF with one that is there");
}

static enum vp_status missing(struct repository *r, const char *name, const char *who) {
    vp_diag_add(r->ctx->diags, VP_D_BASE_MISSING, NULL, "%s names %s, which is not in this clone",
                who, name);
    how_to_get(r);
    return VP_ERR_INPUT;
}

/* The first of the names that is there, as a branch of the remote or a local one. */
static enum vp_status first_of(struct repository *r, struct reference *out,
                               const char *const *names, size_t count) {
    for (size_t i = 0; i < count && !out->id; i++) {
        enum vp_status status = commit_of(r, &out->id, names[i]);
        if (status != VP_OK)
            return status;
        out->name = out->id ? names[i] : NULL;
    }
    return VP_OK;
}

/* The default branch: the remote's, else one of the usual names. One question for all of them. */
static enum vp_status default_branch(struct repository *r, struct reference *out) {
    static const char *const WORDS[] = {"for-each-ref",
                                        "--format=%(objectname) %(refname)",
                                        "refs/remotes/origin/HEAD",
                                        "refs/remotes/origin/main",
                                        "refs/remotes/origin/master",
                                        "refs/heads/main",
                                        "refs/heads/master",
                                        NULL};
    static const char *const NAMES[] = {"origin/HEAD", "origin/main", "origin/master", "main",
                                        "master"};
    enum { COUNT = sizeof NAMES / sizeof *NAMES };
    struct vp_git_answer answer;
    const char *text;
    size_t best = COUNT;
    enum vp_status status = ask(r, &text, &answer, WORDS);
    for (const char *line; text && (line = next_line(r, &text));) {
        const char *space = strchr(line, ' ');
        for (size_t i = 0; space && i < best; i++)
            if (vp_text_eq(space + 1, WORDS[2 + i])) {
                best = i;
                out->name = NAMES[i];
                out->id = vp_arena_text(r->ctx->arena, line, (size_t)(space - line));
            }
    }
    return status;
}

/* A branch that the CI system names: of the remote, else as it is. */
static enum vp_status target_branch(struct repository *r, struct reference *out, const char *branch,
                                    const char *variable) {
    const char *const names[] = {vp_arena_printf(r->ctx->arena, "origin/%s", branch), branch};
    enum vp_status status = first_of(r, out, names, 2);
    if (status == VP_OK && !out->id)
        status = missing(r, branch, variable);
    return status;
}

static enum vp_status exactly(struct repository *r, struct reference *out, const char *name,
                              const char *who) {
    out->name = name;
    enum vp_status status = commit_of(r, &out->id, name);
    if (status == VP_OK && !out->id)
        status = missing(r, name, who);
    return status;
}

static const char *from_environment(const char *variable) {
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

static bool is_asked_for(const struct vp_args *args) {
    return args->value[VP_OPTION_BASE] || from_environment("GITHUB_BASE_REF") ||
           from_environment("CI_MERGE_REQUEST_DIFF_BASE_SHA") ||
           from_environment("CI_MERGE_REQUEST_TARGET_BRANCH_NAME");
}

static enum vp_status find_reference(struct repository *r, struct reference *out,
                                     const struct vp_args *args) {
    static const char GITHUB[] = "GITHUB_BASE_REF", DIFF_BASE[] = "CI_MERGE_REQUEST_DIFF_BASE_SHA",
                      TARGET[] = "CI_MERGE_REQUEST_TARGET_BRANCH_NAME";
    if (args->value[VP_OPTION_BASE])
        return exactly(r, out, args->value[VP_OPTION_BASE], "--base");
    if (from_environment(GITHUB))
        return target_branch(r, out, from_environment(GITHUB), GITHUB);
    if (from_environment(DIFF_BASE)) {
        out->is_base = true;
        return exactly(r, out, from_environment(DIFF_BASE), DIFF_BASE);
    }
    if (from_environment(TARGET))
        return target_branch(r, out, from_environment(TARGET), TARGET);
    return default_branch(r, out);
}

static enum vp_status merge_base(struct repository *r, const char **commit,
                                 const struct reference *reference) {
    const char *const words[] = {"merge-base", "HEAD", reference->id, NULL};
    struct vp_git_answer answer;
    const char *text;
    if (reference->is_base) {
        *commit = reference->id;
        return VP_OK;
    }
    enum vp_status status = ask(r, &text, &answer, words);
    *commit = text ? next_line(r, &text) : NULL;
    if (status != VP_OK || *commit)
        return status;
    vp_diag_add(r->ctx->diags, VP_D_BASE_MISSING, NULL, "HEAD and %s have no commit in common%s",
                reference->name, r->shallow ? " in this clone" : "");
    if (r->shallow)
        how_to_get(r);
    else
        vp_diag_hint(r->ctx->diags, "--base REF with a commit that HEAD comes from");
    return VP_ERR_INPUT;
}

/* ---- the inputs ---- */

static enum vp_status place_inputs(struct repository *r, struct vp_gate_input *inputs,
                                   size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *file = vp_document_expand(r->ctx, without_name(r->ctx, inputs[i].head));
        bool outside = false;
        if (vp_text_eq(file, "-"))
            continue;
        inputs[i].base = vp_git_tree_before(r->ctx, file, &outside);
        if (!outside)
            continue;
        vp_diag_add(r->ctx->diags, VP_D_BAD_OPTION, NULL, "%s lies outside of the repository %s",
                    file, r->top);
        vp_diag_hint(r->ctx->diags, "run the gate once for each repository");
        return VP_ERR_INPUT;
    }
    return VP_OK;
}

static enum vp_status base_of_git(struct vp_ctx *ctx, struct vp_gate_base *out,
                                  const struct vp_args *args, struct vp_gate_input *inputs,
                                  size_t count) {
    struct repository r = {.ctx = ctx};
    struct reference reference = {0};
    bool found;
    for (size_t i = 0; i < count && !r.folder; i++)
        if (!vp_text_eq(inputs[i].head, "-"))
            r.folder =
                vp_io_dirname(ctx, vp_document_expand(ctx, without_name(ctx, inputs[i].head)));
    if (getenv("GIT_DIR") || (r.folder && vp_io_kind(ctx, r.folder) != VP_FILE_DIRECTORY))
        r.folder = NULL; /* git takes the current folder for the top; the input is missing */
    enum vp_status status = open_repository(&r, &found, is_asked_for(args));
    if (status != VP_OK || !found)
        return status;
    status = find_reference(&r, &reference, args);
    if (status != VP_OK)
        return status;
    if (!reference.id && r.shallow) {
        vp_diag_add(ctx->diags, VP_D_BASE_MISSING, NULL,
                    "the default branch is not in this shallow clone");
        how_to_get(&r);
        return VP_ERR_INPUT;
    }
    if (!reference.id)
        return none(ctx, "no branch to compare with was found (origin/HEAD, main, master)");
    status = merge_base(&r, &out->commit, &reference);
    if (status == VP_OK)
        status = vp_git_tree_open(ctx, r.top, out->commit);
    if (status != VP_OK)
        return status;
    out->io = &vp_git_tree_io;
    out->label = reference.is_base
                     ? "CI_MERGE_REQUEST_DIFF_BASE_SHA"
                     : vp_arena_printf(ctx->arena, "merge base of HEAD and %s", reference.name);
    return place_inputs(&r, inputs, count);
}

enum vp_status vp_gate_base_find(struct vp_ctx *ctx, struct vp_gate_base *out,
                                 const struct vp_args *args, struct vp_gate_input *inputs,
                                 size_t count) {
    const char *folder = args->value[VP_OPTION_BASE_DIR];
    *out = (struct vp_gate_base){0};
    if (folder && args->value[VP_OPTION_BASE]) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--base and --base-dir exclude each other");
        return VP_ERR_INPUT;
    }
    return folder ? base_of_folder(ctx, out, vp_document_expand(ctx, folder), inputs, count)
                  : base_of_git(ctx, out, args, inputs, count);
}

bool vp_gate_base_possible(struct vp_ctx *ctx, const char *folder) {
    static const char *const words[] = {"rev-parse", "--git-dir", NULL};
    struct vp_git_answer answer;
    return vp_git_run(ctx, &answer, folder, words) == VP_OK && answer.code == 0;
}

const char *vp_gate_base_here(struct vp_ctx *ctx) {
    static const char *const words[] = {"rev-parse", "--show-prefix", NULL};
    struct vp_git_answer answer;

    if (vp_git_run(ctx, &answer, NULL, words) != VP_OK || answer.code != 0)
        return NULL;
    const char *text = vp_buf_text(&answer.out);
    size_t n = strcspn(text, "\n");
    return n > 0 ? vp_arena_text(ctx->arena, text, n) : NULL;
}

void vp_gate_base_close(void) { vp_git_tree_close(); }
