/* pmem.c - no persistent memory: no VM is given any, and a write that is not kept would be a lie.
 */

#define NEVER(name)                                            \
	void name(void);                                       \
	__attribute__((visibility("default"))) void name(void) \
	{                                                      \
		__builtin_trap();                              \
	}

NEVER(pmem_check_version)
NEVER(pmem_deep_drain)
NEVER(pmem_deep_flush)
NEVER(pmem_deep_persist)
NEVER(pmem_drain)
NEVER(pmem_errormsg)
NEVER(pmem_flush)
NEVER(pmem_has_auto_flush)
NEVER(pmem_has_hw_drain)
NEVER(pmem_is_pmem)
NEVER(pmem_map_file)
NEVER(pmem_memcpy)
NEVER(pmem_memcpy_nodrain)
NEVER(pmem_memcpy_persist)
NEVER(pmem_memmove)
NEVER(pmem_memmove_nodrain)
NEVER(pmem_memmove_persist)
NEVER(pmem_memset)
NEVER(pmem_memset_nodrain)
NEVER(pmem_memset_persist)
NEVER(pmem_msync)
NEVER(pmem_persist)
NEVER(pmem_unmap)
