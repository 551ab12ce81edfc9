/* test_gateway_peers.c - several gateways of one data folder, all of them in this process. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "gateway/peers.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/hotcell-peers-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char path[96];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/gateways", folder);
	(void)unlink(path);
	return rmdir(folder);
}

static void open_one(struct peers *p)
{
	struct err err = { 0 };

	if (peers_open(p, folder, &err) < 0)
		fail_msg("%s", err.msg);
}

static const struct peer *find(const struct peer *all, size_t n, bool is_self)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].is_self == is_self)
			return &all[i];
	return NULL;
}

static void they_see_each_other(void **state)
{
	struct peer all[PEERS_MAX];
	struct peers one, two;
	const struct peer *other;

	(void)state;
	open_one(&one);
	assert_false(peers_accept(&one)); /* itself does not count */
	peers_say(&one, PEER_ACCEPTS, 0);
	assert_false(peers_accept(&one));
	open_one(&two);
	assert_false(peers_accept(&one)); /* it has not said so yet */
	peers_say(&two, PEER_ACCEPTS, 7);
	assert_true(peers_accept(&one) && peers_accept(&two));
	assert_int_equal(peers_list(&one, all), 2);
	other = find(all, 2, false);
	assert_true(other && other->connections == 7 && other->pid == (uint64_t)getpid());
	peers_say(&two, PEER_DRAINS, 1);
	assert_false(peers_accept(&one));
	assert_true(peers_accept(&two));
	peers_close(&one);
	assert_false(peers_accept(&two));
	assert_int_equal(peers_list(&two, all), 1);
	peers_close(&two);
	peers_close(&two); /* a second time */
}

static void they_count_together(void **state)
{
	struct peers one, two;

	(void)state;
	open_one(&one);
	open_one(&two);
	atomic_fetch_add(&peers_key_counts(&one)[PEERS_KEY_COUNTS], 1);
	assert_int_equal(atomic_load(&peers_key_counts(&two)[PEERS_KEY_COUNTS]), 1);
	peers_close(&one);
	peers_close(&two);
	open_one(&one); /* the count stays: another gateway may have begun before */
	assert_int_equal(atomic_load(&peers_key_counts(&one)[PEERS_KEY_COUNTS]), 1);
	peers_close(&one);
}

static void one_too_many_is_not_seen(void **state)
{
	struct peers some[PEERS_MAX + 1];
	struct peer all[PEERS_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(some); i++) {
		open_one(&some[i]);
		peers_say(&some[i], PEER_ACCEPTS, i);
	}
	assert_int_equal(peers_list(&some[0], all), PEERS_MAX);
	assert_null(find(all, peers_list(&some[PEERS_MAX], all), true));
	peers_close(&some[0]);
	peers_say(&some[PEERS_MAX], PEER_ACCEPTS, 9); /* and gets the line that is free */
	assert_non_null(find(all, peers_list(&some[PEERS_MAX], all), true));
	for (size_t i = 1; i < COUNT(some); i++)
		peers_close(&some[i]);
}

/* Left by a host that was switched off: nonsense in every line. */
static void what_is_not_true_any_more_is_not_believed(void **state)
{
	struct peer all[PEERS_MAX];
	struct peers one;
	struct stat st;
	char path[96];
	uint8_t *junk;
	int fd;

	(void)state;
	open_one(&one);
	peers_close(&one);
	(void)snprintf(path, sizeof(path), "%s/gateways", folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0600);
	junk = malloc((size_t)st.st_size);
	assert_non_null(junk);
	memset(junk, 0xee, (size_t)st.st_size);
	assert_int_equal(pwrite(fd, junk, (size_t)st.st_size, 0), st.st_size);
	open_one(&one);
	assert_int_equal(peers_list(&one, all), 1);
	assert_false(peers_accept(&one));
	peers_close(&one);
	memset(junk, 0, (size_t)st.st_size);
	assert_int_equal(pwrite(fd, junk, (size_t)st.st_size, 0), st.st_size);
	free(junk);
	close(fd);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
	struct peers p;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(peers_open(&p, "/nowhere/at/all", &err), -1);
	assert_true(strstr(err.msg, "/nowhere/at/all") != NULL);
	peers_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_see_each_other),
		cmocka_unit_test(they_count_together),
		cmocka_unit_test(one_too_many_is_not_seen),
		cmocka_unit_test(what_is_not_true_any_more_is_not_believed),
		cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
