/* program.c - the header, the table of segments, and the one that names the loader. */
#include "unpack/program.h"

#include <elf.h>

enum { SEGMENTS_MAX = 256 };

static int check(const Elf64_Ehdr *h, struct err *err)
{
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return err_set(err, ERR_INVALID, 0, "not a program (ELF)");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
	    h->e_machine != EM_X86_64)
		return err_set(err, ERR_INVALID, 0,
			       "a program for another processor (machine %u), not x86-64",
			       h->e_machine);
	if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum > SEGMENTS_MAX)
		return err_set(err, ERR_INVALID, 0, "a program without a table of segments");
	return 0;
}

static int read_loader(struct bytes head, const Elf64_Phdr *segment, char *ret, struct err *err)
{
	struct bytes text;

	if (segment->p_filesz < 2 || segment->p_filesz > PROGRAM_LOADER_MAX + 1 ||
	    segment->p_offset > head.len || segment->p_filesz > head.len - segment->p_offset)
		return err_set(err, ERR_INVALID, 0, "a program whose loader has no name");
	text = bytes_head(bytes_tail(head, segment->p_offset), segment->p_filesz - 1);
	if (!bytes_to_str(text, ret, PROGRAM_LOADER_MAX + 1) || ret[0] != '/')
		return err_set(err, ERR_INVALID, 0, "a program whose loader is no path");
	return 0;
}

int program_loader(struct bytes head, char ret[PROGRAM_LOADER_MAX + 1], struct err *err)
{
	Elf64_Ehdr h;
	Elf64_Phdr segment;

	ret[0] = '\0';
	if (head.len < sizeof(h))
		return err_set(err, ERR_INVALID, 0, "not a program (ELF)");
	memcpy(&h, head.ptr, sizeof(h));
	if (check(&h, err) < 0)
		return -1;
	for (size_t i = 0; i < h.e_phnum; i++) {
		if (h.e_phoff > head.len || head.len - h.e_phoff < (i + 1) * sizeof(segment))
			return err_set(err, ERR_INVALID, 0,
				       "a program without a table of segments");
		memcpy(&segment, head.ptr + h.e_phoff + i * sizeof(segment), sizeof(segment));
		if (segment.p_type == PT_INTERP)
			return read_loader(head, &segment, ret, err);
	}
	return 0;
}
