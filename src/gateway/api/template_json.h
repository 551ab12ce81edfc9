/* template_json.h - templates and builds as E2B's clients want them, of what node says. */
#pragma once

#include "wire/json.h"

/* An empty text where there is none. */
const char *template_text(const json_t *t, const char *name);
json_t *template_names(const json_t *t);   /* namespace/name */
json_t *template_aliases(const json_t *t); /* name */
/* Of NODE_TEMPLATE_LIST; of NODE_TEMPLATES, which is the host's. NULL: no memory. */
json_t *template_json(const json_t *t);
json_t *template_json_host(const json_t *t);
/* With `shown` builds from `first` on. */
json_t *template_builds_json(const json_t *t, size_t first, size_t shown);
json_t *template_build_json(const json_t *b); /* with the lines of its log; takes nothing */
