/* verbs.h - the words of protocol.h: what may be asked, with which flags, and why one ended. */
#pragma once

enum node_verb {
	NODE_CREATE,  /* team, template_id (or alias; or a snapshot's id or name) and template_tag,
			 timeout_s,  flags, text -> sandbox */
	NODE_GET,     /* team, id -> sandbox, text; ended: ERR_NOT_FOUND, tombstone in reply */
	NODE_KILL,    /* team, id; answered when it is gone; a paused one, too */
	NODE_TIMEOUT, /* team, id, timeout_s from now; longer or shorter, capped -> sandbox */
	NODE_CONNECT, /* team, id, timeout_s from now, flags; never shortens; one that is paused is
		       * resumed (reply.resumed) -> sandbox, text */
	NODE_PAUSE,   /* team, id, flags; answered when it is durable -> sandbox. ERR_EXISTS: it
		       * is paused already */
	NODE_RESUME,  /* as NODE_CONNECT, but ERR_EXISTS when it runs already */
	NODE_ENDED,   /* team, after_ns and id -> count tombstones, as struct node_tombstone, those
		       * that ended later; "" as team: an operator's, of all */
	NODE_METRICS, /* team, id, after_ns, until_ns -> text: a JSON array of points */
	NODE_LOGS,    /* team, id, after_ns, until_ns, count, flags -> text: a JSON array */
	NODE_LIST,    /* team, after_ns and id: what started later (order: started_ns, id) ->
		       * count entries, as struct node_entry below, as many as fit */
	NODE_SOCKETS, /* id, count, flags -> sandbox, that many unconnected TCP sockets in its
		       * network. NODE_AUTO_RESUME: a request waits for them, so one that is paused
		       * and may be resumed by traffic is. NODE_TO_AGENT besides: of a secure
		       * one only when text is its access token, NODE_PRIVATE: of a private one
		       * only when it is its traffic token, else ERR_DENIED. A paused one is not
		       * resumed without: ERR_NOT_FOUND. NODE_INGRESS: its text, too */
	NODE_TEMPLATES, /* -> text: a JSON array of objects, see node/door/README.md */
	NODE_STATUS,    /* -> text: a JSON object: counts and limits of this host */
	NODE_SIGNED,    /* id or "", flags, text: the query of a signed URL (no JSON) -> the sandbox
			 * whose token signed it. When it ends is not looked at: the agent does */
	NODE_SNAPSHOT,  /* team, id, template_id: its name, or "", template_tag -> text: a JSON
			 * object. The  sandbox goes on. ERR_EXISTS: it is paused */
	NODE_SNAPSHOTS, /* team, filters: id (of the source), template_id and tag; after_ns: those
			 * made before, count -> text: a JSON array, the newest first */
	NODE_SNAPSHOT_DELETE, /* team, template_id, tag. ERR_INVALID: sandboxes were made of it */
	NODE_FORK, /* team, id, timeout_s, count, limits of key_id -> count of struct node_forked.
		    * ERR_EXISTS: it is paused */
	NODE_NETWORK,    /* team, id, text: {"allowInternetAccess":, "network":{}}, in place of
			  * what there was, members of other purposes excepted. In force when it is
			  * answered. ERR_EXISTS: it does not run */
	NODE_EXPLAIN,    /* team, id, text: {"question":"example.com:443"} or {} -> text: JSON, what
			  * its network allows, and why. A paused one, too */
	NODE_EGRESS_LOG, /* team, id -> text: a JSON array, its last decisions, the oldest first */
	NODE_SECRET,    /* team, text: {"name":, "sealed":"<base64>" or null}: of all its sandboxes,
			 * also   paused ones, that use a secret of that name */
	NODE_SEAL_KEY,  /* -> text: {"sealKey":"<base64>"}: for what only the injector may read */
	NODE_LOST_LIST, /* an operator's; count: from which on -> text: a JSON array, the oldest
			 * first, see node/files/lost.h */
	NODE_LOST_RESTORE, /* an operator's; id. ERR_EXISTS: something has it. ERR_NOT_FOUND: it is
			    * not lost, or what it was made of is gone */
	NODE_LOST_DROP,    /* an operator's; id: it is removed, for good */
	NODE_CONFIRM_LOST, /* -> count: NODE_ABSENT ones are ended: an operator says that they are
			    * lost */
	NODE_GIVE_UP, /* token: nobody waits for that request any more. What it made without a name
		       * ends, now or when it is there; answered at once */
	NODE_VERBS,
};

enum node_event {
	NODE_GONE = 1, /* sandbox.id, sandbox.generation: its traffic ends now */
};

enum node_flags {
	NODE_SECURE = 1u << 0,      /* the agent wants the access token */
	NODE_WRITE = 1u << 1,       /* NODE_SIGNED: to write a file, not to read it */
	NODE_AUTO_PAUSE = 1u << 2,  /* paused, not killed, when its time is over */
	NODE_AUTO_RESUME = 1u << 3, /* traffic resumes it */
	NODE_NO_MEMORY = 1u << 4,   /* the disk alone: of a pause, of an auto-pause, of a resume */
	NODE_NEWEST = 1u << 5,      /* NODE_LOGS: the newest first */
	NODE_TO_AGENT = 1u << 6,    /* NODE_SOCKETS: for the agent's port; text: the token sent */
	NODE_ALSO_PAUSED =
		1u << 7,         /* NODE_SNAPSHOT, NODE_FORK: what it was paused with, as it is */
	NODE_BOOT = 1u << 8,     /* NODE_CREATE: of a snapshot the disk alone */
	NODE_PRIVATE = 1u << 10, /* its ports, the agent's excepted, want its traffic_token.
				     NODE_SOCKETS: for such a port; text: the token sent */
	NODE_INGRESS = 1u << 11, /* its text says how its ports are spoken to */
	NODE_AGAIN = 1u << 13,   /* it was sent before, and the connection ended */
	NODE_STALLED = 1u << 9,  /* of a sandbox: it wrote, the host's disk is full, and it stands
				     still until there is room */
	NODE_ABSENT = 1u << 12,  /* of a sandbox: warden's list does not show its VM; it waits until
				     this is certain (absence.h) */
};

enum node_state { NODE_RUNNING, NODE_ENDING, NODE_PAUSED };

/* Why a sandbox is no more. The order is written to disk: only ever add at the end. */
enum node_reason {
	NODE_ALIVE,
	NODE_KILLED, /* by its owner, or from inside: a reboot ends it */
	NODE_LIFETIME,
	NODE_IDLE,        /* nothing ends for this: its number is kept */
	NODE_OOM_GUEST,   /* its kernel panicked for want of memory */
	NODE_OOM_HOST,    /* the host's kernel killed its QEMU */
	NODE_DISK_FULL,   /* its time was over while it stood still: NODE_STALLED */
	NODE_GUEST_PANIC, /* or its machine was reset without a word */
	NODE_VMM_CRASH,
	NODE_LOST,
	NODE_EVICTED, /* by an operator */
	NODE_REASONS,
};
