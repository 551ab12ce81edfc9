/* tcp.h - how our TCP sockets behave. */
#pragma once

/* Does nothing to a socket that is not TCP. Advice to the kernel: it is no error if it declines. */
void tcp_set_up(int fd);
