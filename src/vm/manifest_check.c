/* manifest_check.c - one comparison per reason, the first that fails is told. */
#include "vm/manifest_check.h"

#include <inttypes.h>

static const char *const names[] = {
	[MANIFEST_OK] = "ok",
	[MANIFEST_FORMAT] = "format",
	[MANIFEST_VMM_VERSION] = "vmm_version",
	[MANIFEST_CPU_MODEL] = "cpu_model",
	[MANIFEST_ACCEL] = "accel",
	[MANIFEST_ARGUMENTS] = "arguments",
	[MANIFEST_KERNEL] = "kernel",
	[MANIFEST_AGENT] = "agent",
	[MANIFEST_SIZE] = "size",
	[MANIFEST_CHECKSUM] = "checksum",
};
static_assert(COUNT(names) == MANIFEST_REASONS, "a reason without a name");

const char *manifest_reason_name(enum manifest_reason r)
{
	return (unsigned int)r < MANIFEST_REASONS ? names[r] : "?";
}

/* Arguments and versions are long, the message is not: show where the two begin to differ. */
static void skip_same(const char **a, const char **b)
{
	const char *x = *a, *y = *b;
	size_t word = 0;

	for (size_t i = 0; x[i] && x[i] == y[i]; i++)
		if (x[i] == ' ')
			word = i + 1;
	*a = x + word;
	*b = y + word;
}

static int differ(enum manifest_reason r, const char *made, const char *here,
		  enum manifest_reason *ret_reason, struct err *err)
{
	enum { SHOWN_MAX = 90 };

	skip_same(&made, &here);
	*ret_reason = r;
	return err_set(err, ERR_MISMATCH, 0, "%s: made with \"%.*s\", here \"%.*s\"",
		       manifest_reason_name(r), SHOWN_MAX, made, SHOWN_MAX, here);
}

static int check_size(const char *what, uint32_t made, uint32_t here,
		      enum manifest_reason *ret_reason, struct err *err)
{
	if (here == 0 || made == here)
		return 0;
	*ret_reason = MANIFEST_SIZE;
	return err_set(err, ERR_MISMATCH, 0, "size: made with %" PRIu32 " %s, here %" PRIu32, made,
		       what, here);
}

int manifest_check(const struct manifest *m, const struct manifest_facts *here,
		   enum manifest_reason *ret_reason, struct err *err)
{
	const struct manifest_facts *made = &m->made_with;
	const struct {
		enum manifest_reason reason;
		const char *made, *here;
		bool optional;
	} rows[] = {
		{ MANIFEST_VMM_VERSION, made->vmm_version, here->vmm_version, false },
		{ MANIFEST_CPU_MODEL, made->cpu_model, here->cpu_model, false },
		{ MANIFEST_ACCEL, made->accel, here->accel, false },
		{ MANIFEST_ARGUMENTS, made->arguments, here->arguments, false },
		{ MANIFEST_KERNEL, made->kernel_version, here->kernel_version, true },
		{ MANIFEST_AGENT, made->agent_version, here->agent_version, true },
	};

	/* sizes first: arguments depend on them, and "size" is the better reason */
	if (check_size("vcpus", made->vcpus, here->vcpus, ret_reason, err) < 0 ||
	    check_size("MiB", made->memory_mib, here->memory_mib, ret_reason, err) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (rows[i].optional && rows[i].here[0] == '\0')
			continue;
		if (strcmp(rows[i].made, rows[i].here) != 0)
			return differ(rows[i].reason, rows[i].made, rows[i].here, ret_reason, err);
	}
	*ret_reason = MANIFEST_OK;
	return 0;
}

int manifest_check_files(const struct manifest *m, const struct checksum found[MANIFEST_FILES],
			 enum manifest_reason *ret_reason, struct err *err)
{
	for (size_t i = 0; i < MANIFEST_FILES; i++) {
		const struct checksum *made = &m->files[i], *here = &found[i];

		if (checksum_eq(made, here))
			continue;
		*ret_reason = i == MANIFEST_KERNEL_FILE ? MANIFEST_KERNEL : MANIFEST_CHECKSUM;
		return err_set(err, ERR_MISMATCH, 0,
			       "file %s: made with %" PRIu64 " bytes, CRC-32C %08" PRIx32
			       ", here %" PRIu64 ", %08" PRIx32,
			       manifest_file_name((enum manifest_file)i), made->length, made->crc,
			       here->length, here->crc);
	}
	*ret_reason = MANIFEST_OK;
	return 0;
}
