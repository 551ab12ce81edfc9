/* agent_identity.c - drawing an identity, and writing it down for the agent. */
#include "vm/agent_identity.h"

#include <inttypes.h>

#include "base/random.h"
#include "base/uuid.h"
#include "wire/base64.h"

int agent_identity_make(struct agent_identity *ret, struct bytes sandbox_id,
			struct bytes template_id, struct err *err)
{
	struct agent_identity id = { 0 };

	if (!bytes_to_str(sandbox_id, id.sandbox_id, sizeof(id.sandbox_id)) ||
	    !bytes_to_str(template_id, id.template_id, sizeof(id.template_id)) ||
	    !bytes_to_str(sandbox_id, id.hostname, sizeof(id.hostname)) || sandbox_id.len == 0)
		return err_set(err, ERR_INVALID, 0, "an id of 1 to %d bytes", AGENT_NAME_MAX);
	random_hex(id.machine_id, 16);
	uuid_make(id.boot_id);
	random_name(id.access_token, AGENT_TOKEN_LENGTH);
	random_name(id.control_token, AGENT_TOKEN_LENGTH);
	random_fill(id.entropy, sizeof(id.entropy));
	*ret = id;
	return 0;
}

void agent_identity_refresh(struct agent_identity *id)
{
	random_fill(id->entropy, sizeof(id->entropy));
}

void agent_identity_done(struct agent_identity *id)
{
	json_decref(id->env);
	explicit_bzero(id, sizeof(*id));
}

static json_t *identity_json(const struct agent_identity *id, int64_t offset_ns,
			     const char *entropy)
{
	json_t *env = id->env ? json_incref(id->env) : json_object();
	char offset[24];

	snprintf(offset, sizeof(offset), "%" PRId64, offset_ns);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:b, s:b, s:s*, s:s*}",
			 "clockOffsetNs", offset, "entropy", entropy, "hostname", id->hostname,
			 "machineId", id->machine_id, "bootId", id->boot_id, "sandboxId",
			 id->sandbox_id, "templateId", id->template_id, "accessToken",
			 id->access_token, "controlToken", id->control_token, "env", env,
			 "stayFrozen", (int)id->stay_frozen, "leftBehind", (int)id->left_behind,
			 "defaultUser", id->user[0] ? id->user : NULL, "defaultWorkdir",
			 id->workdir[0] ? id->workdir : NULL);
}

/* Nothing it could become somebody else with. */
static json_t *resume_json(const struct agent_identity *id, int64_t offset_ns, const char *entropy)
{
	char offset[24];

	snprintf(offset, sizeof(offset), "%" PRId64, offset_ns);
	return json_pack("{s:b, s:b, s:s, s:s, s:s}", "resume", 1, "inPlace", (int)id->in_place,
			 "clockOffsetNs", offset, "entropy", entropy, "controlToken",
			 id->control_token);
}

int agent_identity_put(const struct agent_identity *id, int64_t clock_offset_ns, struct buf *out,
		       struct err *err)
{
	AUTO(buf_done) struct buf entropy = BUF_MAX(2 * AGENT_ENTROPY_BYTES);
	AUTO(json_decrefp) json_t *v = NULL;

	if (base64_encode((struct bytes){ id->entropy, sizeof(id->entropy) }, &entropy, err) < 0 ||
	    buf_add(&entropy, BYTES_LIT("\0"), err) < 0)
		return -1;
	v = (id->resume ? resume_json : identity_json)(id, clock_offset_ns,
						       (const char *)entropy.ptr);
	explicit_bzero(entropy.ptr, entropy.len);
	if (!v)
		return err_set(err, ERR_EXHAUSTED, 0, "build the identity");
	return json_encode(v, out, err);
}
