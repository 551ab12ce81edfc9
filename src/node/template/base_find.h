/* base_find.h - what a template of this host would be called, and which one to take. */
#pragma once

#include "node/template/base_template.h"

int base_name_inputs(struct node *n, struct err *err) NODISCARD;
bool base_same_inputs(const struct node *n, const char *id); /* as those of b->inputs */
/* The newest one that fits and is not known to be damaged. ERR_NOT_FOUND, ERR_MISMATCH: there is
 * none. Any other: nobody knows, and it is to be tried again. */
int base_find(struct node *n, struct manifest *ret, struct err *err) NODISCARD;
void base_draw_id(struct node *n); /* into b->id, for a build; never one that was published */
/* The same of any template, by the beginning of its id: NAME-INPUTS. */
int template_find(struct node *n, const char *inputs, struct manifest *ret,
		  struct err *err) NODISCARD;
void template_draw_id(const struct node *n, const char *inputs, char ret[static NODE_ID_MAX + 1]);
bool template_of_inputs(const char *id, const char *inputs);

#define GROUND_PREFIX "image-"
enum { GROUND_INPUTS_SIZE = sizeof(GROUND_PREFIX) + 12 };
/* Of a ground whose disk was made of `source`. */
int ground_name_inputs(struct node *n, const char *source, char ret[static GROUND_INPUTS_SIZE],
		       struct err *err) NODISCARD;
int base_open_folder(const struct node *n, const char *id, struct err *err) NODISCARD;
/* At start: rows written before there were sums are bound to what they were made of. */
void base_bind_rows(struct node *n);
