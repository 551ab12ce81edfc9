/* record.h - what is kept of a sandbox for its owner to look at. */
#pragma once

#include "node/record/events.h"
#include "node/record/metrics.h"

struct record {
	struct metrics metrics;
	struct events events;
};
