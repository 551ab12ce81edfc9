/* leaves.c - see leaves.h. */
#include "injector/worker/leaves.h"

#include <stdio.h>

int leaves_get(struct leaves *l, const char *name, const struct identity **ret, struct err *err)
{
	struct leaf *at = &l->all[l->next];
	struct identity *made;

	for (size_t i = 0; i < LEAVES_MAX; i++)
		if (l->all[i].identity && strcmp(l->all[i].name, name) == 0) {
			*ret = l->all[i].identity;
			return 0;
		}
	if (!l->branch)
		return err_set(err, ERR_DENIED, 0, "no certificate is made for %s", name);
	if (identity_new(l->branch, name, &made, err) < 0)
		return err_wrap(err, "a certificate for %s", name);
	identity_free(at->identity);
	at->identity = made;
	snprintf(at->name, sizeof(at->name), "%s", name);
	l->next = (l->next + 1) % LEAVES_MAX;
	*ret = made;
	return 0;
}

void leaves_done(struct leaves *l)
{
	for (size_t i = 0; i < LEAVES_MAX; i++)
		identity_free(l->all[i].identity);
	authority_free(l->branch);
	*l = (struct leaves){ 0 };
}
