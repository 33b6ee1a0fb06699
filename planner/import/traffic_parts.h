/* The inside of the traffic reader, for the files that make it up: traffic_reader.c (the keys, and
 * what must agree), traffic_values.c, traffic_lengths.c, traffic_arrival.c. What is wrong is a
 * diagnostic at its place; the scenario then keeps what it had. */
#ifndef VP_IMPORT_TRAFFIC_PARTS_H
#define VP_IMPORT_TRAFFIC_PARTS_H

#include "planner/import/scenario_parts.h"

/* "PATH must be WANT, not ..."; hint may be NULL. */
void vp_traffic_refuse(struct vp_reading *r, const struct vp_node *node, const char *path,
                       const char *want, const char *hint);
/* The command line has said it already, and that stays. */
bool vp_traffic_is_said(const struct vp_reading *r, enum vp_field field);
/* False: there is nothing to take, or it is said already; else the place is noted. */
bool vp_traffic_takes(struct vp_reading *r, enum vp_field field, const struct vp_node *node);
/* Likewise; a whole map is kept as text, for reports and commands to paste. */
void vp_traffic_keep_text(struct vp_reading *r, enum vp_field field, const char **member,
                          const struct vp_node *node);
/* A number of tokens above 0, "4k" among them. False: it is none; no diagnostic. */
bool vp_traffic_read_tokens(double *out, const struct vp_node *node);
bool vp_traffic_read_number(double *out, const struct vp_node *node, double least, double most);
/* Index of a map's key i among names; one that is none is reported. -1: none. */
int vp_traffic_key_of(struct vp_reading *r, const char *section, const struct vp_node *map,
                      uint32_t i, const char *const *names, int count);

/* A number of tokens, or a distribution of them. False: reported. */
bool vp_traffic_read_lengths(struct vp_reading *r, struct vp_lengths *out,
                             const struct vp_node *node, const char *path);
/* serve.prompt_tokens and output_tokens: the field holds the mean, which is what plans go by. */
void vp_traffic_read_length_field(struct vp_reading *r, enum vp_field field, uint64_t *mean,
                                  struct vp_lengths *out, const struct vp_node *node);
/* serve.arrival, as text or as a map. */
void vp_traffic_read_arrival(struct vp_reading *r, const struct vp_node *node);

#endif
