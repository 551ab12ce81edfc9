/* fuzz_manifest.c - promises about reading a template's manifest. */
#include "fuzz/must.h"
#include "vm/manifest.h"
#include "vm/manifest_check.h"

static void must_be_text(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	MUST(n < size);
	for (size_t i = 0; i < n; i++)
		MUST(text[i] >= 0x20 && text[i] <= 0x7e);
}

static void must_be_bounded(const struct manifest *m)
{
	must_be_text(m->template_id, sizeof(m->template_id));
	must_be_text(m->created, sizeof(m->created));
	must_be_text(m->made_with.vmm_version, sizeof(m->made_with.vmm_version));
	must_be_text(m->made_with.cpu_model, sizeof(m->made_with.cpu_model));
	must_be_text(m->made_with.accel, sizeof(m->made_with.accel));
	must_be_text(m->made_with.arguments, sizeof(m->made_with.arguments));
	must_be_text(m->made_with.kernel_version, sizeof(m->made_with.kernel_version));
	must_be_text(m->made_with.agent_version, sizeof(m->made_with.agent_version));
	must_be_text(m->packages, sizeof(m->packages));
	MUST(m->n_layers <= MANIFEST_LAYERS_MAX);
	MUST(m->made_with.vcpus >= 1 && m->made_with.vcpus <= MANIFEST_VCPUS_MAX);
	MUST(m->made_with.memory_mib >= 1 && m->made_with.memory_mib <= MANIFEST_MEMORY_MIB_MAX);
}

/* Written again, it is the same manifest, and it fits what it was made with. */
static void must_read_back(const struct manifest *m)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);
	enum manifest_reason reason = MANIFEST_REASONS;
	struct manifest again;
	struct err err = { 0 };

	MUST(manifest_put(m, &text, &err) == 0);
	MUST(manifest_parse(buf_view(&text), &again, &err) == 0);
	MUST(memcmp(&again, m, sizeof(again)) == 0);
	MUST(manifest_check(m, &again.made_with, &reason, &err) == 0 && reason == MANIFEST_OK);
	MUST(manifest_check_files(m, again.files, &reason, &err) == 0 && reason == MANIFEST_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest m, untouched;
	struct err err = { 0 };

	memset(&m, 0xa5, sizeof(m));
	untouched = m;
	if (manifest_parse((struct bytes){ data, size }, &m, &err) < 0) {
		must_say_why(&err);
		MUST(err.code == ERR_MISMATCH);
		MUST(memcmp(&m, &untouched, sizeof(m)) == 0);
		return 0;
	}
	must_be_bounded(&m);
	must_read_back(&m);
	return 0;
}
