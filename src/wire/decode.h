/* decode.h - the three answers of anything that reads a prefix of a stream. */
#pragma once

enum decode {
	DECODE_OK,   /* the outputs are set */
	DECODE_MORE, /* nothing is wrong so far: feed a longer prefix */
	DECODE_BAD,  /* *err says why; no longer prefix will ever be good */
};
