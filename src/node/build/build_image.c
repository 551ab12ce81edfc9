/* build_image.c - see build_image.h. */
#include "node/build/build_image.h"

#include <inttypes.h>
#include <stdio.h>

enum { CONFIG_DEPTH = 8 };

static int take_env(const json_t *config, struct build_context *c, struct err *err)
{
	json_t *env = NULL, *pair;
	struct bytes name, value;
	size_t i;

	if (json_may_array(config, "env", &env, err) < 0)
		return -1;
	/* clang-format off */
	json_array_foreach(env, i, pair) {
		value = json_bytes(pair);
		if (json_is_string(pair) && bytes_cut(&value, '=', &name) && name.len > 0 &&
		    build_context_set_env(c, name, value, err) < 0)
			return -1;
	}
	/* clang-format on */
	return 0;
}

/* {"env":["A=b"], "repository":"<64 hex>", ...} */
static int take_config(struct build_image *i, struct bytes config, struct build_context *c,
		       struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;
	struct bytes repository;

	if (json_decode(config, IMAGES_CONFIG_MAX, CONFIG_DEPTH, &v, err) < 0 ||
	    json_want_string(v, "repository", &repository, err) < 0)
		return -1;
	if (repository.len != SHA256_HEX ||
	    !bytes_to_str(repository, i->repository, sizeof(i->repository)))
		return err_set(err, ERR_INVALID, 0, "repository is no hash");
	return take_env(v, c, err);
}

int build_image_take(struct build_image *i, const char *digest, struct bytes config,
		     struct build_context *c, struct err *err)
{
	snprintf(i->digest, sizeof(i->digest), "%s", digest);
	build_context_done(c);
	if (build_context_init(c, err) < 0)
		return -1;
	if (take_config(i, config, c, err) == 0)
		return 0;
	build_context_done(c);
	return -1;
}

void build_image_source(const struct build_image *i, uint32_t disk_mib, const char *agent,
			char ret[static BUILD_SOURCE_MAX + 1])
{
	snprintf(ret, BUILD_SOURCE_MAX + 1, "%s %" PRIu32 " %s %s", i->digest, disk_mib, agent,
		 i->repository);
}
