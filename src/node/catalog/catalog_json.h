/* catalog_json.h - templates, builds and tags, as gateways are told. Each is NULL: no memory. */
#pragma once

#include "node/catalog/catalog.h"

json_t *template_json(const struct template *t);
json_t *template_with_builds_json(const struct template *t);
json_t *template_tags_json(const struct template *t);
json_t *build_json(const struct build *b);
const char *build_status_name(const struct build *b);
