/* test_net_file.c - files that go out over a stream without being read. */
#include "tests/unit/test_net_layers.h"

#include <sys/mman.h>

#include "base/random.h"

enum { FILE_SIZE = 3 * 1024 * 1024 + 17, HEAD_SIZE = 100 * 1024, AT_ONCE = 512 * 1024 };

struct scene {
	struct loop *l;
	struct ear from, to;
	struct buf content;
	int file;
};

static void fill(struct scene *sc)
{
	struct err err;
	uint8_t *room;

	sc->content = BUF_MAX(FILE_SIZE);
	assert_int_equal(buf_reserve(&sc->content, FILE_SIZE, &room, &err), 0);
	random_fill(room, FILE_SIZE);
	buf_claim(&sc->content, FILE_SIZE);
	sc->file = memfd_create("test", MFD_CLOEXEC);
	assert_int_equal(write(sc->file, room, FILE_SIZE), FILE_SIZE);
	assert_int_equal(lseek(sc->file, 0, SEEK_SET), 0);
}

static void scene_open(struct scene *sc, void (*make_pair)(int fd[2]), size_t piece)
{
	int fd[2];

	*sc = (struct scene){ .l = test_loop() };
	fill(sc);
	make_pair(fd);
	ear_init(&sc->from, piece ? bend_over(test_stream(sc->l, fd[0]), piece, 0)
				  : test_stream(sc->l, fd[0]));
	ear_init(&sc->to, test_stream(sc->l, fd[1]));
	sc->to.got.max = FILE_SIZE + HEAD_SIZE;
}

static void scene_close(struct scene *sc)
{
	ear_done(&sc->from);
	ear_done(&sc->to);
	buf_done(&sc->content);
	close(sc->file);
	loop_free(sc->l);
}

/* Until the stream wants to be waited for, or the file ends. */
static enum stream_file send_some(struct scene *sc)
{
	enum stream_file rc;
	struct err err;
	size_t n;

	do {
		rc = stream_send_file(sc->from.s, sc->file, AT_ONCE, &n, &err);
	} while (rc == STREAM_FILE_SENT && n > 0);
	return rc;
}

/* A head is queued already, and nobody reads at first. */
static void a_file_waits_for_its_reader(void **state)
{
	AUTO(buf_done) struct buf head = BUF_MAX(HEAD_SIZE);
	struct scene sc;
	struct err err;
	uint8_t *room;
	size_t drains;

	(void)state;
	scene_open(&sc, unix_pair, 0);
	stream_read(sc.from.s, true);
	assert_int_equal(buf_reserve(&head, HEAD_SIZE, &room, &err), 0);
	memset(room, 'h', HEAD_SIZE);
	buf_claim(&head, HEAD_SIZE);
	assert_int_equal(stream_write(sc.from.s, buf_view(&head), &err), 0);
	assert_int_equal(send_some(&sc), STREAM_FILE_WAIT);
	assert_true(stream_queued(sc.from.s) > 0);
	assert_int_equal(sc.from.drains, 0);
	stream_read(sc.to.s, true);
	do {
		drains = sc.from.drains;
		RUN_UNTIL(sc.l, sc.from.drains > drains);
	} while (send_some(&sc) == STREAM_FILE_WAIT);
	RUN_UNTIL(sc.l, sc.to.got.len == HEAD_SIZE + FILE_SIZE);
	assert_memory_equal(sc.to.got.ptr, buf_view(&head).ptr, HEAD_SIZE);
	assert_memory_equal(sc.to.got.ptr + HEAD_SIZE, sc.content.ptr, FILE_SIZE);
	assert_int_equal(stream_queued(sc.from.s), 0);
	assert_int_equal(stream_sent(sc.from.s), HEAD_SIZE + FILE_SIZE);
	scene_close(&sc);
}

static void a_reader_that_left_is_a_failure(void **state)
{
	struct scene sc;
	struct err err;
	size_t n;

	(void)state;
	scene_open(&sc, tcp_pair, 0);
	stream_read(sc.from.s, true);
	assert_int_equal(send_some(&sc), STREAM_FILE_WAIT);
	stream_abort(TAKE(sc.to.s));
	RUN_UNTIL(sc.l, sc.from.fails > 0);
	assert_int_equal(stream_send_file(sc.from.s, sc.file, 1, &n, &err), STREAM_FILE_FAILED);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	scene_close(&sc);
}

static void some_have_to_be_read(void **state)
{
	struct scene sc;
	struct err err;
	size_t n;

	(void)state;
	scene_open(&sc, unix_pair, 1000); /* a layer that changes what passes */
	assert_int_equal(stream_send_file(sc.from.s, sc.file, 1, &n, &err), STREAM_FILE_UNFIT);
	scene_close(&sc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_waits_for_its_reader),
		cmocka_unit_test(a_reader_that_left_is_a_failure),
		cmocka_unit_test(some_have_to_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
