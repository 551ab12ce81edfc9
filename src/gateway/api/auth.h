/* auth.h - who asks: from the key of a request to its team. */
#pragma once

struct api_call;

void auth_start(struct api_call *c); /* ends in api_proceed() or a refusal */
