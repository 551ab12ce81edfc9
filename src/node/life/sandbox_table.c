/* sandbox_table.c - the table of legal steps, a hash of ids, a sorted array for each team. */
#include "node/life/sandbox_table.h"

#include <assert.h>
#include <errno.h>

#include "base/hash.h"
#include "base/list.h"

struct team {
	char id[NODE_ID_MAX + 1];
	struct sandbox **list; /* by (started_ns, id) */
	size_t n, cap;
	size_t place; /* in table.places; TABLE_PLACES: none */
	struct team *next;
};

#define TO(s) (1u << (s))

static const struct {
	const char *name;
	uint32_t next;
} rules[] = {
	/* clang-format off */
	[SANDBOX_NOTED]     = { "noted",     TO(SANDBOX_SLOT) | TO(SANDBOX_RUNNING) | TO(SANDBOX_PARKING) | TO(SANDBOX_WAKING) | TO(SANDBOX_ENDING) },
	[SANDBOX_SLOT]      = { "slot",      TO(SANDBOX_STARTING) | TO(SANDBOX_PARKING) | TO(SANDBOX_ENDING) },
	[SANDBOX_STARTING]  = { "starting",  TO(SANDBOX_RESTORING) | TO(SANDBOX_PARKING) | TO(SANDBOX_ENDING) },
	[SANDBOX_RESTORING] = { "restoring", TO(SANDBOX_WAITING) | TO(SANDBOX_WAKING) | TO(SANDBOX_PARKING) | TO(SANDBOX_ENDING) },
	[SANDBOX_WAITING]   = { "waiting",   TO(SANDBOX_NAMING) | TO(SANDBOX_ENDING) },
	[SANDBOX_NAMING]    = { "naming",    TO(SANDBOX_SETTLING) | TO(SANDBOX_ENDING) },
	[SANDBOX_SETTLING]  = { "settling",  TO(SANDBOX_RUNNING) | TO(SANDBOX_ENDING) },
	[SANDBOX_RUNNING]   = { "running",   TO(SANDBOX_PAUSING) | TO(SANDBOX_ENDING) },
	[SANDBOX_PAUSING]   = { "pausing",   TO(SANDBOX_RUNNING) | TO(SANDBOX_PARKING) | TO(SANDBOX_ENDING) },
	[SANDBOX_PARKING]   = { "parking",   TO(SANDBOX_PAUSED) | TO(SANDBOX_ENDING) },
	[SANDBOX_PAUSED]    = { "paused",    TO(SANDBOX_SLOT) | TO(SANDBOX_PARKING) | TO(SANDBOX_ENDING) },
	/* of a boot from disk nothing is lost when it fails: it is paused again */
	[SANDBOX_WAKING]    = { "waking",    TO(SANDBOX_RUNNING) | TO(SANDBOX_PARKING) | TO(SANDBOX_ENDING) },
	[SANDBOX_ENDING]    = { "ending",    0 },
	/* clang-format on */
};
static_assert(COUNT(rules) == SANDBOX_STATES, "a state without a rule");

const char *sandbox_state_name(enum sandbox_state s)
{
	return (unsigned int)s < SANDBOX_STATES ? rules[s].name : "?";
}

/* It has a VM that is not being removed, or will have one. */
static bool has_guest(enum sandbox_state s)
{
	return s != SANDBOX_PARKING && s != SANDBOX_PAUSED && s != SANDBOX_ENDING;
}

/* It is in a state, and no longer. Its size stays the same in all of them. */
static void count_in(struct sandbox_table *t, const struct sandbox *s)
{
	t->in_state[s->state]++;
	if (s->team)
		t->in_place[s->team->place][s->state]++;
	if (has_guest(s->state))
		t->guest_mib += s->info.memory_mib;
}

static void count_out(struct sandbox_table *t, const struct sandbox *s)
{
	t->in_state[s->state]--;
	if (s->team)
		t->in_place[s->team->place][s->state]--;
	if (has_guest(s->state))
		t->guest_mib -= s->info.memory_mib;
}

void sandbox_enter(struct sandbox_table *t, struct sandbox *s, enum sandbox_state next)
{
	assert(s->state < SANDBOX_STATES && next < SANDBOX_STATES);
	assert(rules[s->state].next & TO(next));
	count_out(t, s);
	s->state = next;
	count_in(t, s);
}

/* Ids are drawn by us; whoever asks for others only searches longer for nothing. */
uint32_t table_hash(const char *id)
{
	return hash_text(HASH_START, id);
}

struct sandbox *table_find(const struct sandbox_table *t, const char *id)
{
	struct sandbox *s = t->by_id[table_hash(id) % TABLE_BUCKETS];

	while (s && strcmp(s->info.id, id) != 0)
		s = s->bucket_next;
	return s;
}

void table_add(struct sandbox_table *t, struct sandbox *s)
{
	struct sandbox **bucket = &t->by_id[table_hash(s->info.id) % TABLE_BUCKETS];

	assert(!table_find(t, s->info.id) && s->state == SANDBOX_NOTED);
	s->bucket_next = *bucket;
	*bucket = s;
	list_add(&t->all, s);
	t->n++;
	count_in(t, s);
}

void table_remove(struct sandbox_table *t, struct sandbox *s)
{
	struct sandbox **at = &t->by_id[table_hash(s->info.id) % TABLE_BUCKETS];

	table_disown(t, s);
	while (*at != s)
		at = &(*at)->bucket_next;
	*at = s->bucket_next;
	list_remove(s);
	t->n--;
	count_out(t, s);
}

/* --- teams -------------------------------------------------------------------------------- */

static struct team *find_team(const struct sandbox_table *t, const char *id)
{
	struct team *m = t->teams[table_hash(id) % TABLE_TEAM_BUCKETS];

	while (m && strcmp(m->id, id) != 0)
		m = m->next;
	return m;
}

/* The team of everyone is not counted by itself. */
static size_t take_place(struct sandbox_table *t, const char *id)
{
	for (size_t i = 0; id[0] && i < TABLE_PLACES; i++)
		if (!t->places[i][0]) {
			snprintf(t->places[i], sizeof(t->places[i]), "%s", id);
			return i;
		}
	return TABLE_PLACES;
}

static struct team *add_team(struct sandbox_table *t, const char *id)
{
	struct team **bucket = &t->teams[table_hash(id) % TABLE_TEAM_BUCKETS];
	struct team *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	snprintf(m->id, sizeof(m->id), "%s", id);
	m->place = take_place(t, id);
	m->next = *bucket;
	*bucket = m;
	return m;
}

static void drop_team(struct sandbox_table *t, struct team *m)
{
	struct team **at = &t->teams[table_hash(m->id) % TABLE_TEAM_BUCKETS];

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	if (m->place < TABLE_PLACES)
		t->places[m->place][0] = '\0';
	free(m->list);
	free(m);
}

/* How many of its sandboxes come before or at (ns, id). */
static size_t rank(const struct team *m, uint64_t ns, const char *id)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct node_sandbox *i = &m->list[mid]->info;
		bool after = i->started_ns != ns ? i->started_ns > ns : strcmp(i->id, id) > 0;

		if (after)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static int grow(struct team *m, struct err *err)
{
	size_t cap = m->cap ? 2 * m->cap : 8;
	struct sandbox **list;

	if (m->n < m->cap)
		return 0;
	list = reallocarray(m->list, cap, sizeof(struct sandbox *));
	if (!list)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "the list of a team");
	m->list = list;
	m->cap = cap;
	return 0;
}

/* Into the list of `team`, which is made when it is its first. */
static int put(struct sandbox_table *t, const char *team, struct sandbox *s, struct team **ret,
	       struct err *err)
{
	struct team *m = find_team(t, team);
	size_t at;

	if (!m)
		m = add_team(t, team);
	if (!m)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a team");
	if (grow(m, err) < 0) {
		if (m->n == 0)
			drop_team(t, m);
		return -1;
	}
	at = rank(m, s->info.started_ns, s->info.id);
	memmove(&m->list[at + 1], &m->list[at], (m->n - at) * sizeof(struct sandbox *));
	m->list[at] = s;
	m->n++;
	*ret = m;
	return 0;
}

static void take_out(struct sandbox_table *t, struct team *m, struct sandbox *s)
{
	size_t at = rank(m, s->info.started_ns, s->info.id) - 1;

	assert(m->list[at] == s);
	m->n--;
	memmove(&m->list[at], &m->list[at + 1], (m->n - at) * sizeof(struct sandbox *));
	if (m->n == 0)
		drop_team(t, m);
}

int table_own(struct sandbox_table *t, struct sandbox *s, struct err *err)
{
	struct team *own, *everyone;

	assert(!s->team && s->info.team[0]);
	if (put(t, s->info.team, s, &own, err) < 0)
		return -1;
	if (put(t, TABLE_EVERYONE, s, &everyone, err) < 0) {
		take_out(t, own, s);
		return -1;
	}
	s->team = own;
	t->in_place[own->place][s->state]++;
	return 0;
}

void table_disown(struct sandbox_table *t, struct sandbox *s)
{
	struct team *m = TAKE(s->team);

	if (!m)
		return;
	t->in_place[m->place][s->state]--;
	take_out(t, m, s);
	take_out(t, find_team(t, TABLE_EVERYONE), s);
}

static void move(struct team *m, struct sandbox *s, uint64_t started_ns)
{
	size_t at = rank(m, s->info.started_ns, s->info.id) - 1;

	m->n--;
	memmove(&m->list[at], &m->list[at + 1], (m->n - at) * sizeof(struct sandbox *));
	at = rank(m, started_ns, s->info.id);
	memmove(&m->list[at + 1], &m->list[at], (m->n - at) * sizeof(struct sandbox *));
	m->list[at] = s;
	m->n++;
}

void table_restarted(struct sandbox_table *t, struct sandbox *s, uint64_t started_ns)
{
	move(s->team, s, started_ns);
	move(find_team(t, TABLE_EVERYONE), s, started_ns);
	s->info.started_ns = started_ns;
}

struct sandbox *const *table_after(const struct sandbox_table *t, const char *team,
				   uint64_t after_ns, const char *id, size_t *ret_n)
{
	const struct team *m = find_team(t, team);
	size_t at;

	*ret_n = 0;
	if (!m)
		return NULL;
	at = rank(m, after_ns, id);
	*ret_n = m->n - at;
	return m->list + at;
}
