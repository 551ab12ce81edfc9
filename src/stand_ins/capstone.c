/* capstone.c - no disassembler: it opens for no architecture, so that nobody asks it for more. */

#define NOTHING(name)                                         \
	int name(void);                                       \
	__attribute__((visibility("default"))) int name(void) \
	{                                                     \
		return 0;                                     \
	}

enum { UNSUPPORTED_ARCHITECTURE = 2 }; /* CS_ERR_ARCH */

int cs_open(void);
__attribute__((visibility("default"))) int cs_open(void)
{
	return UNSUPPORTED_ARCHITECTURE;
}

NOTHING(cs_close)
NOTHING(cs_disasm)
NOTHING(cs_disasm_ex)
NOTHING(cs_disasm_iter)
NOTHING(cs_errno)
NOTHING(cs_free)
NOTHING(cs_group_name)
NOTHING(cs_insn_group)
NOTHING(cs_insn_name)
NOTHING(cs_malloc)
NOTHING(cs_op_count)
NOTHING(cs_op_index)
NOTHING(cs_option)
NOTHING(cs_reg_name)
NOTHING(cs_reg_read)
NOTHING(cs_reg_write)
NOTHING(cs_regs_access)
NOTHING(cs_strerror)
NOTHING(cs_support)
NOTHING(cs_version)
