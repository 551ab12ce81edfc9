/* own.h - who frees what. Everything here is header-only and allocation-free. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AUTO(fn)     __attribute__((cleanup(fn)))
#define NODISCARD    __attribute__((warn_unused_result))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Works for any object pointer without breaking the aliasing rules. */
static inline void auto_free(void *pp)
{
	void *p;

	memcpy(&p, pp, sizeof(p));
	free(p);
}

static inline void auto_close(int *fd)
{
	if (*fd >= 0)
		close(*fd); /* EINTR included: on Linux the fd is gone either way */
}

/* Move ownership out of an AUTO variable: the variable forgets, the caller holds. */
#define TAKE(p)                                  \
	({                                       \
		__auto_type take_pp_ = &(p);     \
		__auto_type take_v_ = *take_pp_; \
		*take_pp_ = NULL;                \
		take_v_;                         \
	})

/* From a member back to the object it is embedded in: how a callback finds its owner. */
#define CONTAINER_OF(p, type, member)                                                        \
	({                                                                                   \
		static_assert(__builtin_types_compatible_p(__typeof__(*(p)),                 \
							   __typeof__(((type *)0)->member)), \
			      "the pointer is not to such a member");                        \
		(type *)(void *)((char *)(p) - offsetof(type, member));                      \
	})

static inline int take_fd(int *fd)
{
	int n = *fd;

	*fd = -1;
	return n;
}
