/* upload_routes.h - files for the steps of builds. */
#pragma once

#include "gateway/api/api.h"

void uploads_close(struct api *a); /* what is under way ends */
