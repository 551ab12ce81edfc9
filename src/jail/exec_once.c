/* exec_once.c - one message at most: an error, or none and the listener. */
/* #parses: one message of a fixed size; from the child that will be QEMU, before it is */
#include "jail/exec_once.h"

#include "base/fdmsg.h"
#include "jail/vmm_filter.h"

int exec_once_ready(int sync, struct err *err)
{
	AUTO(auto_close) int listener = vmm_filter_load(err);

	if (listener < 0)
		return -1;
	return fdmsg_send(sync, &(struct err){ 0 }, sizeof(struct err), &listener, 1, err);
}

_Noreturn void exec_once_failed(int sync, const struct err *why)
{
	/* best effort: a closed socket tells the other enough */
	(void)!fdmsg_send(sync, why, sizeof(*why), NULL, 0, &(struct err){ 0 });
	_exit(127);
}

int exec_once_wait(int sync, struct err *err)
{
	struct err said = { 0 };
	int listener = -1;
	size_t n = 0;

	if (fdmsg_recv(sync, &said, sizeof(said), &listener, 1, &n, err) < 0)
		return err_wrap(err, "the process ended before exec");
	if (n == 1)
		return listener;
	*err = said;
	return -1;
}

int exec_once_pass(int sync, int listener, struct err *err)
{
	int passed = vmm_filter_pass_exec(listener, err);

	close(listener); /* from now on exec fails */
	return passed < 0 ? -1 : exec_once_done(sync, err);
}

int exec_once_done(int sync, struct err *err)
{
	struct err said = { 0 };
	size_t n = 0;

	if (fdmsg_recv(sync, &said, sizeof(said), NULL, 0, &n, err) == 0) {
		*err = said;
		return -1;
	}
	*err = (struct err){ 0 }; /* the socket closed: it runs */
	return 0;
}
