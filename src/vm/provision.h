/* provision.h - what an image is given before sandboxes are made of it. */
#pragma once

#include "base/bytes.h"

struct bytes provision_script(void); /* for bash as root, in the guest; guest/provision */
