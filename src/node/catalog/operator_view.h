/* operator_view.h - what operators see of templates, beyond what their teams do. */
#pragma once

#include "node/door/gateway_door.h"

verb_fn operator_list; /* NODE_TEMPLATE_LIST without a team, and */
verb_fn operator_get;  /* NODE_TEMPLATE_GET: after sizes_ask() */
