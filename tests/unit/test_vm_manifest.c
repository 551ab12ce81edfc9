/* test_vm_manifest.c - what is written is read back, what is not ours is refused, and why. */
#include "tests/unit/check.h"

#include "base/clock.h"
#include "vm/manifest.h"
#include "vm/manifest_check.h"

static const struct manifest sample = {
	.template_id = "base",
	.created = "2026-11-15T01:02:03Z",
	.made_with = {
		.vmm_version = "10.0.2",
		.cpu_model = "qemu64,+ssse3",
		.accel = "tcg",
		.arguments = "-machine microvm,acpi=off -cpu qemu64 -smp 2 -m 512",
		.kernel_version = "6.12.1",
		.agent_version = "0.1.0",
		.vcpus = 2,
		.memory_mib = 512,
	},
	.files = {
		{ 18000000, 0x01020304 },
		{ 1ull << 32, 0xfffffffe },
		{ 196616, 0 },
		{ 512ull << 20, 0xe3069283 },
		{ 43000, 1 },
	},
};

static void put(const struct manifest *m, struct buf *out)
{
	struct err err = { 0 };

	if (manifest_put(m, out, &err) < 0)
		fail_msg("%s", err.msg);
}

static void what_is_written_is_read_back(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);
	AUTO(buf_done) struct buf again = BUF_MAX(MANIFEST_BYTES_MAX);
	struct manifest back;
	struct err err = { 0 };

	(void)state;
	put(&sample, &text);
	assert_int_equal(manifest_parse(buf_view(&text), &back, &err), 0);
	assert_memory_equal(&back, &sample, sizeof(sample));
	put(&back, &again);
	assert_true(bytes_eq(buf_view(&text), buf_view(&again)));
}

static void package_hosts_are_written_when_there_are_some(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);
	struct manifest m = sample, back;
	struct err err = { 0 };

	(void)state;
	snprintf(m.packages, sizeof(m.packages), "a.example b.example");
	put(&m, &text);
	assert_int_equal(manifest_parse(buf_view(&text), &back, &err), 0);
	assert_memory_equal(&back, &m, sizeof(m));
	memset(m.packages, 'x', sizeof(m.packages) - 1); /* all that there can be has room */
	memset(m.made_with.arguments, 'x', sizeof(m.made_with.arguments) - 1);
	text.len = 0;
	put(&m, &text);
}

static void sums_of_lower_layers_are_written_when_there_are_some(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);
	struct manifest m = sample, back;
	struct err err = { 0 };

	(void)state;
	m.n_layers = 2;
	m.layers[1] = (struct checksum){ 196616, 0xfedcba98 }; /* of the lowest it is not known */
	put(&m, &text);
	assert_int_equal(manifest_parse(buf_view(&text), &back, &err), 0);
	assert_memory_equal(&back, &m, sizeof(m));
	m.n_layers = MANIFEST_LAYERS_MAX; /* all that there can be has room */
	for (size_t i = 0; i < m.n_layers; i++)
		m.layers[i] = (struct checksum){ INT64_MAX, UINT32_MAX };
	memset(m.packages, 'x', sizeof(m.packages) - 1);
	memset(m.made_with.arguments, 'x', sizeof(m.made_with.arguments) - 1);
	text.len = 0;
	put(&m, &text);
	assert_int_equal(manifest_parse(buf_view(&text), &back, &err), 0);
	assert_memory_equal(&back, &m, sizeof(m));
}

static void writes_no_text_it_would_not_read(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);
	struct manifest m = sample;
	struct err err = { 0 };

	(void)state;
	m.made_with.cpu_model[0] = '\n';
	assert_int_equal(manifest_put(&m, &text, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	m.made_with.cpu_model[0] = '\0';
	assert_int_equal(manifest_put(&m, &text, &err), -1);
	assert_int_equal(text.len, 0);
}

/* Replaces the first `from` in the sample's text by `to`. */
static void edit(struct buf *out, const char *from, const char *to)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);
	struct bytes all;
	const uint8_t *at;
	size_t before;
	struct err err;

	put(&sample, &text);
	all = buf_view(&text);
	at = memmem(all.ptr, all.len, from, strlen(from));
	assert_non_null(at);
	before = (size_t)(at - all.ptr);
	assert_int_equal(buf_add(out, bytes_head(all, before), &err), 0);
	assert_int_equal(buf_add(out, bytes_str(to), &err), 0);
	assert_int_equal(buf_add(out, bytes_tail(all, before + strlen(from)), &err), 0);
}

static void what_is_not_ours_is_refused(void **state)
{
	static const struct {
		const char *name, *from, *to, *why;
	} rows[] = {
		{ "another format", "\"format\":1", "\"format\":2", "made with 2, here 1" },
		{ "format missing", "\"format\":1,", "", "format is missing" },
		{ "no format", "\"format\":1", "\"format\":{}", "format must be" },
		{ "unknown member", "\"format\":1", "\"format\":1,\"x\":1", "6 members" },
		{ "unknown in section", "\"vmm\":{", "\"vmm\":{\"x\":1,", "vmm must have 4" },
		{ "section is text", "\"files\":{", "\"y\":[{}],\"f\":{", "6 members" },
		{ "id missing", "\"template\":\"base\"", "\"templat\":\"base\"", "template is" },
		{ "empty text", "\"tcg\"", "\"\"", "accel: not a text" },
		{ "line end in text", "\"tcg\"", "\"tcg\\n\"", "accel: not a text" },
		{ "not ASCII", "\"tcg\"", "\"tc\xc3\xa9\"", "accel: not a text" },
		{ "NUL in text", "\"tcg\"", "\"tcg\\u0000\"", "" },
		{ "number for text", "\"tcg\"", "7", "accel must be a string" },
		{ "no vcpus", "\"vcpus\":2", "\"vcpus\":0", "vcpus must be" },
		{ "too many vcpus", "\"vcpus\":2", "\"vcpus\":256", "vcpus must be" },
		{ "negative memory", "\"memoryMib\":512", "\"memoryMib\":-1", "memoryMib must" },
		{ "upper-case crc", "\"e3069283\"", "\"E3069283\"", "crc32c must have" },
		{ "short crc", "\"e3069283\"", "\"e306928\"", "crc32c must have" },
		{ "negative length", "43000", "-1", "length must be" },
		{ "length over 63 bits", "43000", "9223372036854775808", "" },
		{ "file missing", "\"state\":", "\"status\":", "state is missing" },
		{ "member twice", "\"format\":1", "\"format\":1,\"format\":1", "duplicate" },
		{ "no packages", "\"format\":1", "\"format\":1,\"packages\":\"\"",
		  "packages: not" },
		{ "lines of packages", "\"format\":1", "\"format\":1,\"packages\":\"a\\nb\"",
		  "packages: not" },
		{ "no layers", "\"format\":1", "\"format\":1,\"layers\":[]", "1 to 16 entries" },
		{ "layers of nothing", "\"format\":1", "\"format\":1,\"layers\":null",
		  "layers is missing" },
		{ "too many layers", "\"format\":1",
		  "\"format\":1,\"layers\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]", "1 to 16" },
		{ "a layer is a number", "\"format\":1", "\"format\":1,\"layers\":[1]",
		  "a layer must have 2" },
		{ "unknown in a layer", "\"format\":1",
		  "\"format\":1,\"layers\":[{\"length\":1,\"crc\":\"00000000\"}]", "crc32c is" },
		{ "not an object", "{", "[{", "" },
		{ "cut off", "\"}\n", "", "" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);
		struct manifest back;
		struct err err = { 0 };

		edit(&text, row->from, row->to);
		assert_int_equal(manifest_parse(buf_view(&text), &back, &err), -1);
		assert_int_equal(err.code, ERR_MISMATCH);
		if (!strstr(err.msg, row->why))
			fail_msg("\"%s\" lacks \"%s\"", err.msg, row->why);
	}
}

static void size_and_depth_are_bounded(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(4 * MANIFEST_BYTES_MAX);
	AUTO(buf_done) struct buf deep = BUF_MAX(4 * MANIFEST_BYTES_MAX);
	struct manifest back;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < MANIFEST_BYTES_MAX; i++)
		assert_int_equal(buf_add(&text, BYTES_LIT(" "), &err), 0);
	put(&sample, &text);
	assert_int_equal(manifest_parse(buf_view(&text), &back, &err), -1);
	assert_int_equal(err.code, ERR_MISMATCH);
	edit(&deep, "\"tcg\"", "[[[[[[]]]]]]");
	assert_int_equal(manifest_parse(buf_view(&deep), &back, &err), -1);
	assert_non_null(strstr(err.msg, "nested"));
}

#define SET(member, value) .offset = offsetof(struct manifest_facts, member), .text = (value)

static void each_difference_has_its_reason(void **state)
{
	static const struct {
		const char *name;
		size_t offset;
		const char *text;
		enum manifest_reason want;
		const char *made, *here;
	} rows[] = {
		{ "vmm version", SET(vmm_version, "10.0.3"), MANIFEST_VMM_VERSION, "10.0.2",
		  "10.0.3" },
		{ "cpu model", SET(cpu_model, "host"), MANIFEST_CPU_MODEL, "qemu64,+ssse3",
		  "host" },
		{ "accelerator", SET(accel, "kvm"), MANIFEST_ACCEL, "tcg", "kvm" },
		{ "arguments",
		  SET(arguments, "-machine microvm,acpi=off -cpu qemu64 -smp 4 -m 512"),
		  MANIFEST_ARGUMENTS, "\"2 -m 512\"", "\"4 -m 512\"" },
		{ "kernel", SET(kernel_version, "6.12.2"), MANIFEST_KERNEL, "6.12.1", "6.12.2" },
		{ "agent", SET(agent_version, "0.2.0"), MANIFEST_AGENT, "0.1.0", "0.2.0" },
		{ "any kernel will do", SET(kernel_version, ""), MANIFEST_OK, "", "" },
		{ "any agent will do", SET(agent_version, ""), MANIFEST_OK, "", "" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct manifest_facts here = sample.made_with;
		enum manifest_reason reason = MANIFEST_REASONS;
		struct err err = { 0 };
		int want = row->want == MANIFEST_OK ? 0 : -1;

		snprintf((char *)&here + row->offset, strlen(row->text) + 1, "%s", row->text);
		assert_int_equal(manifest_check(&sample, &here, &reason, &err), want);
		assert_string_equal(manifest_reason_name(reason), manifest_reason_name(row->want));
		assert_int_equal(err.code, want ? ERR_MISMATCH : ERR_NONE);
		if (!strstr(err.msg, row->made) || !strstr(err.msg, row->here))
			fail_msg("\"%s\" must name \"%s\" and \"%s\"", err.msg, row->made,
				 row->here);
	}
}

static void sizes_must_match_when_asked(void **state)
{
	static const struct {
		const char *name;
		uint32_t vcpus, memory_mib;
		const char *why;
	} rows[] = {
		{ "the same", 2, 512, NULL },
		{ "any", 0, 0, NULL },
		{ "more vcpus", 4, 512, "made with 2 vcpus, here 4" },
		{ "less memory", 2, 256, "made with 512 MiB, here 256" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct manifest_facts here = sample.made_with;
		enum manifest_reason reason = MANIFEST_REASONS;
		struct err err = { 0 };

		here.vcpus = row->vcpus;
		here.memory_mib = row->memory_mib;
		assert_int_equal(manifest_check(&sample, &here, &reason, &err), row->why ? -1 : 0);
		assert_int_equal(reason, row->why ? MANIFEST_SIZE : MANIFEST_OK);
		if (row->why && !strstr(err.msg, row->why))
			fail_msg("\"%s\" lacks \"%s\"", err.msg, row->why);
	}
}

static void a_changed_file_is_noticed(void **state)
{
	(void)state;
	for (size_t i = 0; i < MANIFEST_FILES; i++) {
		struct checksum found[MANIFEST_FILES];
		enum manifest_reason reason = MANIFEST_REASONS;
		struct err err = { 0 };

		memcpy(found, sample.files, sizeof(found));
		assert_int_equal(manifest_check_files(&sample, found, &reason, &err), 0);
		assert_int_equal(reason, MANIFEST_OK);
		found[i].crc ^= 1u << i;
		assert_int_equal(manifest_check_files(&sample, found, &reason, &err), -1);
		assert_int_equal(reason,
				 i == MANIFEST_KERNEL_FILE ? MANIFEST_KERNEL : MANIFEST_CHECKSUM);
		assert_non_null(strstr(err.msg, manifest_file_name((enum manifest_file)i)));
		found[i] = sample.files[i];
		found[i].length++;
		assert_int_equal(manifest_check_files(&sample, found, &reason, &err), -1);
	}
}

static void time_is_rfc3339(void **state)
{
	char text[MANIFEST_TEXT_MAX + 1];

	(void)state;
	manifest_time(1794704523ull * NSEC_PER_SEC + 999, text);
	assert_string_equal(text, "2026-11-15T01:02:03Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(package_hosts_are_written_when_there_are_some),
		cmocka_unit_test(sums_of_lower_layers_are_written_when_there_are_some),
		cmocka_unit_test(writes_no_text_it_would_not_read),
		cmocka_unit_test(what_is_not_ours_is_refused),
		cmocka_unit_test(size_and_depth_are_bounded),
		cmocka_unit_test(each_difference_has_its_reason),
		cmocka_unit_test(sizes_must_match_when_asked),
		cmocka_unit_test(a_changed_file_is_noticed),
		cmocka_unit_test(time_is_rfc3339),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
