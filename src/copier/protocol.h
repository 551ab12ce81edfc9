/* protocol.h - what node says to a copier, and what it answers: over the socket that node made.
 *
 * A copier is started by warden (WARDEN_COPY) under a VM's uid and in its group, with the VM's
 * memory in its hand. It does what node says on its control socket (SOCK_SEQPACKET), one message
 * after the other, and ends when that socket closes.
 *
 *	save:   [it runs] COPIER_FIRST -> answer;  [it is stopped] COPIER_COPY -> answer;
 *		[its device state is written] COPIER_STATE -> answer;  COPIER_SYNC -> answer
 *	apply:  [the VM waits for its state] COPIER_APPLY -> answer
 *
 * The file of pages: a header, then pages that differ from the template's memory, then a table of
 * runs. All of it is read as if it were hostile.
 *
 * This header and copier/pages.h are the only parts of copier/ that others may include.
 */
#pragma once

#include <stdint.h>

enum {
	COPIER_VERSION = 3,
	COPIER_PAGE = 4096,
	COPIER_STATE_MAX = 64 * 1024 * 1024, /* device state, in bytes */
	COPIER_MESSAGE_MAX = 256,
};

/* Descriptors of WARDEN_COPY, in this order. */
enum copier_fd {
	COPIER_FD_CONTROL, /* the other end is node's */
	COPIER_FD_PAGES,   /* save: written (O_RDWR, empty); apply: read */
	COPIER_FD_MEMORY,  /* what the VM's memory was mapped from, read */
	COPIER_FD_STATE, /* save: the device state goes here (O_RDWR, empty); apply: may be left out
			  */
	COPIER_FDS,
};

/* Where a copier, started as `hotcell-copier save` or `hotcell-copier apply`, finds them, and what
 * warden adds: of the VM's process, but for the last one. */
enum copier_number {
	COPIER_AT = 3,                          /* and so on, as in enum copier_fd */
	COPIER_AT_MEM = COPIER_AT + COPIER_FDS, /* its memory; apply: written */
	COPIER_AT_MAPS,
	COPIER_AT_PAGEMAP,
	COPIER_AT_SAVED, /* the file WARDEN_SAVE_FILE of the VM; save: read, then emptied */
	COPIER_AT_END,
};

enum copier_verb {
	COPIER_FIRST, /* pages into the file while the VM runs; may be left out */
	COPIER_COPY,  /* what of them has changed since, while it stands still; not synced yet */
	COPIER_STATE, /* after it: device state into its file */
	COPIER_SYNC,  /* make both durable, read them again and compare with what was written */
	COPIER_APPLY, /* check the file of pages, then write them into the VM's memory */
	COPIER_VERBS,
};

struct copier_request {
	uint32_t version;
	uint32_t verb;
	uint32_t base_crc; /* CRC-32C of COPIER_FD_MEMORY. COPY: goes into the head; APPLY: is
			    * compared with the head's. 0: not known */
	uint32_t reserved; /* 0 */
};

struct copier_reply {
	uint32_t code; /* enum err_code, 0 is success */
	int32_t sys;   /* errno, 0 if none */
	char msg[COPIER_MESSAGE_MAX];
	uint64_t pages, zero_pages; /* that differ from the template's; zero ones take no room */
	uint64_t pages_bytes;       /* of the file of pages */
	uint64_t state_bytes;
	uint32_t pages_crc, state_crc; /* CRC-32C of the whole files */
	uint64_t took_us;
};
