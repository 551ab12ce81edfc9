/* fuzz_config.c - promises of the configuration parser: values obey the table, and print back. */
#include "fuzz/must.h"
#include "base/config.h"

static const char *const accels[] = { "kvm", "tcg", NULL };
static const struct config_param table[] = {
	{ "name", CONFIG_TEXT, "cell", .help = "a name" },
	{ "state_dir", CONFIG_PATH, "/var/lib/x", .help = "a folder" },
	{ "limit", CONFIG_NUMBER, "5", .min = 1, .max = 99, .help = "a count" },
	{ "on", CONFIG_FLAG, "no", .help = "a switch" },
	{ "accel", CONFIG_CHOICE, "kvm", .choices = accels, .help = "an accelerator" },
};

static void must_obey(const struct config_value v[static COUNT(table)])
{
	for (size_t i = 0; i < COUNT(table); i++)
		MUST(memchr(v[i].text, 0, sizeof(v[i].text)));
	MUST(v[1].text[0] == '/' || v[1].text[0] == '\0');
	MUST(v[2].number >= 1 && v[2].number <= 99);
	MUST(v[3].number <= 1);
	MUST(v[4].number < COUNT(accels) - 1);
	MUST(strcmp(v[4].text, accels[v[4].number]) == 0);
}

/* The values written as a file are the same values. */
static void must_read_back(const struct config_value v[static COUNT(table)])
{
	AUTO(buf_done) struct buf text = BUF_MAX(CONFIG_FILE_MAX);
	struct config_value again[COUNT(table)];
	struct err err = { 0 };

	for (size_t i = 0; i < COUNT(table); i++)
		MUST(buf_printf(&text, &err, "\t%s=%s \n", table[i].name, v[i].text) == 0);
	MUST(config_parse(table, COUNT(table), buf_view(&text), "again", again, &err) == 0);
	for (size_t i = 0; i < COUNT(table); i++) {
		MUST(again[i].set && again[i].number == v[i].number);
		MUST(strcmp(again[i].text, v[i].text) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config_value v[COUNT(table)];
	struct err err = { 0 };

	if (config_parse(table, COUNT(table), (struct bytes){ data, size }, "f", v, &err) < 0) {
		must_say_why(&err);
		MUST(strncmp(err.msg, "f:", 2) == 0); /* file and line */
		return 0;
	}
	must_obey(v);
	must_read_back(v);
	return 0;
}
