/* main.c - hotcell-egress: what leaves a sandbox.
 *
 * It holds the two doors inside each sandbox's network namespace, decides who is let out, and
 * dials in its place. It owns no state: killed at any instant, the sandboxes' kernels are told that
 * nobody listens, and node hands the doors to the next egress.
 */
#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "egress/control.h"
#include "egress/host_addresses.h"
#include "egress/nft.h"
#include "egress/resolvers.h"
#include "egress/settings.h"
#include "egress/syscalls.h"
#include "jail/confine.h"
#include "net/signals.h"
#include "net/watchdog.h"
#include "wire/json.h"

enum { FILES_WANTED = 64 * 1024 }; /* two for each sandbox and each connection */

struct program {
	struct house house;
	struct policy_ground ground;
	struct addr proxy;
	struct control *control;
	struct signal_end end;
	struct notify notify;
	struct watchdog watchdog;
};

static int read_ground(struct program *p, const struct config_value *set, struct err *err)
{
	p->house.ground = &p->ground;
	p->house.limits = (struct house_limits){ set[SET_CONNECTIONS].number,
						 (unsigned int)set[SET_PER_SECOND].number,
						 house_bytes_per_s(set[SET_MBIT].number) };
	if (set[SET_PROXY].text[0]) {
		if (addr_parse(bytes_str(set[SET_PROXY].text), &p->proxy, err) < 0)
			return err_wrap(err, "proxy");
		p->house.proxy = &p->proxy;
		host_addresses_proxy(&p->ground, &p->proxy);
		p->ground.proxy_resolves = set[SET_PROXY_RESOLVES].number;
	}
	p->ground.mode = (enum policy_mode)set[SET_NETWORK].number;
	if (policy_ground_allow(&p->ground, bytes_str(set[SET_ALLOW].text), err) < 0 ||
	    policy_ground_services(&p->ground, bytes_str(set[SET_SERVICES].text), err) < 0)
		return -1;
	return policy_ground_check(&p->ground, err);
}

/* Where the proxy resolves nobody is asked here. */
static int read_resolvers(const struct program *p, const struct config_value *set,
			  struct question_servers *ret, struct err *err)
{
	*ret = (struct question_servers){ 0 };
	return p->ground.proxy_resolves ? 0 : resolvers_read(set[SET_RESOLVERS].text, ret, err);
}

static int open_resolver(struct program *p, const struct config_value *set, struct err *err)
{
	struct question_servers servers;

	if (read_resolvers(p, set, &servers, err) < 0)
		return -1;
	return resolver_open(&p->house.resolver, p->house.loop, &servers, err);
}

static int set_up(struct program *p, const struct config_value *set, struct err *err)
{
	const struct confine limits = { .user = set[SET_USER].text, .syscalls = syscalls };

	json_object_seed(0); /* before there is no /dev/urandom */
	if (notify_open(&p->notify, err) < 0 || confine_begin(FILES_WANTED, err) < 0 ||
	    loop_open(&p->house.loop, err) < 0 || read_ground(p, set, err) < 0 ||
	    host_addresses_read(&p->ground, err) < 0 || open_resolver(p, set, err) < 0 ||
	    signal_end_open(&p->end, p->house.loop, err) < 0 ||
	    control_open(&p->control, &p->house, set[SET_SOCKET].text,
			 (uid_t)set[SET_NODE_UID].number, err) < 0)
		return -1;
	return confine(&limits, err);
}

static void tear_down(struct program *p)
{
	watchdog_stop(&p->watchdog);
	notify_close(&p->notify);
	control_close(p->control);
	resolver_close(p->house.resolver);
	policy_ground_done(&p->ground);
	signal_end_close(&p->end);
	loop_free(p->house.loop);
}

/* --- the rules of the host's kernel ----------------------------------------------------------- */

static int print_nft(struct program *p, const struct config_value *set, struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NFT_RULES_MAX);
	struct question_servers servers;
	uid_t uid;

	if (confine_uid(set[SET_USER].text, &uid, err) < 0 || read_ground(p, set, err) < 0 ||
	    read_resolvers(p, set, &servers, err) < 0 ||
	    nft_rules(uid, &p->ground, &servers, p->house.proxy, &out, err) < 0)
		return -1;
	if (fwrite(out.ptr, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "print the rules");
	return 0;
}

/* --- main ------------------------------------------------------------------------------------- */

static int help(int status)
{
	printf("usage: hotcell-egress CONFIG\n"
	       "       hotcell-egress --nft CONFIG   print rules for nft: what its user may not "
	       "reach\n\n"
	       "The configuration file, with its defaults:\n\n");
	config_print(settings_table, SETTINGS, stdout);
	return status;
}

static int serve(struct program *p, const struct config_value *set, struct err *err)
{
	if (set_up(p, set, err) < 0)
		return -1;
	log_info("serving on %s", set[SET_SOCKET].text);
	watchdog_ready(&p->watchdog, p->house.loop, &p->notify);
	loop_run(p->house.loop);
	return 0;
}

int main(int argc, char **argv)
{
	bool nft = argc == 3 && strcmp(argv[1], "--nft") == 0;
	struct config_value set[SETTINGS];
	struct program p = { 0 };
	struct err err = { 0 };
	int rc;

	log_init("egress", LOG_INFO);
	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return help(0);
	if (argc != 2 && !nft)
		return help(2);
	if (config_load(settings_table, SETTINGS, argv[argc - 1], set, &err) < 0) {
		log_error("%s", err.msg);
		return 2;
	}
	rc = nft ? print_nft(&p, set, &err) : serve(&p, set, &err);
	if (rc < 0)
		log_error("%s; fix: `hotcell doctor` says what this host lacks", err.msg);
	tear_down(&p);
	return rc < 0 ? 1 : 0;
}
