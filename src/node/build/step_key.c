/* step_key.c - a hash in which no two different lists of texts look the same. */
#include "node/build/step_key.h"

#include <inttypes.h>
#include <stdio.h>

/* Another number here, and nothing that was kept before is found: when what an instruction does
 * has changed. */
#define STEP_FORMAT "1"

/* With its length before it: "ab","c" is not "a","bc". */
static void add(struct sha256 *s, struct bytes text)
{
	char length[24];
	int n = snprintf(length, sizeof(length), "%zu:", text.len);

	sha256_add(s, (struct bytes){ (const uint8_t *)length, (size_t)n });
	sha256_add(s, text);
}

static void finish(struct sha256 *s, char ret[static STEP_KEY_LENGTH + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t sum[SHA256_SIZE];

	sha256_end(s, sum);
	for (size_t i = 0; i < STEP_KEY_LENGTH / 2; i++) {
		ret[2 * i] = digits[sum[i] >> 4];
		ret[2 * i + 1] = digits[sum[i] & 15];
	}
	ret[STEP_KEY_LENGTH] = '\0';
}

void step_key_first(const char *team, const char *ground_or_snapshot,
		    char ret[static STEP_KEY_LENGTH + 1])
{
	struct sha256 s;

	sha256_init(&s);
	add(&s, BYTES_LIT(STEP_FORMAT));
	add(&s, bytes_str(team));
	add(&s, bytes_str(ground_or_snapshot));
	finish(&s, ret);
}

void step_key_next(const struct recipe_step *s, char key[static STEP_KEY_LENGTH + 1])
{
	struct sha256 sum;

	sha256_init(&sum);
	add(&sum, bytes_str(key));
	add(&sum, bytes_str(recipe_kind_name(s->kind)));
	for (size_t i = 0; i < s->n; i++)
		add(&sum, recipe_arg(s, i));
	add(&sum, BYTES_LIT("files"));
	add(&sum, bytes_str(s->files));
	finish(&sum, key);
}
