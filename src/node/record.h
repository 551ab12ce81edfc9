/* record.h - what is kept of a sandbox for its owner to look at. */
#pragma once

#include "node/events.h"
#include "node/metrics.h"

struct record {
	struct metrics metrics;
	struct events events;
};
