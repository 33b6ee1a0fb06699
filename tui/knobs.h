/* What can be turned on the what-if screen (knobs.def): which field of the scenario, how it steps,
 * for which engines it is there. Pure: from a finished scenario to its knobs, and from a knob to
 * the settings that a step or a typed value asks for. Whether these are refused is found out by
 * tui_session.h, which applies them. */
#ifndef VP_TUI_KNOBS_H
#define VP_TUI_KNOBS_H

#include "api/catalogue.h"
#include "api/levers.h"

enum vp_knob_id {
#define X(name, field, label, unit, how, engines, values) VP_KNOB_##name,
#include "tui/knobs.def"
#undef X
    VP_KNOB_COUNT
};

enum vp_knob_how {
    VP_KNOB_TOKENS, /* by 1024; large steps from one power of two to the next */
    VP_KNOB_NUMBER, /* by one; large steps double or halve */
    VP_KNOB_SHARE,  /* by a hundredth; large steps by a tenth */
    VP_KNOB_WORDS,  /* one of a list */
    VP_KNOB_SWITCH  /* on or off */
};

struct vp_knob {
    enum vp_knob_id id;
    enum vp_knob_how how;
    const char *label; /* "context"; at most 14 cells */
    const char *unit;  /* "tok"; "" */
    const char *path;  /* in the engine's own name */
    const char *value; /* as a user writes it: "32768", "fp8" */
    const char *shown; /* for people: "32,768", "on" */
    enum vp_origin origin;
    bool changed; /* by a change of the session */
};

struct vp_knob_choice {
    const char *value, *shown;
    const char *refused; /* why it cannot be; NULL: it can */
    bool present;
};

/* Those that a scenario has, in the order of the table; out has room for VP_KNOB_COUNT. `changed`
 * is left for the session. */
uint32_t vp_knobs_of(struct vp_arena *arena, struct vp_knob *out, const struct vp_scenario *now);
/* False: the scenario has no such knob. */
bool vp_knob_of(struct vp_arena *arena, struct vp_knob *out, const struct vp_scenario *now,
                enum vp_knob_id id);

enum { VP_KNOB_TRIES = 512 };
/* What a step may lead to, best first: the first of these settings that is not refused is taken.
 * by: -1, +1; -10, +10 for a large step. 0: there is no further value. */
uint32_t vp_knob_steps(struct vp_arena *arena, struct vp_lever_value out[VP_KNOB_TRIES],
                       const struct vp_scenario *now, const struct vp_catalogue *catalogue,
                       enum vp_knob_id id, int by);
/* The same for a value as a user types it: "64k", "fp8", "8". */
uint32_t vp_knob_typed(struct vp_arena *arena, struct vp_lever_value out[VP_KNOB_TRIES],
                       const struct vp_scenario *now, const struct vp_catalogue *catalogue,
                       enum vp_knob_id id, const char *text);
/* The words that a knob walks; 0: any number. `refused` is left for the session. */
uint32_t vp_knob_words(struct vp_arena *arena, struct vp_knob_choice **out,
                       const struct vp_scenario *now, const struct vp_catalogue *catalogue,
                       enum vp_knob_id id);

#endif
