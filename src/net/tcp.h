/* tcp.h - how our TCP sockets behave. */
#pragma once

/* Does nothing to a socket that is not TCP. Advice to the kernel: it is no error if it declines. */
void tcp_set_up(int fd);

/* For a peer that is near: of what it sent and nobody has read, the kernel keeps TCP_NEAR_INPUT
 * bytes or twice that. Left to itself it gives a connection that was fast once megabytes. */
enum { TCP_NEAR_INPUT = 96 * 1024 };
void tcp_bound_input(int fd);
