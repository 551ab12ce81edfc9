/* vmm.c - QEMU's arguments, line by line, each with its reason.
 *
 * They come in two halves. The machine half decides what a snapshot means: it is the same when a
 * template is built and when it is restored, with KVM and without, and its text stands in the
 * template's manifest. The rest says where this one process finds its files.
 */
#include "warden/vmm.h"

#include <stdarg.h>

#include "jail/view.h"

/* Of translated code under emulation, filled as it is needed: at 32 the buffer is too small for
 * Python and is thrown away again and again. */
enum { TB_SIZE_MIB = 128 };

/* Sets 1 to 4 are the disk, the overlay, the device state and KVM. */
enum { FDSET_LAYERS = 5 };

/* Too long a list is remembered and refused at the end, so that the lists below read as lists. */
PRINTF(2, 3)
static void add(struct vmm_args *a, const char *fmt, ...)
{
	size_t room = sizeof(a->text) - a->used;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(a->text + a->used, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room || a->n == VMM_ARGS_MAX) {
		a->overflow = true;
		return;
	}
	a->argv[a->n++] = a->text + a->used;
	a->argv[a->n] = NULL;
	a->used += (size_t)n + 1;
}

static void pair(struct vmm_args *a, const char *option, const char *value)
{
	add(a, "%s", option);
	add(a, "%s", value);
}

/* What a snapshot depends on. */
static void add_machine(struct vmm_args *a, const struct vmm *v, const struct warden_sizes *s)
{
	/* pit, pic and rtc: without a timer to calibrate against, an emulated boot hangs.
	 * mem-merge off: memory is shared within a template only, never found by content. */
	pair(a, "-machine",
	     "microvm,acpi=off,pcie=off,usb=off,graphics=off,pit=on,pic=on,rtc=on,isa-serial=on,"
	     "memory-backend=ram,mem-merge=off,dump-guest-core=off,suppress-vmdesc=on,x-option-"
	     "roms=off");
	pair(a, "-global", "virtio-mmio.force-legacy=false");
	/* device state without a machine's section: that of a template and that of a running VM,
	 * which is saved without its memory, are loaded the same way */
	pair(a, "-global", "migration.send-configuration=off");
	/* what the host's processor lacks would be left out without a word: then the name would
	 * promise more than there is, and a snapshot be loaded where it does not fit */
	add(a, "-cpu");
	add(a, "%s,enforce", v->cpu_model);
	/* the sizes as WARDEN_SIZES_TEXT says them, for clients */
	add(a, "-smp");
	add(a, "%u", s->vcpus);
	add(a, "-m");
	add(a, "%u", s->memory_mib);
	/* the end of the guest's console can be read over QMP */
	pair(a, "-chardev", "ringbuf,id=console,size=65536");
	pair(a, "-serial", "chardev:console");
	/* a full disk of the host stops the guest, which goes on when there is room again; any
	 * other failure, the limit of its own disk too, is the guest's to handle */
	pair(a, "-device", "virtio-blk-device,id=vd0,drive=disk,werror=enospc,rerror=report");
	pair(a, "-device",
	     "virtio-net-device,id=vn0,netdev=net,guest_announce=off,mac=" WARDEN_GUEST_MAC);
	pair(a, "-device", "virtio-rng-device,id=vr0,rng=rng");
}

static void add_memory(struct vmm_args *a, const struct warden_sizes *s, bool build)
{
	/* readonly, private, yet writable for the guest: no VM can change a template */
	add(a, "-object");
	add(a, "memory-backend-file,id=ram,size=%uM,mem-path=" VIEW_MEMORY ",%s", s->memory_mib,
	    build ? "share=on" : "share=off,readonly=on,rom=off");
}

static void add_fdset(struct vmm_args *a, int fd, int set)
{
	add(a, "-add-fd");
	add(a, "fd=%d,set=%d", fd, set);
}

/* Files between the template's disk and the overlay. The one below is named here: what the header
 * of a qcow2 file says about it is not followed. */
static void add_layers(struct vmm_args *a, size_t n)
{
	for (int i = 0; i < (int)n; i++) {
		add_fdset(a, VMM_FD_LAYERS + i, FDSET_LAYERS + i);
		add(a, "-blockdev");
		add(a,
		    "driver=file,node-name=layer%d-file,filename=/dev/fdset/%d,locking=off,"
		    "read-only=on",
		    i + 1, FDSET_LAYERS + i);
		add(a, "-blockdev");
		add(a,
		    "driver=qcow2,node-name=layer%d,file=layer%d-file,backing=layer%d,read-only=on",
		    i + 1, i + 1, i);
	}
}

/* Explicit graphs, no probing; locking is for files that several may open, ours are not. */
static void add_disk(struct vmm_args *a, const struct vmm_start *how)
{
	pair(a, "-blockdev",
	     "driver=file,node-name=" WARDEN_NODE_OVERLAY_FILE
	     ",filename=/dev/fdset/2,locking=off,discard=unmap");
	if (how->build) {
		pair(a, "-blockdev",
		     "driver=file,node-name=disk-file,filename=/dev/fdset/1,locking=off,"
		     "discard=unmap");
		pair(a, "-blockdev",
		     "driver=raw,node-name=disk,file=disk-file,discard=unmap,detect-zeroes=unmap");
		return;
	}
	pair(a, "-blockdev",
	     "driver=file,node-name=layer0-file,filename=/dev/fdset/1,locking=off,read-only=on");
	pair(a, "-blockdev", "driver=raw,node-name=layer0,file=layer0-file,read-only=on");
	add_layers(a, how->layers);
	add(a, "-blockdev");
	add(a,
	    "driver=qcow2,node-name=disk,file=" WARDEN_NODE_OVERLAY_FILE
	    ",backing=layer%zu,discard=unmap,detect-zeroes=unmap",
	    how->layers);
}

static void add_accel(struct vmm_args *a, const struct vmm *v)
{
	add(a, "-accel");
	if (v->accel == VMM_TCG) {
		add(a, "tcg,tb-size=%d", TB_SIZE_MIB);
		return;
	}
	add(a, "kvm,device=/dev/fdset/4");
	add_fdset(a, VMM_FD_KVM, 4);
}

static void add_process(struct vmm_args *a, const struct vmm *v, const struct vmm_start *how)
{
	add(a, "%s", v->path);
	add(a, "-no-user-config");
	add(a, "-nodefaults");
	pair(a, "-display", "none");
	add(a, "-no-reboot");
	if (!how->build) /* its console says why, and is there until it was read */
		add(a, "-no-shutdown");
	add(a, "-S"); /* saved state says "running": only our `cont` starts a guest */
	pair(a, "-L", VIEW_FIRMWARE);
	pair(a, "-sandbox",
	     "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
	add(a, "-chardev");
	add(a, "socket,id=qmp,fd=%d,server=on,wait=off", VMM_FD_QMP);
	pair(a, "-mon", "chardev=qmp,mode=control");
	add(a, "-netdev");
	add(a, "tap,id=net,fd=%d,vhost=off", VMM_FD_TAP);
	pair(a, "-object", "rng-builtin,id=rng");
	add_fdset(a, VMM_FD_DISK, 1);
	add_fdset(a, VMM_FD_OVERLAY, 2);
	add_fdset(a, VMM_FD_STATE, 3);
}

static void add_kernel(struct vmm_args *a, const struct vmm *v, const struct vmm_start *how)
{
	if (!how->build && !how->boot)
		pair(a, "-incoming", "defer");
	pair(a, "-kernel", VIEW_KERNEL);
	pair(a, "-append", v->cmdline);
}

static int check(const struct vmm_args *a, struct err *err)
{
	if (a->overflow)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "more arguments than QEMU's list has room for");
	return 0;
}

int vmm_arguments(const struct vmm *v, const struct warden_sizes *sizes,
		  const struct vmm_start *how, struct vmm_args *ret, struct err *err)
{
	*ret = (struct vmm_args){ 0 };
	add_process(ret, v, how);
	add_accel(ret, v);
	add_memory(ret, sizes, how->build);
	add_disk(ret, how);
	add_machine(ret, v, sizes);
	add_kernel(ret, v, how);
	return check(ret, err);
}

int vmm_machine_text(const struct vmm *v, const struct warden_sizes *sizes, char *ret, size_t size,
		     struct err *err)
{
	struct vmm_args a = { 0 };

	add_machine(&a, v, sizes);
	a.overflow |= a.used > size;
	if (check(&a, err) < 0)
		return -1;
	for (size_t i = 0; i + 1 < a.used; i++)
		if (a.text[i] == '\0')
			a.text[i] = ' ';
	memcpy(ret, a.text, a.used);
	return 0;
}
