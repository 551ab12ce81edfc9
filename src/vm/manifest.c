/* manifest.c - a manifest as JSON, and back. */
#include "vm/manifest.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "base/clock.h"
#include "wire/json.h"

enum { DEPTH_MAX = 4, CRC_DIGITS = 8 };

static const char *const file_names[] = {
	[MANIFEST_KERNEL_FILE] = "kernel",   [MANIFEST_DISK_FILE] = "disk",
	[MANIFEST_OVERLAY_FILE] = "overlay", [MANIFEST_MEMORY_FILE] = "memory",
	[MANIFEST_STATE_FILE] = "state",
};
static_assert(COUNT(file_names) == MANIFEST_FILES, "a file without a name");

const char *manifest_file_name(enum manifest_file f)
{
	return (unsigned int)f < MANIFEST_FILES ? file_names[f] : "?";
}

void manifest_time(uint64_t wall_ns, char ret[static MANIFEST_TEXT_MAX + 1])
{
	time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(ret, MANIFEST_TEXT_MAX + 1, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Where each text of a manifest lives: one table for writing and for reading. */
struct text {
	const char *section, *name; /* no section: at the top */
	size_t offset, size;
	bool may_be_empty, may_be_missing; /* missing: when it is empty, and only then */
};

#define TEXT(section, name, member, ...)                    \
	{ section, name, offsetof(struct manifest, member), \
	  sizeof(((struct manifest *)0)->member), __VA_ARGS__ }

static const struct text texts[] = {
	TEXT(NULL, "template", template_id, false),
	TEXT(NULL, "created", created, false),
	TEXT("vmm", "version", made_with.vmm_version, false),
	TEXT("vmm", "cpu", made_with.cpu_model, false),
	TEXT("vmm", "accel", made_with.accel, false),
	TEXT("vmm", "arguments", made_with.arguments, false),
	TEXT("guest", "kernel", made_with.kernel_version, false),
	TEXT("guest", "agent", made_with.agent_version, true),
	TEXT(NULL, "packages", packages, false, true),
};

enum {                  /* members of each object, so that an unknown one is noticed */
       TOP_MEMBERS = 6, /* format, template, created, vmm, guest, files; some have more */
       VMM_MEMBERS = 4,
       GUEST_MEMBERS = 4, /* kernel, agent, vcpus, memoryMib */
       FILE_MEMBERS = 2,
};

static bool text_ok(const struct text *t, struct bytes b)
{
	if (b.len >= t->size || (b.len == 0 && !t->may_be_empty))
		return false;
	for (size_t i = 0; i < b.len; i++)
		if (b.ptr[i] < 0x20 || b.ptr[i] > 0x7e)
			return false;
	return true;
}

static char *text_at(struct manifest *m, const struct text *t)
{
	return (char *)m + t->offset;
}

static int put_texts(const struct manifest *m, json_t *top, struct err *err)
{
	struct manifest copy = *m;

	for (size_t i = 0; i < COUNT(texts); i++) {
		const struct text *t = &texts[i];
		json_t *in = t->section ? json_object_get(top, t->section) : top;
		const char *value = text_at(&copy, t);

		if (t->may_be_missing && value[0] == '\0')
			continue;
		if (!text_ok(t, (struct bytes){ (const uint8_t *)value, strnlen(value, t->size) }))
			return err_set(err, ERR_INVALID, 0, "manifest: %s is not printable ASCII",
				       t->name);
		if (json_object_set_new(in, t->name, json_string(value)) < 0)
			return err_set(err, ERR_EXHAUSTED, 0, "manifest: %s", t->name);
	}
	return 0;
}

static json_t *sum_json(const struct checksum *sum)
{
	char crc[CRC_DIGITS + 1];

	snprintf(crc, sizeof(crc), "%08" PRIx32, sum->crc);
	return json_pack("{s:I, s:s}", "length", (json_int_t)sum->length, "crc32c", crc);
}

static json_t *files_json(const struct manifest *m)
{
	AUTO(json_decrefp) json_t *files = json_object();

	for (size_t i = 0; i < MANIFEST_FILES; i++)
		if (json_object_set_new(files, file_names[i], sum_json(&m->files[i])) < 0)
			return NULL;
	return TAKE(files);
}

static int put_layers(const struct manifest *m, json_t *top, struct err *err)
{
	AUTO(json_decrefp) json_t *layers = json_array();

	if (m->n_layers == 0)
		return 0;
	for (size_t i = 0; i < m->n_layers; i++)
		if (json_array_append_new(layers, sum_json(&m->layers[i])) < 0)
			return err_set(err, ERR_EXHAUSTED, 0, "manifest: layers");
	if (json_object_set(top, "layers", layers) < 0)
		return err_set(err, ERR_EXHAUSTED, 0, "manifest: layers");
	return 0;
}

int manifest_put(const struct manifest *m, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *top = NULL;
	size_t before = out->len;

	top = json_pack("{s:i, s:{}, s:{s:i, s:i}, s:o}", "format", MANIFEST_FORMAT_VERSION, "vmm",
			"guest", "vcpus", (int)m->made_with.vcpus, "memoryMib",
			(int)m->made_with.memory_mib, "files", files_json(m));
	if (!top)
		return err_set(err, ERR_EXHAUSTED, 0, "manifest: build");
	if (put_texts(m, top, err) < 0 || put_layers(m, top, err) < 0)
		return -1;
	if (json_encode(top, out, err) < 0 || buf_add(out, BYTES_LIT("\n"), err) < 0) {
		out->len = before;
		return err_wrap(err, "manifest");
	}
	return 0;
}

static int get_section(json_t *top, const char *name, size_t members, json_t **ret, struct err *err)
{
	if (json_want_object(top, name, ret, err) < 0)
		return -1;
	if (json_object_size(*ret) != members)
		return err_set(err, ERR_INVALID, 0, "%s must have %zu members", name, members);
	return 0;
}

static int get_texts(json_t *top, struct manifest *ret, struct err *err)
{
	for (size_t i = 0; i < COUNT(texts); i++) {
		const struct text *t = &texts[i];
		json_t *in = t->section ? json_object_get(top, t->section) : top;
		struct bytes value;

		if (t->may_be_missing && !json_object_get(in, t->name))
			continue;
		if (json_want_string(in, t->name, &value, err) < 0)
			return -1;
		if (!text_ok(t, value) || !bytes_to_str(value, text_at(ret, t), t->size))
			return err_set(err, ERR_INVALID, 0, "%s: not a text of at most %zu bytes",
				       t->name, t->size - 1);
	}
	return 0;
}

static int get_size(json_t *in, const char *name, int64_t max, uint32_t *ret, struct err *err)
{
	int64_t n;

	if (json_want_int(in, name, 1, max, &n, err) < 0)
		return -1;
	*ret = (uint32_t)n;
	return 0;
}

static bool crc_parse(struct bytes text, uint32_t *ret)
{
	uint32_t n = 0;

	if (text.len != CRC_DIGITS)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.ptr[i];

		if (c >= '0' && c <= '9')
			n = n << 4 | (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			n = n << 4 | (uint32_t)(c - 'a' + 10);
		else
			return false;
	}
	*ret = n;
	return true;
}

static int get_sum(const json_t *file, struct checksum *ret, struct err *err)
{
	struct bytes crc;
	int64_t length;

	if (json_want_int(file, "length", 0, INT64_MAX, &length, err) < 0 ||
	    json_want_string(file, "crc32c", &crc, err) < 0)
		return -1;
	ret->length = (uint64_t)length;
	if (!crc_parse(crc, &ret->crc))
		return err_set(err, ERR_INVALID, 0, "crc32c must have %d hex digits", CRC_DIGITS);
	return 0;
}

static int get_layers(const json_t *top, struct manifest *ret, struct err *err)
{
	json_t *layers;

	if (!json_object_get(top, "layers"))
		return 0;
	if (json_want_array(top, "layers", &layers, err) < 0)
		return -1;
	ret->n_layers = json_array_size(layers);
	if (ret->n_layers < 1 || ret->n_layers > MANIFEST_LAYERS_MAX)
		return err_set(err, ERR_INVALID, 0, "layers must have 1 to %d entries",
			       MANIFEST_LAYERS_MAX);
	for (size_t i = 0; i < ret->n_layers; i++) {
		const json_t *layer = json_array_get(layers, i);

		if (json_object_size(layer) != FILE_MEMBERS)
			return err_set(err, ERR_INVALID, 0, "a layer must have %d members",
				       FILE_MEMBERS);
		if (get_sum(layer, &ret->layers[i], err) < 0)
			return -1;
	}
	return 0;
}

static int get_files(json_t *top, struct manifest *ret, struct err *err)
{
	json_t *files, *file;

	if (get_section(top, "files", MANIFEST_FILES, &files, err) < 0)
		return -1;
	for (size_t i = 0; i < MANIFEST_FILES; i++)
		if (get_section(files, file_names[i], FILE_MEMBERS, &file, err) < 0 ||
		    get_sum(file, &ret->files[i], err) < 0)
			return -1;
	return 0;
}

/* Members that some manifests have. */
static size_t n_more(const json_t *top)
{
	size_t packages = json_object_get(top, "packages") != NULL;

	return packages + (json_object_get(top, "layers") != NULL);
}

static int parse(struct bytes in, struct manifest *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *top = NULL;
	json_t *vmm, *guest;
	int64_t format;

	if (json_decode(in, MANIFEST_BYTES_MAX, DEPTH_MAX, &top, err) < 0 ||
	    json_want_int(top, "format", 1, INT32_MAX, &format, err) < 0)
		return -1;
	if (format != MANIFEST_FORMAT_VERSION)
		return err_set(err, ERR_INVALID, 0, "format: made with %" PRId64 ", here %d",
			       format, MANIFEST_FORMAT_VERSION);
	if (json_object_size(top) != TOP_MEMBERS + n_more(top))
		return err_set(err, ERR_INVALID, 0, "must have %d members", TOP_MEMBERS);
	if (get_section(top, "vmm", VMM_MEMBERS, &vmm, err) < 0 ||
	    get_section(top, "guest", GUEST_MEMBERS, &guest, err) < 0 ||
	    get_texts(top, ret, err) < 0 ||
	    get_size(guest, "vcpus", MANIFEST_VCPUS_MAX, &ret->made_with.vcpus, err) < 0 ||
	    get_size(guest, "memoryMib", MANIFEST_MEMORY_MIB_MAX, &ret->made_with.memory_mib, err) <
		    0)
		return -1;
	return get_files(top, ret, err) < 0 ? -1 : get_layers(top, ret, err);
}

int manifest_parse(struct bytes in, struct manifest *ret, struct err *err)
{
	struct manifest m = { 0 };

	if (parse(in, &m, err) < 0) {
		err_wrap(err, "manifest");
		if (err->sys != ENOMEM) /* which says nothing about the text */
			err->code = ERR_MISMATCH;
		return -1;
	}
	*ret = m;
	return 0;
}
