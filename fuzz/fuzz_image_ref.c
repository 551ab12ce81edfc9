/* fuzz_image_ref.c - promises of names of images: what is taken is whole, of plain characters,
 * reads the same again, and could not be mistaken for an option or a path. */
#include "fuzz/must.h"
#include "wire/image_ref.h"

static void must_be_plain(const char *text)
{
	MUST(text[0] && text[0] != '-' && text[0] != '/' && text[0] != '.');
	MUST(!strstr(text, "..") && !strstr(text, "//"));
	for (const char *c = text; *c; c++)
		MUST((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		     (*c >= '0' && *c <= '9') || strchr("./_-:@[]", *c));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct image_defaults with = { "registry.example:5000", "library/" },
					   without = { "", "" };
	char text[IMAGE_NAME_MAX + 1], again[IMAGE_NAME_MAX + 1];
	struct err err = { 0 };
	struct image_ref r, same;

	if (image_ref_parse((struct bytes){ data, size }, &with, &r, &err) < 0) {
		must_say_why(&err);
		return 0;
	}
	MUST(size <= IMAGE_REF_MAX && r.host[0] && r.path[0] && (r.tag[0] || r.digest[0]));
	must_be_plain(r.path);
	MUST(r.host[0] != '-' && !strchr(r.host, '/'));
	MUST(!r.digest[0] || image_digest_ok(bytes_str(r.digest)));
	image_ref_text(&r, text);
	if (strlen(text) > IMAGE_REF_MAX)
		return 0; /* a prefix made it longer than is read */
	MUST(image_ref_parse(bytes_str(text), &without, &same, &err) == 0);
	image_ref_text(&same, again);
	MUST(strcmp(text, again) == 0);
	return 0;
}
