/* guarded_ports.c - see guarded_ports.h. */
#include "wire/guarded_ports.h"

static const char *const kinds[GUARDED_KINDS] = {
	[GUARDED_ANY] = "",
	[GUARDED_DEVTOOLS] = "devtools",
	[GUARDED_NOVNC] = "novnc",
};

const char *guarded_kind_name(enum guarded_kind kind)
{
	return kinds[kind];
}

static int take_kind(struct bytes name, enum guarded_kind *ret, struct err *err)
{
	for (size_t k = GUARDED_ANY + 1; k < GUARDED_KINDS; k++)
		if (bytes_eq(name, bytes_str(kinds[k]))) {
			*ret = (enum guarded_kind)k;
			return 0;
		}
	return err_set(err, ERR_INVALID, 0,
		       GUARDED_PORTS_VARIABLE ": a port may be /devtools or /novnc");
}

static int take_port(struct bytes one, struct guarded_ports *ret, struct err *err)
{
	struct guarded_port p = { 0 };
	struct bytes kind = one, number = one;
	uint64_t n;

	if (bytes_cut(&kind, '/', &number) && take_kind(kind, &p.kind, err) < 0)
		return -1;
	if (number.len > 5 || !bytes_to_u64(number, &n) || n < 1 || n > UINT16_MAX)
		return err_set(err, ERR_INVALID, 0,
			       GUARDED_PORTS_VARIABLE ": ports are numbers from 1 to 65535");
	if (n == GUEST_AGENT_PORT)
		return err_set(err, ERR_INVALID, 0,
			       GUARDED_PORTS_VARIABLE
			       ": port %d is the agent's, which has a token of its own",
			       GUEST_AGENT_PORT);
	if (guarded_ports_find(ret, (uint16_t)n))
		return err_set(err, ERR_INVALID, 0,
			       GUARDED_PORTS_VARIABLE ": port %u is there twice", (unsigned int)n);
	if (ret->n == GUARDED_PORTS_MAX)
		return err_set(err, ERR_INVALID, 0, GUARDED_PORTS_VARIABLE ": more than %d ports",
			       GUARDED_PORTS_MAX);
	p.port = (uint16_t)n;
	ret->at[ret->n++] = p;
	return 0;
}

int guarded_ports_parse(struct bytes text, struct guarded_ports *ret, struct err *err)
{
	struct bytes one;

	*ret = (struct guarded_ports){ 0 };
	if (text.len > GUARDED_PORTS_TEXT_MAX)
		return err_set(err, ERR_INVALID, 0,
			       GUARDED_PORTS_VARIABLE ": more than %d characters",
			       GUARDED_PORTS_TEXT_MAX);
	while (bytes_next(&text, ',', &one))
		if (take_port(bytes_trim(one), ret, err) < 0)
			return -1;
	return 0;
}

const struct guarded_port *guarded_ports_find(const struct guarded_ports *g, uint16_t port)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->at[i].port == port)
			return &g->at[i];
	return NULL;
}
