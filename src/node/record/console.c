/* console.c - lines that Linux prints at its end. */
#include "node/record/console.h"

#include "wire/base64.h"

static const struct {
	const char *word, *also; /* both on one line */
	enum console_end means;
} words[] = {
	{ "reboot: Restarting system", "", CONSOLE_RESTART },
	{ "reboot: System halted", "", CONSOLE_RESTART },
	{ "reboot: Power down", "", CONSOLE_RESTART },
	{ "Kernel panic - not syncing", "", CONSOLE_PANIC },
	{ "Kernel panic - not syncing", "Out of memory", CONSOLE_NO_MEMORY },
	{ "Kernel panic - not syncing", "deadlocked on memory", CONSOLE_NO_MEMORY },
};

static bool has(struct bytes text, const char *word)
{
	return memmem(text.ptr, text.len, word, strlen(word));
}

static enum console_end of_line(struct bytes line)
{
	enum console_end means = CONSOLE_NOTHING;

	for (size_t i = 0; i < COUNT(words); i++) /* the later ones are the more exact */
		if (has(line, words[i].word) && has(line, words[i].also))
			means = words[i].means;
	return means;
}

enum console_end console_end_in(struct bytes text)
{
	enum console_end means = CONSOLE_NOTHING, now;
	struct bytes line;

	while (bytes_next(&text, '\n', &line)) {
		now = of_line(line);
		if (now != CONSOLE_NOTHING)
			means = now;
	}
	return means;
}

json_t *console_arguments(void)
{
	return json_pack("{s:s, s:i, s:s}", "device", "console", "size", CONSOLE_BYTES_MAX,
			 "format", "base64");
}

enum console_end console_end_of(const json_t *ret)
{
	AUTO(buf_done) struct buf text = BUF_MAX(CONSOLE_BYTES_MAX);
	struct bytes coded = { (const uint8_t *)json_string_value(ret), json_string_length(ret) };
	struct err err;

	if (!coded.ptr || base64_decode(coded, &text, &err) < 0)
		return CONSOLE_NOTHING;
	return console_end_in(buf_view(&text));
}
