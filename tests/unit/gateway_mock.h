/* gateway_mock.h - for tests of the gateway: the control plane between a client and a node made of
 * a table. The link to node, its door, the store and HTTP are the real ones.
 */
#pragma once

#include "tests/unit/test_net_layers.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "gateway/api/api.h"
#include "http/call.h"
#include "node/door/gateway_door.h"

enum { MOCK_SANDBOXES_MAX = 300, MOCK_ANSWER_MAX = 16 * 1024 * 1024 };

struct mock_sandbox {
	struct node_sandbox s;
	char *text;
	char ended_id[NODE_ID_MAX + 1]; /* what its id was */
};

struct mock {
	struct loop *l;
	char dir[64], node_path[96];
	struct door_user door_user;
	struct gateway_door *door;
	struct mock_sandbox all[MOCK_SANDBOXES_MAX];
	size_t n, asked;
	enum err_code refuse;   /* every request of node, when not 0 */
	uint32_t retry_s;       /* with that */
	const char *header;     /* "Name: value" of the next request; NULL: none */
	const char *record;     /* what node has of metrics, logs and snapshots */
	const char *seal_key;   /* NULL: node has nobody to open what is sealed */
	const char *images_key; /* the same of registries' passwords */
	enum err_code untold;   /* what it says to NODE_SECRET */
	size_t n_told;
	bool hold; /* the next request gets no answer until it is given up */
	struct door_asked *held;
	char token[NODE_ID_MAX + 1], given_up[NODE_ID_MAX + 1]; /* of the one held; heard */
	struct node_request last;                               /* what node was asked */
	char last_text[NODE_TEXT_MAX + 1];
	struct node_link_user node_user;
	struct gateway g;
	struct store *store;
	struct http_server http, admin;
	/* the last answer */
	struct http_call call;
	bool done;
	unsigned int status;
	char fields[4096]; /* "Name: value\n" each */
	json_t *json;      /* of the body; NULL: empty */
	size_t body_len;
	struct err failed;
	char key[2][API_KEY_SIZE], team[2][STORE_ID_SIZE]; /* two teams with a key each */
};

static inline struct mock_sandbox *mock_find(struct mock *m, const struct node_request *rq)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->all[i].s.id, rq->id) == 0 &&
		    (!rq->team[0] || strcmp(m->all[i].s.team, rq->team) == 0))
			return &m->all[i];
	return NULL;
}

/* Ids are numbered, started_ns too, so that the order of the table is the order of a list. */
static inline struct mock_sandbox *mock_add(struct mock *m, const char *team, const char *text)
{
	struct mock_sandbox *b = &m->all[m->n];

	assert_true(m->n < MOCK_SANDBOXES_MAX);
	*b = (struct mock_sandbox){ .s = { .template_id = "tpl1",
					   .alias = "base",
					   .access_token = "secret",
					   .vcpus = 2,
					   .memory_mib = 512,
					   .disk_mib = 1024 },
				    .text = strdup(text) };
	snprintf(b->s.id, sizeof(b->s.id), "i%04zu", m->n);
	assert_true(bytes_to_str(bytes_str(team), b->s.team, sizeof(b->s.team)));
	b->s.started_ns = 1700000000000000000ull + m->n * 1000000;
	b->s.end_ns = b->s.started_ns + 300000000000ull;
	m->n++;
	return b;
}

static inline void mock_end(struct mock_sandbox *b, enum node_reason why)
{
	memcpy(b->ended_id, b->s.id, sizeof(b->ended_id));
	b->s.id[0] = '\0';
	b->s.reason = why;
	b->s.ended_ns = b->s.started_ns + 2000000000;
}

static inline void mock_list(struct mock *m, struct door_asked *a, const struct node_request *rq)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_MESSAGE_MAX);
	struct node_reply r = { 0 };
	struct err err;

	for (size_t i = 0; i < m->n && r.count < 7; i++) { /* small parts: several are needed */
		const struct node_sandbox *s = &m->all[i].s;
		struct node_entry e = { *s, (uint32_t)strlen(m->all[i].text) };

		if (!s->id[0] || (rq->team[0] && strcmp(s->team, rq->team) != 0))
			continue;
		if (s->started_ns < rq->after_ns ||
		    (s->started_ns == rq->after_ns && strcmp(s->id, rq->id) <= 0))
			continue;
		if (out.len + sizeof(e) + e.text_len + sizeof(r) > NODE_MESSAGE_MAX)
			break;
		assert_int_equal(buf_add(&out, (struct bytes){ (void *)&e, sizeof(e) }, &err), 0);
		assert_int_equal(buf_add(&out, bytes_str(m->all[i].text), &err), 0);
		r.count++;
	}
	door_answer(a, &r, buf_view(&out), NULL, 0);
}

static inline void mock_refuse(struct door_asked *a, enum err_code code, const char *why)
{
	struct err err;

	err_set(&err, code, 0, "%s", why);
	door_refuse(a, &err);
}

/* Why it ended is told to whom it belonged. */
static inline void mock_absent(struct mock *m, struct door_asked *a, const struct node_request *rq)
{
	struct node_reply r = { .code = ERR_NOT_FOUND, .msg = "not here" };

	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->all[i].ended_id, rq->id) == 0 &&
		    (!rq->team[0] || strcmp(m->all[i].s.team, rq->team) == 0))
			r.sandbox = m->all[i].s;
	door_answer(a, &r, (struct bytes){ 0 }, NULL, 0);
}

static inline void mock_ended(struct mock *m, struct door_asked *a, const struct node_request *rq)
{
	struct node_tombstone t[3];
	struct node_reply r = { 0 };

	for (size_t i = 0; i < m->n && r.count < COUNT(t); i++) {
		const struct mock_sandbox *b = &m->all[i];

		if (!b->ended_id[0] || b->s.ended_ns <= rq->after_ns)
			continue;
		t[r.count] = (struct node_tombstone){ .started_ns = b->s.started_ns,
						      .ended_ns = b->s.ended_ns,
						      .reason = b->s.reason };
		memcpy(t[r.count].id, b->ended_id, sizeof(t->id));
		memcpy(t[r.count].team, b->s.team, sizeof(t->team));
		r.count++;
	}
	door_answer(a, &r, (struct bytes){ (void *)t, r.count * sizeof(t[0]) }, NULL, 0);
}

/* One to pause, resume, connect to, or give more time. */
static inline void mock_change(struct mock_sandbox *b, struct door_asked *a,
			       const struct node_request *rq)
{
	bool paused = b->s.state == NODE_PAUSED;
	struct node_reply r = { 0 };

	if (rq->timeout_s > 24 * 3600 && rq->verb != NODE_TIMEOUT) {
		mock_refuse(a, ERR_INVALID, "Timeout cannot be greater than 24 hours");
		return;
	}
	if (rq->verb == NODE_PAUSE     ? paused
	    : rq->verb == NODE_TIMEOUT ? paused
	    : rq->verb == NODE_RESUME  ? !paused
				       : false) {
		mock_refuse(a, ERR_EXISTS, "not so");
		return;
	}
	if (rq->verb == NODE_PAUSE) {
		b->s.state = NODE_PAUSED;
		b->s.ended_ns = b->s.started_ns + 1000000000;
	} else if (rq->verb != NODE_TIMEOUT) {
		r.resumed = paused;
		b->s.state = NODE_RUNNING;
	}
	r.sandbox = b->s;
	door_answer(a, &r, (struct bytes){ 0 }, NULL, 0);
}

static inline void mock_create(struct mock *m, struct door_asked *a, const struct node_request *rq)
{
	struct node_reply r = { 0 };
	struct mock_sandbox *b;

	if (strcmp(rq->template_id, "base") != 0) {
		mock_refuse(a, ERR_NOT_FOUND, "template 'none' not found");
		return;
	}
	if (strcmp(rq->template_tag, "v2") == 0) {
		mock_refuse(a, ERR_NOT_FOUND, "tag 'v2' does not exist for template 'base'");
		return;
	}
	if (rq->timeout_s > 24 * 3600) {
		mock_refuse(a, ERR_INVALID, "Timeout cannot be greater than 24 hours");
		return;
	}
	b = mock_add(m, rq->team, m->last_text);
	b->s.flags = rq->flags;
	if (!(rq->flags & NODE_SECURE))
		b->s.access_token[0] = '\0';
	if (rq->flags & NODE_PRIVATE)
		snprintf(b->s.traffic_token, sizeof(b->s.traffic_token), "of traffic");
	r.sandbox = b->s;
	door_answer(a, &r, (struct bytes){ 0 }, NULL, 0);
}

/* The second of them fails. */
static inline void mock_fork(struct mock_sandbox *b, struct door_asked *a,
			     const struct node_request *rq)
{
	struct node_forked all[3] = { 0 };
	struct node_reply r = { .count = rq->count };

	assert_true(rq->count <= COUNT(all));
	for (size_t i = 0; i < rq->count; i++)
		all[i].sandbox = b->s;
	if (rq->count > 1) {
		all[1] = (struct node_forked){ .code = ERR_EXHAUSTED, .msg = "no more room" };
		snprintf(all[0].sandbox.id, sizeof(all[0].sandbox.id), "icopy");
	}
	door_answer(a, &r, (struct bytes){ (void *)all, rq->count * sizeof(all[0]) }, NULL, 0);
}

static inline void mock_one(struct mock *m, struct door_asked *a, const struct node_request *rq)
{
	struct mock_sandbox *b = mock_find(m, rq);
	struct node_reply r = { 0 };

	if (!b) {
		mock_absent(m, a, rq);
		return;
	}
	r.sandbox = b->s;
	if (rq->verb == NODE_FORK) {
		mock_fork(b, a, rq);
		return;
	}
	if (rq->verb == NODE_NETWORK) {
		if (b->s.state == NODE_PAUSED)
			mock_refuse(a, ERR_EXISTS, "it does not run");
		else
			door_answer(a, &r, (struct bytes){ 0 }, NULL, 0);
		return;
	}
	if (rq->verb == NODE_METRICS || rq->verb == NODE_LOGS || rq->verb == NODE_SNAPSHOT ||
	    rq->verb == NODE_EXPLAIN || rq->verb == NODE_EGRESS_LOG) {
		door_answer(a, &r, bytes_str(m->record ? m->record : "[]"), NULL, 0);
		return;
	}
	if (rq->verb != NODE_GET && rq->verb != NODE_KILL) {
		mock_change(b, a, rq);
		return;
	}
	door_answer(a, &r, rq->verb == NODE_GET ? bytes_str(b->text) : (struct bytes){ 0 }, NULL,
		    0);
	if (rq->verb == NODE_KILL)
		mock_end(b, NODE_KILLED);
}

static inline void mock_secret(struct mock *m, struct door_asked *a, const struct node_request *rq)
{
	const char *key = rq->flags & NODE_FOR_IMAGES ? m->images_key : m->seal_key;
	char text[128] = "";

	if (rq->verb == NODE_SECRET)
		m->n_told++;
	if (rq->verb == NODE_SECRET && m->untold) {
		mock_refuse(a, m->untold, "the injector is not there");
		return;
	}
	if (rq->verb == NODE_SEAL_KEY && !key) {
		mock_refuse(a, ERR_NOT_FOUND, "nobody opens it");
		return;
	}
	if (rq->verb == NODE_SEAL_KEY)
		snprintf(text, sizeof(text), "{\"sealKey\":\"%s\"}", key);
	door_answer(a, &(struct node_reply){ 0 }, bytes_str(text), NULL, 0);
}

static inline void mock_alias(struct door_asked *a, const struct node_request *rq)
{
	struct err err;

	if (strcmp(rq->template_id, "base") == 0 && !rq->template_tag[0]) {
		door_answer(a, &(struct node_reply){ 0 },
			    BYTES_LIT("{\"templateID\":\"tpl1\",\"public\":true}"), NULL, 0);
		return;
	}
	err_set(&err, ERR_NOT_FOUND, 0, "template '%s' not found", rq->template_id);
	door_refuse(a, &err);
}

static inline void mock_on_asked(struct door_user *u, struct door_asked *a,
				 const struct node_request *rq, struct bytes text)
{
	struct mock *m = CONTAINER_OF(u, struct mock, door_user);

	m->asked++;
	if (rq->verb == NODE_GIVE_UP) {
		memcpy(m->given_up, rq->token, sizeof(m->given_up));
		if (m->held)
			mock_refuse(TAKE(m->held), ERR_TIMEOUT, "given up");
		door_answer(a, &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
		return;
	}
	if (m->hold) {
		m->hold = false;
		m->held = a;
		memcpy(m->token, rq->token, sizeof(m->token));
		return;
	}
	m->last = *rq;
	assert_true(bytes_to_str(text, m->last_text, sizeof(m->last_text)));
	assert_true(rq->verb != NODE_SEAL_KEY || text.len == 0);
	if (m->refuse)
		door_answer(a,
			    &(struct node_reply){ .code = m->refuse,
						  .msg = "refused by the test",
						  .retry_s = m->retry_s },
			    (struct bytes){ 0 }, NULL, 0);
	else if (rq->verb == NODE_LIST)
		mock_list(m, a, rq);
	else if (rq->verb == NODE_CREATE)
		mock_create(m, a, rq);
	else if (rq->verb == NODE_ENDED)
		mock_ended(m, a, rq);
	else if (rq->verb == NODE_SNAPSHOTS || (rq->verb == NODE_EXPLAIN && !rq->id[0]))
		door_answer(a, &(struct node_reply){ 0 }, bytes_str(m->record ? m->record : "[]"),
			    NULL, 0);
	else if (rq->verb == NODE_TEMPLATES)
		door_answer(a, &(struct node_reply){ 0 },
			    BYTES_LIT("[{\"templateID\":\"tpl1\",\"alias\":\"base\",\"cpuCount\":2,"
				      "\"memoryMB\":512,\"diskSizeMB\":1024}]"),
			    NULL, 0);
	else if (rq->verb == NODE_TEMPLATE_LIST)
		door_answer(a, &(struct node_reply){ 0 }, BYTES_LIT("[]"), NULL, 0);
	else if (rq->verb == NODE_TEMPLATE_ALIAS)
		mock_alias(a, rq);
	else if (rq->verb == NODE_SEAL_KEY || rq->verb == NODE_SECRET)
		mock_secret(m, a, rq);
	else if (rq->verb == NODE_CONFIRM_LOST)
		door_answer(a, &(struct node_reply){ .count = 1 }, (struct bytes){ 0 }, NULL, 0);
	else if (rq->verb == NODE_STATUS)
		door_answer(a, &(struct node_reply){ 0 }, BYTES_LIT("{\"sandboxes\":3}"), NULL, 0);
	else if (rq->verb == NODE_EXPLAIN ||
		 (rq->verb != NODE_BUILD_START && node_verb_needs(rq->verb) & NODE_NEEDS_ID))
		mock_one(m, a, rq);
	else
		door_answer(a, &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
}

static inline void mock_on_gone(struct node_link_user *u, const char *id, uint32_t generation)
{
	(void)u;
	(void)id;
	(void)generation;
}

static inline void mock_on_link(struct node_link_user *u)
{
	(void)u;
}

static inline void mock_on_request(struct http_server *sv, struct http_request *rq)
{
	api_request(&CONTAINER_OF(sv, struct mock, http)->g, rq);
}

static inline void mock_on_admin(struct http_server *sv, struct http_request *rq)
{
	admin_request(&CONTAINER_OF(sv, struct mock, admin)->g, rq);
}

static inline void mock_note_fields(struct mock *m, const struct http1_head *head)
{
	size_t n = 0;

	for (size_t i = 0; i < head->n_fields; i++)
		n += (size_t)snprintf(m->fields + n, sizeof(m->fields) - n, "%.*s: %.*s\n",
				      (int)head->fields[i].name.len, head->fields[i].name.ptr,
				      (int)head->fields[i].value.len, head->fields[i].value.ptr);
	assert_true(n < sizeof(m->fields));
}

static inline void mock_on_answer(struct http_call *c, const struct http_call_result *ret,
				  const struct err *err)
{
	struct mock *m = CONTAINER_OF(c, struct mock, call);
	struct err why;

	m->done = true;
	if (err) {
		m->failed = *err;
		return;
	}
	m->status = ret->head->status;
	m->body_len = ret->body.len;
	json_decref(m->json);
	m->json = NULL;
	mock_note_fields(m, ret->head);
	if (ret->body.len > 0 &&
	    json_decode(ret->body, MOCK_ANSWER_MAX, JSON_DEPTH_MAX, &m->json, &why) < 0)
		fail_msg("%s", why.msg);
}

static inline void mock_send(struct mock *m, struct http_server *sv, const char *method,
			     const char *target, const char *key, struct bytes body)
{
	struct http1_field field[2] = { { BYTES_LIT("X-API-KEY"), bytes_str(key ? key : "") } };
	struct bytes more = bytes_str(m->header ? m->header : "");
	const struct http_ask ask = { .method = bytes_str(method),
				      .target = bytes_str(target),
				      .host = BYTES_LIT("localhost"),
				      .fields = field,
				      .n_fields = key ? m->header ? 2 : 1 : 0,
				      .body = body,
				      .max_answer = MOCK_ANSWER_MAX };
	struct err err = { 0 };
	int fd[2];

	unix_pair(fd);
	if (bytes_cut(&more, ':', &field[1].name))
		field[1].value = bytes_trim(more);
	m->header = NULL;
	json_decref(m->json);
	m->json = NULL;
	m->done = false;
	m->failed = (struct err){ 0 };
	m->fields[0] = '\0';
	if (http_server_add(sv, test_stream(m->l, fd[1]), NULL, &err) < 0 ||
	    http_call_stream(&m->call, test_stream(m->l, fd[0]), &ask, mock_on_answer, &err) < 0)
		fail_msg("%s", err.msg);
}

/* Ask and wait; the status. */
static inline unsigned int mock_ask(struct mock *m, const char *method, const char *target,
				    const char *key, const char *body)
{
	bool admin = strncmp(target, "/admin/", 7) == 0 && !key;

	mock_send(m, admin ? &m->admin : &m->http, method, target, key, bytes_str(body));
	RUN_UNTIL(m->l, m->done);
	if (m->failed.code)
		fail_msg("%s %s: %s", method, target, m->failed.msg);
	return m->status;
}

static inline const char *mock_text(const struct mock *m, const char *name)
{
	const char *s = json_string_value(json_object_get(m->json, name));

	return s ? s : "(none)";
}

/* An error as all are: the code in the body is the status. */
static inline void mock_expect_error(const struct mock *m, unsigned int status)
{
	assert_int_equal(m->status, status);
	assert_int_equal(json_integer_value(json_object_get(m->json, "code")), status);
	assert_true(json_is_string(json_object_get(m->json, "message")));
	assert_non_null(strstr(m->fields, "Content-Type: application/json\n"));
}

static inline void mock_make_team(struct mock *m, size_t i, const char *name)
{
	char text[256];

	snprintf(text, sizeof(text), "{\"name\":\"%s\"}", name);
	assert_int_equal(mock_ask(m, "POST", "/admin/teams", NULL, text), 201);
	snprintf(m->team[i], sizeof(m->team[i]), "%s", mock_text(m, "teamID"));
	snprintf(text, sizeof(text), "/admin/teams/%s/keys", m->team[i]);
	assert_int_equal(mock_ask(m, "POST", text, NULL, "{\"name\":\"k\"}"), 201);
	snprintf(m->key[i], sizeof(m->key[i]), "%s", mock_text(m, "key"));
}

static inline void mock_open_node(struct mock *m)
{
	static const struct door_user_ops ops = { mock_on_asked };
	struct err err = { 0 };

	m->door_user.ops = &ops;
	if (door_open(m->l, m->node_path, getuid(), getgid(), &m->door_user, &m->door, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline int mock_set_up(void **state)
{
	static const struct node_link_ops link_ops = { mock_on_gone, mock_on_link, mock_on_link };
	static const struct http_server_ops ops = { mock_on_request },
					    admin_ops = { mock_on_admin };
	struct mock *m = calloc(1, sizeof(*m));
	struct err err = { 0 };

	assert_non_null(m);
	m->l = m->g.loop = test_loop();
	snprintf(m->dir, sizeof(m->dir), "/tmp/hotcell-api-XXXXXX");
	assert_non_null(mkdtemp(m->dir));
	snprintf(m->node_path, sizeof(m->node_path), "%s/node.sock", m->dir);
	mock_open_node(m);
	m->node_user.ops = &link_ops;
	if (store_open(m->l, m->dir, &m->store, &err) < 0 || api_open(&m->g, m->store, &err) < 0 ||
	    node_link_open(m->l, m->node_path, &m->node_user, &m->g.node, &err) < 0)
		fail_msg("%s", err.msg);
	http_server_init(&m->http, m->l, &ops, &HTTP_LIMITS);
	http_server_init(&m->admin, m->l, &admin_ops, &HTTP_LIMITS);
	mock_make_team(m, 0, "one");
	mock_make_team(m, 1, "two");
	*state = m;
	return 0;
}

static inline int mock_tear_down(void **state)
{
	AUTO(auto_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct mock *m = *state;
	struct err err;

	http_call_cancel(&m->call);
	http_server_done(&m->http);
	http_server_done(&m->admin);
	api_close(m->g.api);
	store_close(m->store);
	node_link_close(m->g.node);
	door_close(m->door);
	loop_free(m->l);
	json_decref(m->json);
	for (size_t i = 0; i < m->n; i++)
		free(m->all[i].text);
	assert_int_equal(folder_remove(tmp, strrchr(m->dir, '/') + 1, &err), 0);
	free(m);
	return 0;
}
