/* host_text.c - lines of a row, put together and taken apart. */
#include "node/files/host_text.h"

#include <errno.h>

enum { HOST_TEXT_MAX = 256 * 1024 };

static void copy_text(char *to, const char *from, size_t size)
{
	memcpy(to, from, size);
	to[size - 1] = '\0';
}

void host_copy(struct manifest_facts *to, const struct manifest_facts *from)
{
	copy_text(to->vmm_version, from->vmm_version, sizeof(to->vmm_version));
	copy_text(to->cpu_model, from->cpu_model, sizeof(to->cpu_model));
	copy_text(to->accel, from->accel, sizeof(to->accel));
	copy_text(to->arguments, from->arguments, sizeof(to->arguments));
	if (from->vcpus > 0)
		to->vcpus = from->vcpus;
	if (from->memory_mib > 0)
		to->memory_mib = from->memory_mib;
}

int host_text_join(const char *text, const char *env, const struct manifest_facts *host, char **ret,
		   struct err *err)
{
	struct buf out = BUF_MAX(HOST_TEXT_MAX);
	const uint8_t end = 0;

	*ret = NULL;
	if (!text && !env && !host)
		return 0;
	if ((text && buf_add(&out, bytes_str(text), err) < 0) ||
	    ((env || host) && buf_printf(&out, err, "\n%s", env ? env : "") < 0) ||
	    (host && buf_printf(&out, err, "\n%s\n%s\n%s\n%s", host->vmm_version, host->cpu_model,
				host->accel, host->arguments) < 0) ||
	    buf_add(&out, (struct bytes){ &end, 1 }, err) < 0) {
		buf_done(&out);
		return -1;
	}
	*ret = (char *)out.ptr;
	return 0;
}

static int take_line(struct bytes *rest, char **ret, struct err *err)
{
	struct bytes line = *rest;

	if (!bytes_cut(rest, '\n', &line))
		*rest = (struct bytes){ 0 };
	if (line.len == 0)
		return 0;
	*ret = strndup((const char *)line.ptr, line.len);
	return *ret ? 0 : err_set(err, ERR_EXHAUSTED, ENOMEM, "a line of its row");
}

static int take_host(struct bytes rest, struct manifest_facts *ret, struct err *err)
{
	struct bytes vmm, cpu, accel;

	if (!bytes_cut(&rest, '\n', &vmm) || !bytes_cut(&rest, '\n', &cpu) ||
	    !bytes_cut(&rest, '\n', &accel) ||
	    !bytes_to_str(vmm, ret->vmm_version, sizeof(ret->vmm_version)) ||
	    !bytes_to_str(cpu, ret->cpu_model, sizeof(ret->cpu_model)) ||
	    !bytes_to_str(accel, ret->accel, sizeof(ret->accel)) ||
	    !bytes_to_str(rest, ret->arguments, sizeof(ret->arguments)))
		return err_set(err, ERR_INVALID, 0, "its row does not say what it was booted on");
	return 0;
}

int host_text_split(const char *all, char **ret_text, char **ret_env,
		    struct manifest_facts **ret_host, struct err *err)
{
	struct bytes rest = bytes_str(all ? all : "");

	*ret_text = *ret_env = NULL;
	*ret_host = NULL;
	if (take_line(&rest, ret_text, err) < 0 || take_line(&rest, ret_env, err) < 0)
		return -1;
	if (rest.len == 0)
		return 0;
	*ret_host = calloc(1, sizeof(**ret_host));
	if (!*ret_host)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "what it was booted on");
	return take_host(rest, *ret_host, err);
}
