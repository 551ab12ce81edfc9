/* unpack.c - see unpack.h. */
#include "images/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "images/child.h"
#include "images/program_filter.h"
#include "wire/json.h"

/* Its descriptors. */
enum { FD_DISK = 3, FD_SAY = 4, FD_AGENT = 5, FD_LAYERS = 10, LINE_DEPTH = 8, NUMBER = 24 };

#define MEMORY_MAX (1ull << 30)
#define MIB        (1024ull * 1024)

struct unpacking {
	struct child_reader reader;
	const struct job *job;
	struct unpack_said last;
};

/* --- what it says ----------------------------------------------------------------------------- */

/* Control characters have no place in a log. */
static void add_text(struct unpack_said *s, const char *before, const json_t *text)
{
	size_t used = strlen(s->text);
	const char *from = json_string_value(text);

	if (!from)
		return;
	snprintf(s->text + used, sizeof(s->text) - used, "%s%s", before, from);
	for (char *c = s->text + used; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

static int64_t number(const json_t *of, const char *name)
{
	int64_t n = json_integer_value(json_object_get(of, name));

	return n > 0 ? n : 0;
}

static void tell_progress(const json_t *of, struct unpack_said *ret)
{
	snprintf(ret->text, sizeof(ret->text), "Layer %ld of %ld: %ld entries, %ld MiB so far",
		 number(of, "layer"), number(of, "layers"), number(of, "entries"),
		 number(of, "bytes") / (int64_t)MIB);
}

static void tell_added(const json_t *of, struct unpack_said *ret)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(of, "added"), i, one)
		add_text(ret, i > 0 ? ", " : "Added what the image lacks: ", one);
}

/* Of its reasons, which are called as by err_name(), those that are not the image's fault. */
static enum err_code code_of(const json_t *name)
{
	static const enum err_code ours[] = { ERR_NO_SPACE, ERR_EXHAUSTED, ERR_INTERNAL };
	const char *text = json_string_value(name);

	for (size_t i = 0; text && i < COUNT(ours); i++)
		if (strcmp(err_name(ours[i]), text) == 0)
			return ours[i];
	return ERR_INVALID;
}

static void tell_error(const json_t *of, struct unpack_said *ret)
{
	ret->code = code_of(json_object_get(of, "code"));
	add_text(ret, "", json_object_get(of, "message"));
	if (!ret->text[0])
		snprintf(ret->text, sizeof(ret->text), "hotcell-unpack refused the image");
	add_text(ret, ": ", json_object_get(of, "path"));
}

int unpack_line(struct bytes line, struct unpack_said *ret, struct err *err)
{
	static const struct {
		const char *name;
		void (*tell)(const json_t *of, struct unpack_said *ret);
	} words[] = { [UNPACK_PROGRESS] = { "progress", tell_progress },
		      [UNPACK_OK] = { "ok", tell_added },
		      [UNPACK_ERROR] = { "error", tell_error } };
	AUTO(json_decrefp) json_t *v = NULL;

	*ret = (struct unpack_said){ 0 };
	if (json_decode(line, CHILD_LINE_MAX, LINE_DEPTH, &v, err) < 0)
		return err_wrap(err, "what hotcell-unpack says");
	for (size_t i = 0; i < COUNT(words); i++) {
		const json_t *member = json_object_get(v, words[i].name);

		if (!json_is_object(member))
			continue;
		ret->word = (enum unpack_word)i;
		words[i].tell(member, ret);
		return 0;
	}
	return err_set(err, ERR_INVALID, 0, "hotcell-unpack says something unknown");
}

static int on_line(struct child_reader *r, struct bytes line, struct err *err)
{
	struct unpacking *u = CONTAINER_OF(r, struct unpacking, reader);

	if (unpack_line(line, &u->last, err) < 0)
		return -1;
	if (u->last.word == UNPACK_ERROR || !u->last.text[0])
		return 0;
	return job_say(u->job, err, "%s", u->last.text);
}

/* --- running it ------------------------------------------------------------------------------- */

static int run(struct unpacking *u, const struct image *i, int agent, struct err *err)
{
	const struct job *j = u->job;
	char layers[NUMBER], disk[NUMBER];
	const char *const argv[] = {
		j->set[SET_UNPACK].text, "--layers", layers, "--disk-mib", disk, NULL
	};
	static const char *const environment[] = { NULL };
	const struct confine_path paths[] = { { "/usr", CONFINE_RUN },
					      { j->set[SET_UNPACK].text, CONFINE_RUN } };
	struct child_fd fds[OCI_LAYERS_MAX + 2] = { { j->disk, FD_DISK }, { agent, FD_AGENT } };
	const struct child child = {
		.argv = argv,
		.environment = environment,
		.paths = paths,
		.n_paths = COUNT(paths),
		.fds = fds,
		.n_fds = i->n_layers + 2,
		.null = j->null,
		.reader_fd = FD_SAY,
		.reader = &u->reader,
		.denied = PROGRAM_NO_PROCESSES | PROGRAM_NO_SOCKETS | PROGRAM_NO_SIGNALS,
		.file_bytes = j->order.disk_mib * MIB,
		.memory_bytes = MEMORY_MAX,
	};

	snprintf(layers, sizeof(layers), "%zu", i->n_layers);
	snprintf(disk, sizeof(disk), "%u", j->order.disk_mib);
	for (size_t n = 0; n < i->n_layers; n++)
		fds[n + 2] = (struct child_fd){ i->layers[n], FD_LAYERS + (int)n };
	return child_run(&child, err);
}

int unpack_image(const struct job *j, const struct image *i, struct err *err)
{
	struct unpacking u = { .reader.on_line = on_line, .job = j };
	AUTO(auto_close) int agent = open(j->set[SET_AGENT].text, O_RDONLY | O_CLOEXEC);
	int status;

	if (agent < 0)
		return err_set(err, ERR_INTERNAL, errno, "open agent = %s", j->set[SET_AGENT].text);
	if (job_say(j, err, "Making a disk of %zu layers", i->n_layers) < 0)
		return -1;
	status = run(&u, i, agent, err);
	if (status < 0)
		return -1;
	if (u.last.word == UNPACK_ERROR)
		return err_set(err, u.last.code, 0, "%.250s", u.last.text);
	if (status != 0 || u.last.word != UNPACK_OK)
		return err_set(err, ERR_INTERNAL, 0, "hotcell-unpack ended with %d", status);
	return 0;
}
