/* resolvers.h - whom to ask for names: as configured, or as the host itself does. */
#pragma once

#include "egress/question.h"

/* "1.2.3.4:53 ..."; empty: the name servers of /etc/resolv.conf, which may be none. */
int resolvers_read(const char *configured, struct question_servers *ret, struct err *err) NODISCARD;
