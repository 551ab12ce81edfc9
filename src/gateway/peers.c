/* peers.c - a page that several gateways map. What another one wrote there is a number at most. */
/* #syscalls: openat ftruncate fallocate fstat newfstatat mmap munmap close */
#include "gateway/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/random.h"

/* Gateways of different versions share it while one takes the place of the other: members are
 * added behind the last, and never changed. */
struct peers_page {
	_Atomic uint64_t key_counts[1 + PEERS_KEY_COUNTS];
	struct peer_line {
		_Atomic uint64_t seen_ns; /* of CLOCK_BOOTTIME, when it was written; 0: free */
		_Atomic uint64_t owner, pid, state, connections;
	} lines[PEERS_MAX];
};

static bool is_fresh(uint64_t seen_ns, uint64_t now_ns)
{
	/* one from the future is from before the host was started */
	return seen_ns != 0 && seen_ns <= now_ns + NSEC_PER_SEC &&
	       (now_ns < seen_ns || now_ns - seen_ns < PEERS_STALE_MS * NSEC_PER_MSEC);
}

static void claim_line(struct peers *p)
{
	uint64_t now_ns = clock_boot_ns();

	for (p->line = 0; p->line < PEERS_MAX; p->line++) {
		struct peer_line *l = &p->page->lines[p->line];
		uint64_t seen_ns = atomic_load(&l->seen_ns);

		if (is_fresh(seen_ns, now_ns) ||
		    !atomic_compare_exchange_strong(&l->seen_ns, &seen_ns, now_ns))
			continue;
		atomic_store(&l->state, PEER_DRAINS); /* until it says otherwise */
		atomic_store(&l->pid, (uint64_t)getpid());
		atomic_store(&l->connections, 0);
		atomic_store(&l->owner, p->owner);
		return;
	}
}

/* Room that is only promised would end whoever writes to the page when the disk is full. Two that
 * make it grow at once make it equally large. */
static int make_room(int fd, const struct stat *st)
{
	const off_t size = sizeof(struct peers_page);

	if (fallocate(fd, 0, 0, size) == 0)
		return 0;
	if (errno != EOPNOTSUPP) /* not every file system can */
		return -1;
	return st->st_size < size ? ftruncate(fd, size) : 0;
}

static int open_page(const char *dir, struct err *err)
{
	AUTO(auto_close) int folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct stat st;

	if (folder >= 0)
		fd = openat(folder, "gateways", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "open %s/gateways", dir);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, 0, "%s/gateways is not a file", dir);
	if (make_room(fd, &st) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "make %s/gateways", dir);
	return take_fd(&fd);
}

int peers_open(struct peers *p, const char *dir, struct err *err)
{
	AUTO(auto_close) int fd = open_page(dir, err);
	void *at;

	*p = (struct peers){ 0 };
	if (fd < 0)
		return -1;
	at = mmap(NULL, sizeof(*p->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return err_set(err, ERR_UNAVAILABLE, errno, "map %s/gateways", dir);
	p->page = at;
	random_fill(&p->owner, sizeof(p->owner));
	claim_line(p);
	return 0;
}

static struct peer_line *own_line(struct peers *p)
{
	struct peer_line *l;

	if (!p->page)
		return NULL;
	/* we were away for so long that somebody took it */
	if (p->line == PEERS_MAX || atomic_load(&p->page->lines[p->line].owner) != p->owner)
		claim_line(p);
	l = p->line < PEERS_MAX ? &p->page->lines[p->line] : NULL;
	return l;
}

void peers_say(struct peers *p, enum peer_state state, uint64_t connections)
{
	struct peer_line *l = own_line(p);

	if (!l)
		return;
	atomic_store(&l->connections, connections);
	atomic_store(&l->state, state);
	atomic_store(&l->seen_ns, clock_boot_ns());
}

size_t peers_list(const struct peers *p, struct peer ret[static PEERS_MAX])
{
	uint64_t now_ns = clock_boot_ns();
	size_t n = 0;

	for (size_t i = 0; p->page && i < PEERS_MAX; i++) {
		const struct peer_line *l = &p->page->lines[i];

		if (!is_fresh(atomic_load(&l->seen_ns), now_ns))
			continue;
		ret[n++] = (struct peer){
			.pid = atomic_load(&l->pid),
			.state =
				atomic_load(&l->state) == PEER_ACCEPTS ? PEER_ACCEPTS : PEER_DRAINS,
			.connections = atomic_load(&l->connections),
			.is_self = atomic_load(&l->owner) == p->owner,
		};
	}
	return n;
}

bool peers_accept(const struct peers *p)
{
	struct peer all[PEERS_MAX];
	size_t n = peers_list(p, all);

	for (size_t i = 0; i < n; i++)
		if (!all[i].is_self && all[i].state == PEER_ACCEPTS)
			return true;
	return false;
}

_Atomic uint64_t *peers_key_counts(const struct peers *p)
{
	return p->page->key_counts;
}

void peers_close(struct peers *p)
{
	struct peer_line *l;

	if (!p->page)
		return;
	l = p->line < PEERS_MAX ? &p->page->lines[p->line] : NULL;
	if (l && atomic_load(&l->owner) == p->owner)
		atomic_store(&l->seen_ns, 0);
	munmap(p->page, sizeof(*p->page));
	*p = (struct peers){ 0 };
}
