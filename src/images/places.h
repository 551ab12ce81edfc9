/* places.h - the folders of the images daemon, and names of files in them.
 *
 *	data_dir/etc/      registries.conf, certs/extra.crt: what skopeo reads; made at every start
 *	data_dir/store/    blobs/, jobs/ID/ (store.h)
 *	data_dir/auth/     ID: credentials of a job, for as long as it runs; a tmpfs where there can
 *be data_dir/keys/     seal.key; no child sees it data_dir/root/     empty: where the children's
 *view of files is put together (view.h)
 */
#pragma once

#include "images/settings.h"

enum { PLACE_MAX = 512 };

struct places {
	char etc[PLACE_MAX], store[PLACE_MAX], jobs[PLACE_MAX], auth[PLACE_MAX], keys[PLACE_MAX],
		root[PLACE_MAX];
};

/* Makes them, as root for `user`, and the files of etc/. */
int places_make(const struct config_value *set, struct places *ret, struct err *err) NODISCARD;

/* Removes what jobs of before have left. */
int places_sweep(const struct places *p, struct err *err) NODISCARD;
