/* Inside of the quantisation reader: the rules of one checkpoint, and what its parts (quant.c: one
 * format for all, quant_groups.c: formats by groups of modules) share. Nothing else includes this.
 */
#ifndef VP_IMPORT_QUANT_RULES_H
#define VP_IMPORT_QUANT_RULES_H

#include "planner/doc/node.h"
#include "planner/import/name_set.h"
#include "planner/model/model.h"

/* Modules that a checkpoint names, and how they are stored. */
struct vp_quant_rule {
    struct vp_name_set names;
    const struct vp_scheme *scheme;
    struct vp_quant_rule *next;
};

/* The first rule that names a module decides, else its class. */
struct vp_quant {
    const char *name;
    struct vp_scheme plain;
    struct vp_quant_rule *rules;
    const struct vp_scheme *by_class[VP_CLASS_COUNT]; /* NULL: plain */
};

struct vp_quant_reader {
    struct vp_ctx *ctx;
    struct vp_quant *quant;
    struct vp_quant_rule **end; /* where the next rule is linked in */
    const struct vp_node *map;  /* quantization_config */
    const struct vp_node *more; /* the same facts in hf_quant_config.json, or NULL */
    const char *method;
    bool failed; /* a diagnostic was added */
};

/* A key of the map, else of hf_quant_config.json; NULL when missing or null. */
const struct vp_node *vp_quant_get(const struct vp_quant_reader *reader, const char *key);

/* Diagnostics: a value that is wrong, a format that is not known. node: for the position. */
void vp_quant_fault(struct vp_quant_reader *reader, const struct vp_node *node, const char *key,
                    const char *what);
void vp_quant_refuse(struct vp_quant_reader *reader, const struct vp_node *node, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));

/* Values of a map: `fallback` when the key is missing or null; a wrong kind is a fault. */
uint32_t vp_quant_count(struct vp_quant_reader *reader, const struct vp_node *map, const char *key,
                        uint32_t fallback);
bool vp_quant_flag(struct vp_quant_reader *reader, const struct vp_node *map, const char *key,
                   bool fallback);
const char *vp_quant_word(struct vp_quant_reader *reader, const struct vp_node *map,
                          const char *key, const char *fallback);
/* Inputs per scale; 0 when missing, null or -1 (a whole row). */
uint32_t vp_quant_group_size(struct vp_quant_reader *reader, const struct vp_node *map,
                             const char *key);
/* [rows, columns] or "128x128"; both 0 when missing. */
void vp_quant_block(struct vp_quant_reader *reader, const struct vp_node *map, const char *key,
                    uint32_t out[2]);

/* A copy that lives as long as the rules. The name is made from the other members. */
const struct vp_scheme *vp_quant_keep(struct vp_quant_reader *reader, struct vp_scheme scheme);
/* The element format of the checkpoint's own 16-bit scales. */
enum vp_dtype vp_quant_half(const struct vp_quant *quant);

struct vp_quant_rule *vp_quant_rule_add(struct vp_quant_reader *reader,
                                        const struct vp_scheme *scheme);
/* Adds the entries of a list (or the one text) to a rule's names; NULL adds none. */
void vp_quant_rule_names(struct vp_quant_reader *reader, struct vp_quant_rule *rule,
                         const struct vp_node *list);
/* A rule that keeps what the list under `key` names in the plain type. */
void vp_quant_skip(struct vp_quant_reader *reader, const char *key);
/* The classes that are Linear modules get this scheme where they have none yet. */
void vp_quant_linear(struct vp_quant_reader *reader, const struct vp_scheme *scheme,
                     bool with_head);

/* Formats by groups (quant_groups.c). */
void vp_quant_compressed(struct vp_quant_reader *reader);
void vp_quant_modelopt(struct vp_quant_reader *reader);
void vp_quant_quark(struct vp_quant_reader *reader);
/* "quantized_layers": module -> {quant_algo, group_size}. */
void vp_quant_named_layers(struct vp_quant_reader *reader);

#endif
