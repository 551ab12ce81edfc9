/* places.c - see places.h. */
#include "cli/places.h"

enum { DEFAULT_UID_BASE = 786432, DEFAULT_UIDS = 1024 }; /* as in warden's settings */

static const struct {
	const char *daemon, *setting, *otherwise;
} known[FOLDERS] = {
	[FOLDER_STATE] = { "warden", "state_dir", "/var/lib/hotcell" },
	[FOLDER_DATA] = { "node", "data_dir", "/var/lib/hotcell-node" },
	[FOLDER_GATEWAY] = { "gateway", "data_dir", "/var/lib/hotcell-gateway" },
	[FOLDER_INJECTOR] = { "injector", "state_dir", "/var/lib/hotcell-injector" },
	[FOLDER_IMAGES] = { "images", "data_dir", "/var/lib/hotcell-images" },
};

static void from_file(struct places *p, const struct cli *c, enum place_folder i)
{
	struct place *f = &p->folders[i];
	struct conf conf;

	f->daemon = known[i].daemon;
	f->setting = known[i].setting;
	conf_read_daemon(&conf, c->conf_dir, f->daemon);
	conf_text(&conf, f->setting, known[i].otherwise, f->path);
	conf_value(&conf, "user", f->user);
	f->configured = conf.there;
	p->configured |= conf.there;
	if (i != FOLDER_STATE)
		return;
	conf_text(&conf, "cgroup", "hotcell", p->cgroup);
	conf_text(&conf, "qemu", "/usr/bin/qemu-system-x86_64", p->qemu);
	p->uid_base = conf_number(&conf, "uid_base", DEFAULT_UID_BASE);
	p->uids = conf_number(&conf, "vms_max", DEFAULT_UIDS);
	p->emulation = conf_says(&conf, "allow_emulation", "yes");
}

static void take_text(char ret[static CONF_VALUE_MAX], const char *told)
{
	if (told)
		snprintf(ret, CONF_VALUE_MAX, "%s", told);
}

static void take_folder(struct place *f, const char *told)
{
	take_text(f->path, told);
	f->configured |= told != NULL;
}

static void from_node(struct places *p, const json_t *node)
{
	const json_t *told = json_object_get(node, "places");
	const json_t *base = json_object_get(told, "uidBase"),
		     *uids = json_object_get(told, "uids");

	take_folder(&p->folders[FOLDER_STATE],
		    json_string_value(json_object_get(told, "stateDir")));
	take_folder(&p->folders[FOLDER_DATA], json_string_value(json_object_get(told, "dataDir")));
	take_text(p->cgroup, json_string_value(json_object_get(told, "cgroup")));
	if (json_is_integer(base) && json_is_integer(uids)) {
		p->uid_base = (uint64_t)json_integer_value(base);
		p->uids = (uint64_t)json_integer_value(uids);
	}
	p->emulation |= json_is_true(json_object_get(node, "emulated")); /* it runs so */
}

static void from_flags(struct places *p, const struct cli *c)
{
	take_folder(&p->folders[FOLDER_STATE], c->state_dir);
	take_folder(&p->folders[FOLDER_DATA], c->data_dir);
	take_text(p->cgroup, c->cgroup);
	take_text(p->qemu, c->qemu);
	take_text(p->images_conf, c->images_conf);
	if (c->uid_base)
		p->uid_base = c->uid_base;
	if (c->uids)
		p->uids = c->uids;
}

void places_find(struct places *ret, const struct cli *c, const json_t *node)
{
	*ret = (struct places){ 0 };
	snprintf(ret->images_conf, sizeof(ret->images_conf), "%s/images.conf", c->conf_dir);
	for (enum place_folder i = 0; i < FOLDERS; i++)
		from_file(ret, c, i);
	from_node(ret, node);
	from_flags(ret, c);
}
