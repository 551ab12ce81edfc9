/* fetch.h - an image from a registry, by skopeo.
 *
 * The name is resolved there each time, so who has no right to the image gets it no more, stored or
 * not. Sizes are known before the first layer comes. What is in the store is not fetched again.
 */
#pragma once

#include "images/job.h"

/* Without `layers` only digest and configuration. */
int fetch_image(struct job *j, bool layers, struct image *ret, struct err *err) NODISCARD;
