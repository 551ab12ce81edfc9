/* doctor.c - `hotcell doctor`: runs every check and says what to do about what it found. */
#include "cli/doctor.h"

#include <fcntl.h>
#include <stdarg.h>

static const char *const words[] = { "ok", "warn", "FAIL" };

void finding_set(struct finding *f, enum verdict v, const char *fix, const char *fmt, ...)
{
	va_list args;

	f->verdict = v;
	f->fix = fix;
	va_start(args, fmt);
	vsnprintf(f->what, sizeof(f->what), fmt, args);
	va_end(args);
}

bool doctor_read(const char *path, char *ret, size_t size)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

	if (n < 0)
		return false;
	ret[n] = '\0';
	return true;
}

static void print_line(const struct check *k, const struct finding *f)
{
	printf("%-4s  %-12s  %s\n", words[f->verdict], k->name, f->what);
	if (f->verdict != VERDICT_OK && f->fix)
		printf("%20sfix: %s\n", "", f->fix);
}

static int add_json(json_t *all, const struct check *k, const struct finding *f)
{
	json_t *one = json_pack("{s:s,s:s,s:o,s:s*}", "check", k->name, "verdict",
				words[f->verdict], "found", json_text(bytes_str(f->what)), "fix",
				f->verdict != VERDICT_OK ? f->fix : NULL);

	return one && json_array_append_new(all, one) == 0 ? 0 : -1;
}

static int check_host(const struct cli *c)
{
	AUTO(json_decrefp) json_t *all = json_array();
	int status = CLI_FINE;

	for (size_t i = 0; i < n_host_checks; i++) {
		struct finding f = { 0 };

		host_checks[i].look(c, &f);
		if (f.verdict == VERDICT_FAIL)
			status = CLI_FAILED;
		if (!c->json)
			print_line(&host_checks[i], &f);
		else if (add_json(all, &host_checks[i], &f) < 0)
			return CLI_FAILED;
	}
	if (c->json && cli_print_json(all) != CLI_FINE)
		return CLI_FAILED;
	return status;
}

int doctor_run(struct cli *c, int argc, char **argv)
{
	(void)argv;
	if (argc != 1)
		return cli_usage(c, "doctor [--leaks]");
	return c->leaks ? leaks_run(c) : check_host(c);
}
