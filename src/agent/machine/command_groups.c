/* command_groups.c - see command_groups.h. */
#include "agent/machine/command_groups.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/log.h"

enum { FILE_TEXT_MAX = 1024, NAME_MAX_LEN = 32 };

static const char rest_name[] = "rest";

void command_groups_init(struct command_groups *g, int parent)
{
	*g = (struct command_groups){ .parent = parent, .rest = { -1, false, true } };
	for (size_t i = 0; i < COUNT(g->own); i++)
		g->own[i].dir = -1;
}

void command_groups_done(struct command_groups *g)
{
	for (size_t i = 0; i < COUNT(g->own); i++)
		auto_close(&g->own[i].dir);
	auto_close(&g->rest.dir);
	command_groups_init(g, -1);
}

/* The number behind `key` in a file of "key number" lines. */
static bool read_number(int dir, const char *file, const char *key, uint64_t *ret)
{
	AUTO(auto_close) int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	char text[FILE_TEXT_MAX];
	struct bytes rest, line, name;
	ssize_t n;

	if (fd < 0 || (n = read(fd, text, sizeof(text))) < 0)
		return false;
	rest = (struct bytes){ (const uint8_t *)text, (size_t)n };
	while (bytes_cut(&rest, '\n', &line))
		if (bytes_cut(&line, ' ', &name) && bytes_eq(name, bytes_str(key)))
			return bytes_to_u64(line, ret);
	return false;
}

static bool is_empty(int dir)
{
	uint64_t n;

	return read_number(dir, "cgroup.events", "populated", &n) && n == 0;
}

/* One from before the agent was started again will do as well. */
static int open_group(int parent, const char *name)
{
	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST) {
		log_warn("make the cgroup %s: %s", name, strerror(errno));
		return -1;
	}
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static bool is_free(struct command_groups *g, size_t i)
{
	struct command_group *one = &g->own[i];
	char name[NAME_MAX_LEN];

	if (one->taken)
		return false;
	if (one->dir < 0) {
		snprintf(name, sizeof(name), "command-%zu", i);
		one->dir = open_group(g->parent, name);
	}
	return one->dir >= 0 && is_empty(one->dir);
}

static struct command_group *choose(struct command_groups *g)
{
	for (size_t i = 0; i < COUNT(g->own); i++)
		if (is_free(g, i))
			return &g->own[i];
	if (g->rest.dir < 0)
		g->rest.dir = open_group(g->parent, rest_name);
	return g->rest.dir < 0 ? NULL : &g->rest;
}

static uint64_t oom_kills(const struct command_group *one)
{
	uint64_t n;

	return read_number(one->dir, "memory.events", "oom_kill", &n) ? n : 0;
}

void command_groups_take(struct command_groups *g, struct command_place *ret, int *ret_dir)
{
	*ret = (struct command_place){ 0 };
	*ret_dir = g->parent;
	if (g->parent < 0)
		return;
	ret->group = choose(g);
	if (!ret->group)
		return;
	ret->group->taken = true;
	ret->oom_kills = oom_kills(ret->group);
	*ret_dir = ret->group->dir;
}

void command_place_leave(struct command_place *p)
{
	if (p->group)
		p->group->taken = false;
	p->group = NULL;
}

bool command_place_oom(const struct command_place *p)
{
	return p->group && oom_kills(p->group) > p->oom_kills;
}
