/* front_decide.h - whom a connection means, and may it. */
#pragma once

#include "egress/front.h"

void front_decide(struct front *f);
struct policy_verdict front_by_address(const struct front *f);
