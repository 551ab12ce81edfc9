/* create_request.c - what a new sandbox shall be, member by member. */
#include "gateway/parse/create_request.h"

#include "gateway/parse/ingress.h"
#include "gateway/parse/network_request.h"
#include "gateway/parse/template_ref.h"
#include "wire/json.h"

int timeout_take(const json_t *body, const char *name, int64_t *ret, struct err *err)
{
	if (json_may_int(body, name, INT64_MIN, INT64_MAX, ret, err) == 0)
		return 0;
	if (json_object_get(body, name))
		return err_set(err, ERR_INVALID, 0, "%s must be a whole number of seconds", name);
	return -1;
}

int timeout_check(int64_t seconds, int64_t least, uint32_t *ret, struct err *err)
{
	if (seconds < least)
		return err_set(err, ERR_INVALID, 0, "Timeout must be greater than %d",
			       (int)least - 1);
	*ret = (uint32_t)(seconds <= NODE_TIMEOUT_MAX_S ? seconds : NODE_TIMEOUT_MAX_S + 1);
	return 0;
}

/* {"name":"value"}; given on as it is, absent becomes {}. */
static int take_strings(const json_t *body, const char *name, json_t *text, struct err *err)
{
	json_t *from = NULL, *v;
	const char *key;

	if (json_may_object(body, name, &from, err) < 0)
		return -1;
	if (!from)
		return json_object_set_new(text, name, json_object());
	json_object_foreach(from, key, v)
	{
		if (!json_is_string(v))
			return err_set(err, ERR_INVALID, 0, "%s must have strings as values", name);
	}
	return json_object_set(text, name, from);
}

static int check_env_names(const json_t *text, struct err *err)
{
	json_t *v;
	const char *key;

	json_object_foreach(json_object_get(text, "envVars"), key, v)
	{
		if (key[0] == '\0' || strchr(key, '='))
			return err_set(err, ERR_INVALID, 0,
				       "envVars: a name must not be empty or contain '='");
	}
	return 0;
}

static int refuse(const char *what, struct err *err)
{
	return err_set(err, ERR_INVALID, 0, "%s is not supported yet", what);
}

/* A member as it was given, in either spelling. */
static int keep(const json_t *from, const char *name, const char *other, json_t *to)
{
	json_t *v = json_object_get(from, name);

	v = v ? v : json_object_get(from, other);
	return v && !json_is_null(v) ? json_object_set(to, name, v) : 0;
}

static int keep_ingress(const json_t *from, json_t *to)
{
	return keep(from, "allowPublicTraffic", "allow_public_traffic", to) |
	       keep(from, "maskRequestHost", "mask_request_host", to) |
	       keep(from, "httpsPorts", "https_ports", to);
}

/* Who may reach it, and how. */
static int take_ingress(const json_t *network, struct create_request *ret, struct err *err)
{
	struct ingress in;

	if (ingress_read(network, &in, err) < 0)
		return -1;
	if (in.private && !ret->secure)
		return err_set(err, ERR_INVALID, 0,
			       "You cannot create a sandbox without public access unless you "
			       "enable secure envd access via 'secure' flag.");
	ret->private = in.private;
	ret->ingress = in.mask_host[0] != '\0' || in.n_https > 0;
	return 0;
}

/* Whom it may reach, and who may reach it. */
static int take_network(const json_t *body, struct create_request *ret, json_t *text,
			struct err *err)
{
	AUTO(json_decrefp) json_t *clean = NULL;
	json_t *network = NULL;

	if (json_may_object(body, "network", &network, err) < 0 ||
	    network_request_internet(body, text, err) < 0)
		return -1;
	if (!network)
		return 0;
	if (take_ingress(network, ret, err) < 0 ||
	    network_request_take(network, "network.", &clean, err) < 0 ||
	    keep_ingress(network, clean) < 0)
		return -1;
	return json_object_set(text, "network", clean);
}

static int take_mcp(const json_t *body, json_t *text, struct err *err)
{
	json_t *mcp = NULL;

	if (json_may_object(body, "mcp", &mcp, err) < 0)
		return -1;
	return mcp ? json_object_set(text, "mcp", mcp) : 0;
}

static int take_pausing(const json_t *body, struct create_request *ret, struct err *err)
{
	json_t *resume = NULL;

	ret->pause_memory = true;
	if (json_may_bool(body, "autoPause", &ret->auto_pause, err) < 0 ||
	    json_may_bool(body, "autoPauseMemory", &ret->pause_memory, err) < 0 ||
	    json_may_object(body, "autoResume", &resume, err) < 0 ||
	    (resume && json_may_bool(resume, "enabled", &ret->auto_resume, err) < 0))
		return -1;
	if (!ret->pause_memory && !ret->auto_pause)
		return err_set(err, ERR_INVALID, 0, "autoPauseMemory = false needs autoPause");
	if (!ret->pause_memory && ret->auto_resume)
		return err_set(err, ERR_INVALID, 0,
			       "autoResume needs memory: autoPauseMemory must not be false");
	return 0;
}

/* `"memory": false`, as of a resume. Of a template there is nothing to leave out. */
static int take_memory(const json_t *body, struct create_request *ret, struct err *err)
{
	bool memory = true;

	if (json_may_bool(body, "memory", &memory, err) < 0)
		return -1;
	ret->boot = !memory;
	return 0;
}

static int check_absent(const json_t *body, struct err *err)
{
	json_t *mounts = NULL, *iam = NULL, *tokens = NULL;

	if (json_may_array(body, "volumeMounts", &mounts, err) < 0 ||
	    json_may_object(body, "iam", &iam, err) < 0 ||
	    (iam && json_may_object(iam, "tokens", &tokens, err) < 0))
		return -1;
	if (json_array_size(mounts) > 0)
		return refuse("volumeMounts", err);
	return json_object_size(tokens) > 0 ? refuse("iam", err) : 0;
}

/* In either spelling. */
static bool is_member(const char *given, const char *name)
{
	for (; *name; name++) {
		if (given[0] == '_' && *name >= 'A' && *name <= 'Z' &&
		    given[1] == *name - 'A' + 'a')
			given++;
		else if (*given != *name)
			return false;
		given++;
	}
	return *given == '\0';
}

static bool is_any(const char *given, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_member(given, names[i]))
			return true;
	return false;
}

/* No SDK sends these with a create; whoever does believes that it helps. */
static int check_sizes(const json_t *body, struct err *err)
{
	static const char *const names[] = { "cpuCount", "memoryMB", "diskSizeMB" };
	const char *given;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)body, given, v)
	{
		if (is_any(given, names, COUNT(names)) || strcmp(given, "memory_mb") == 0 ||
		    strcmp(given, "disk_size_mb") == 0)
			return err_set(err, ERR_INVALID, 0,
				       "%s: a sandbox has the size of its template; build a "
				       "template with the CPUs and memory that you want",
				       given);
	}
	return 0;
}

static void note_ignored(const json_t *body, struct create_request *ret)
{
	static const char *const known[] = {
		"templateID",          "timeout", "secure",       "autoPause", "autoPauseMemory",
		"autoResume",          "memory",  "metadata",     "envVars",   "network",
		"allowInternetAccess", "mcp",     "volumeMounts", "iam",
	};
	size_t n = 0;
	const char *given;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)body, given, v)
	{
		if (json_is_null(v) || is_any(given, known, COUNT(known)))
			continue;
		n += (size_t)snprintf(ret->ignored + n, sizeof(ret->ignored) - n, "%s%.32s",
				      n ? ", " : "", given);
		if (n >= sizeof(ret->ignored))
			return;
	}
}

static int take_template(const json_t *body, struct create_request *ret, struct err *err)
{
	struct bytes name;

	if (json_want_string(body, "templateID", &name, err) < 0)
		return -1;
	return template_ref_parse(name, &ret->template, err);
}

static int take_numbers(const json_t *body, enum api_version version, struct create_request *ret,
			struct err *err)
{
	int64_t timeout = version == API_V1 ? CREATE_TIMEOUT_V1_S : CREATE_TIMEOUT_V2_S;

	/* version 2 has no such member: always secured */
	ret->secure = version == API_V2;
	if (timeout_take(body, "timeout", &timeout, err) < 0 ||
	    (version == API_V1 && json_may_bool(body, "secure", &ret->secure, err) < 0))
		return -1;
	return timeout_check(timeout, 1, &ret->timeout_s, err);
}

static int make_text(const json_t *body, struct create_request *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *text = json_object();
	struct err why = { .code = ERR_EXHAUSTED, .msg = "no memory" }; /* jansson says nothing */

	if (!text || take_strings(body, "metadata", text, &why) < 0 ||
	    take_strings(body, "envVars", text, &why) < 0 || check_env_names(text, &why) < 0 ||
	    take_network(body, ret, text, &why) < 0 || take_mcp(body, text, &why) < 0) {
		*err = why;
		return -1;
	}
	ret->text = TAKE(text);
	return 0;
}

int create_request_text(const struct create_request *r, struct buf *ret, struct err *err)
{
	*ret = BUF_MAX(NODE_TEXT_MAX);
	if (json_encode(r->text, ret, err) < 0)
		return err_set(err, ERR_INVALID, 0,
			       "metadata, envVars, network and mcp are larger than %d KiB together",
			       NODE_TEXT_MAX / 1024);
	return 0;
}

int create_request_parse(struct bytes body, enum api_version version, struct create_request *ret,
			 struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	*ret = (struct create_request){ 0 };
	if (json_decode(body, CREATE_BODY_MAX, CREATE_DEPTH_MAX, &v, err) < 0) {
		err->code = ERR_INVALID; /* too deep is the client's fault, too */
		return -1;
	}
	if (take_template(v, ret, err) < 0 || take_numbers(v, version, ret, err) < 0 ||
	    take_pausing(v, ret, err) < 0 || take_memory(v, ret, err) < 0 ||
	    check_absent(v, err) < 0 || check_sizes(v, err) < 0 || make_text(v, ret, err) < 0) {
		create_request_done(ret);
		return -1;
	}
	note_ignored(v, ret);
	return 0;
}

void create_request_done(struct create_request *r)
{
	json_decref(TAKE(r->text));
}
