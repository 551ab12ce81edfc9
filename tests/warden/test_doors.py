"""test_doors.py - the two sockets at which everything ends that a slot's guest begins: they are in the
slot's own network, can be had for any slot that exists, and again once the old ones are closed."""

import contextlib
import fcntl
import os
import socket

import pytest

from protocol import WardenError

HOST_ADDR = "169.254.77.1"
TCP_DOOR, UDP_DOOR = 1, 53
SIOCGSKNS = 0x894C


def namespace_of(sock):
    fd = fcntl.ioctl(sock.fileno(), SIOCGSKNS)
    try:
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


@contextlib.contextmanager
def doors_of(warden, slot):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(door) for door in warden.doors(slot)]


def check(doors):
    tcp, udp = doors
    assert (tcp.type, udp.type) == (socket.SOCK_STREAM, socket.SOCK_DGRAM)
    assert tcp.getsockname() == (HOST_ADDR, TCP_DOOR)
    assert udp.getsockname() == (HOST_ADDR, UDP_DOOR)
    assert tcp.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    for door in doors:
        assert not os.get_blocking(door.fileno())
        assert namespace_of(door) != os.stat("/proc/self/ns/net").st_ino
    assert namespace_of(tcp) == namespace_of(udp)
    return namespace_of(tcp)


def code_of(call, *arguments):
    with pytest.raises(WardenError) as e:
        call(*arguments)
    return e.value.code


def test_doors_of_a_slot_that_waits(stand_in):
    one, two = stand_in.slot_make(), stand_in.slot_make()
    with doors_of(stand_in, one) as first, doors_of(stand_in, two) as second:
        assert check(first) != check(second)
    stand_in.slot_drop(one)
    stand_in.slot_drop(two)


def test_doors_again_after_the_old_ones_are_closed(stand_in):
    """At once: the process that made them may not have ended yet."""
    slot = stand_in.slot_make()
    with doors_of(stand_in, slot) as doors:
        home = check(doors)
        assert code_of(stand_in.doors, slot) == "unavailable"
    for _ in range(100):
        with doors_of(stand_in, slot) as doors:
            assert check(doors) == home
    stand_in.slot_drop(slot)


def test_doors_of_a_running_vm_also_for_the_next_warden(stand_in):
    stand_in.template("t1", kernel=b"idle")
    slot = stand_in.slot_make()
    pid = stand_in.restore("vm1", "t1", slot)
    home = os.stat(f"/proc/{pid}/ns/net").st_ino
    with doors_of(stand_in, slot) as doors:
        assert check(doors) == home
    stand_in.restart()
    with doors_of(stand_in, slot) as doors:
        assert check(doors) == home
    stand_in.stop("vm1")
    assert code_of(stand_in.doors, slot) == "not_found"


def test_no_doors_without_a_slot(stand_in):
    for slot in (0, 5, 2047, 2048, 1 << 31, (1 << 32) - 1):
        assert code_of(stand_in.doors, slot) == "not_found"
