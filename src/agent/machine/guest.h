/* guest.h - what init does to the machine before anything else runs in it.
 *
 * Nothing here stops the boot: a step that fails is logged, and the next one is tried. A machine
 * whose agent answers can be asked what is wrong with it; one that stopped halfway cannot.
 */
#pragma once

#define GUEST_CGROUPS      "/sys/fs/cgroup"
#define GUEST_AGENT_CGROUP GUEST_CGROUPS "/agent"
#define GUEST_USER_CGROUP  GUEST_CGROUPS "/user"

void guest_mount(void);   /* /proc, /sys, /dev, /run, the cgroups */
void guest_tune(void);    /* kernel parameters, the host name */
void guest_cgroups(void); /* `agent` for us, `user` for everybody else */
void guest_network(void); /* lo, and eth0 with its fixed address and route */
