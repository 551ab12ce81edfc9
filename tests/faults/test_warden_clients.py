"""test_warden_clients.py - clients that are wrong, rude or hostile: they get a typed error, or lose
their own connection, and nobody else notices."""

import contextlib
import ctypes
import os
import socket

import pytest

import link_hello
from protocol import (FDS_MAX, TAKES_FDS, VERSION, Client, Gone, Request, State, Verb,
                      WardenError, request)
from warden import is_alive, overlay, sizes, wait_for
from warden_fixtures import use, probe_path

CLIENTS_MAX = 16
FLOOD = 50_000
CLIENT_UID = CLIENT_GID = 64321  # nobody's
CLONE_NEWNS, MS_REC, MS_PRIVATE, IN_OPEN = 0x20000, 1 << 14, 1 << 18, 0x20

UINT32_MAX = (1 << 32) - 1
BAD_IDS = {"empty": b"", "slash": b"a/b", "parent": b"..", "dot": b"a.b", "hidden": b".x",
           "upper": b"Abc", "space": b"a b", "dash": b"-a", "underscore": b"a_b",
           "newline": b"a\n", "high": b"a\xff", "not-terminated": b"a" * 64,
           "percent": b"%s", "backslash": b"a\\b"}
libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture(scope="module")
def shared():
    """A stand-in warden with a template, a running VM and an open template."""
    for warden in use(qemu=probe_path(), client_uid=CLIENT_UID, client_gid=CLIENT_GID):
        warden.template("t1", kernel=b"idle")
        warden.restore("vm1", "t1", warden.slot_make())
        yield warden


@pytest.fixture
def warden(shared):
    """The same; afterwards it is the same process, holds as much as before, and the VM runs."""
    def held():
        return len(os.listdir(f"/proc/{shared.pid}/fd"))

    shared.facts()
    wait_for(lambda: not shared.jobs(), "no job runs")
    pid, before, cell = shared.pid, held(), shared.list()["vm1"]
    yield shared
    assert shared.process.poll() is None and shared.pid == pid, shared.log()[-2000:]
    shared.facts()
    wait_for(lambda: held() == before, f"{before} descriptors, has {held()}")
    assert set(shared.list()) == {"vm1"} and shared.list()["vm1"].pid == cell.pid
    assert is_alive(cell.pid)


@contextlib.contextmanager
def another(warden):
    client = warden.connect()
    yield client
    client.close()


@contextlib.contextmanager
def stranger(warden):
    """A connection that has said nothing yet."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.settimeout(5)
        sock.connect(str(warden.socket_path))
        yield sock


def refused(call, *arguments, **fields):
    """The code of the error that a call is answered with."""
    with pytest.raises(WardenError) as e:
        call(*arguments, **fields)
    return e.value.code


# --- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, ctypes.sizeof(Request) - 1, ctypes.sizeof(Request) + 1,
                                  65536])
def test_wrong_size_ends_the_connection(warden, size):
    with another(warden) as client:
        client.send_raw(bytes(size))
        with pytest.raises(Gone):
            client.receive_any(5)


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1, UINT32_MAX])
def test_wrong_version(warden, version):
    with stranger(warden) as sock:
        assert link_hello.say(sock, version)[:2] == (VERSION, VERSION)  # and why is known there
        assert sock.recv(1) == b""


@pytest.mark.parametrize("first", [b"x", bytes(link_hello.HELLO.size), link_hello.pack(0, 0), link_hello.pack(2, 1),
                                   request(Verb.LIST, tag=1)], ids=range(5))
def test_what_is_no_hello_is_not_answered(warden, first):
    with stranger(warden) as sock:
        sock.send(first)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(1) == b""


@pytest.mark.parametrize("verb", [len(Verb), len(Verb) + 1, 1 << 31, UINT32_MAX])
def test_unknown_verb(warden, verb):
    assert refused(warden.client.call, verb) == "invalid"


def test_noise(warden):
    for _ in range(50):
        with another(warden) as client:
            client.send_raw(os.urandom(ctypes.sizeof(Request)))
            with contextlib.suppress(Gone):
                assert client.receive_any(5).code == "invalid"


@pytest.mark.parametrize("verb", Verb, ids=lambda v: v.name)
def test_wrong_number_of_descriptors(warden, verb):
    expected = TAKES_FDS[verb]
    with open("/dev/null") as null, another(warden) as client:
        for count in {0, 1, 2, 3, FDS_MAX} - {expected}:
            code = refused(client.call, verb, vm="x", template="x", slot=UINT32_MAX,
                           sizes=sizes(), fds=[null.fileno()] * count)
            assert code == "invalid", count


def test_too_many_descriptors_end_the_connection(warden):
    with open("/dev/null") as null, another(warden) as client:
        client.send_raw(request(Verb.LIST), [null.fileno()] * (FDS_MAX + 1))
        with pytest.raises(Gone):
            client.receive_any(5)


# --- fields --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BAD_IDS)
def test_bad_ids(warden, name):
    bad = BAD_IDS[name]
    for verb in (Verb.BUILD, Verb.RESTORE, Verb.STOP, Verb.SOCKETS):
        assert refused(warden.client.call, verb, vm=bad, template="t1", sizes=sizes(),
                       count=1) == "invalid", verb.name
    for verb in (Verb.BUILD, Verb.RESTORE, Verb.TEMPLATE_PUBLISH, Verb.TEMPLATE_WARM,
                 Verb.TEMPLATE_DROP):
        assert refused(warden.client.call, verb, vm="x", template=bad, sizes=sizes(),
                       ) == "invalid", verb.name
    with open("/dev/null") as null:
        assert refused(warden.client.call, Verb.TEMPLATE_BEGIN, template=bad, sizes=sizes(),
                       fds=[null.fileno()] * 2) == "invalid"
    assert (warden.state / "templates/t1").is_dir()


def test_bytes_after_the_end_of_an_id_are_nothing(warden):
    with pytest.raises(WardenError) as e:
        warden.client.call(Verb.STOP, vm=b"x\0/../../etc")
    assert e.value.code == "not_found" and "etc" not in e.value.msg


def test_list_from_anywhere(warden):
    for after in (b"", b"/", b"zzz", b"\xff" * 63):
        assert warden.client.call(Verb.LIST, vm=after).reply.count <= 1
    assert refused(warden.client.call, Verb.LIST, vm=b"x" * 64) == "invalid"


@pytest.mark.parametrize("slot", [0, 63, 64, 2047, 2048, 1 << 31, UINT32_MAX])
def test_slots_that_are_not_ready(warden, slot):
    """Slot 0 is in use by vm1, the others do not exist or were never made."""
    assert refused(warden.slot_drop, slot) == "invalid"
    assert refused(warden.restore, "vm2", "t1", slot) == "invalid"


@pytest.mark.parametrize("field,value", [
    ("vcpus", 0), ("vcpus", 65), ("memory_mib", 63), ("memory_mib", UINT32_MAX),
    ("overhead_mib", 0), ("overhead_mib", UINT32_MAX), ("cpu_percent", 6401),
    ("cpu_percent", UINT32_MAX), ("pids_max", 0), ("pids_max", UINT32_MAX),
    ("disk_mib", UINT32_MAX)])
def test_sizes_out_of_range(warden, field, value):
    wrong = sizes()
    setattr(wrong, field, value)
    assert refused(warden.facts, wrong) == "invalid"
    assert refused(warden.restore, "vm2", "t1", 0, wrong) == "invalid"


@pytest.mark.parametrize("count", [0, 5, 17, UINT32_MAX])
def test_numbers_of_sockets(warden, count):
    assert refused(warden.sockets, "vm1", count) == "invalid"


# --- order ---------------------------------------------------------------------------------------


def test_what_does_not_exist(warden):
    assert refused(warden.stop, "vm2") == "not_found"
    assert refused(warden.sockets, "vm2") == "not_found"
    assert refused(warden.template_publish, "t2") == "not_found"
    assert refused(warden.template_warm, "t2") == "not_found"
    warden.template_drop("t2")  # absent is what was asked for


def test_start_of_what_exists(warden):
    slot = warden.slot_make()
    assert refused(warden.restore, "vm1", "t1", slot) == "exists"
    warden.slot_drop(slot)  # still the client's


def test_start_in_a_used_slot(warden):
    used = warden.list()["vm1"].slot
    assert refused(warden.restore, "vm2", "t1", used) == "invalid"
    assert refused(warden.slot_drop, used) == "invalid"


def test_start_from_a_missing_template(warden):
    assert refused(warden.restore, "vm2", "t2", warden.slot_make()) == "not_found"
    assert refused(warden.build, "vm3", "t2", warden.slot_make()) == "not_found"
    wait_for(lambda: set(warden.list()) == {"vm1"}, "the failed starts are cleared away")
    assert not warden.vm_dir("vm2").exists() and not warden.vm_dir("vm3").exists()


def test_start_twice_and_stop_twice_at_once(warden):
    client, slots = warden.client, [warden.slot_make(), warden.slot_make()]
    tags = [warden.restore_send("vm2", "t1", slot) for slot in slots]
    assert [client.receive(tag).code for tag in tags] == ["ok", "exists"]
    tags = [client.send(Verb.STOP, vm="vm2") for _ in range(3)]
    assert [client.receive(tag).code for tag in tags] == ["ok", "exists", "exists"]
    assert refused(warden.stop, "vm2") == "not_found"
    warden.slot_drop(slots[1])
    assert refused(warden.slot_drop, slots[1]) == "invalid"


def test_stop_of_one_that_ended(warden):
    pid = warden.restore("vm2", "t1", warden.slot_make())
    os.kill(pid, 9)
    warden.wait_state("vm2", State.EXITED)
    assert refused(warden.sockets, "vm2") == "not_found"
    warden.stop("vm2")


# --- templates -----------------------------------------------------------------------------------


def test_template_twice(warden):
    assert refused(warden.open_template, "t1") == "exists"
    warden.open_template("t2")
    assert refused(warden.open_template, "t2") == "exists"
    warden.template_publish("t2")
    assert refused(warden.template_publish, "t2") == "not_found"
    warden.template_drop("t2")


def test_template_from_another_filesystem(warden):
    """A kernel comes from where packages are installed, which may be anywhere."""
    written = os.memfd_create("kernel")
    os.write(written, b"idle")
    os.truncate(written, 1 << 20)
    kernel = os.open(f"/proc/self/fd/{written}", os.O_RDONLY)
    os.close(written)
    os.close(warden.template_begin("t2", kernel, kernel))
    for name in ("kernel", "disk"):
        copy = warden.state / "templates/.build-t2" / name
        assert copy.read_bytes() == b"idle".ljust(1 << 20, b"\0")
    os.close(kernel)
    warden.template_drop("t2")


@pytest.mark.parametrize("which", ["kernel", "disk"])
def test_template_from_what_is_no_file(warden, which):
    """Looked at before anything is made of it, as what comes with every other verb is."""
    reader, writer = os.pipe()
    sources = {"folder": os.open(warden.base, os.O_RDONLY), "name": os.open(__file__, os.O_PATH), "pipe": reader,
               "socket": socket.socket(socket.AF_UNIX).detach(), "device": os.open("/dev/zero", os.O_RDONLY),
               "writable": os.open(warden.base / "writable", os.O_RDWR | os.O_CREAT)}
    with open(__file__, "rb") as good:
        for name, source in sources.items():
            with pytest.raises(WardenError, match=f"{which}: not") as e:
                os.close(warden.template_begin("t2", *((source, good.fileno()) if which == "kernel" else
                                                       (good.fileno(), source))))
            assert e.value.code == "invalid", name
    for fd in (*sources.values(), writer):
        os.close(fd)
    assert not (warden.state / "templates/.build-t2").exists()


def test_one_builder_at_a_time(warden):
    """Two VMs that share one writable memory file would be one VM for an attacker."""
    warden.open_template("t2", kernel=b"idle")
    warden.build("vm2", "t2", warden.slot_make())
    for verb in (warden.template_publish, warden.template_drop):
        assert refused(verb, "t2") in ("invalid", "exists")
    code = None
    slot = warden.slot_make()
    try:
        warden.build("vm3", "t2", slot)
        warden.stop("vm3")
    except WardenError as e:
        code = e.code
        warden.slot_drop(slot)
    warden.stop("vm2")
    warden.template_drop("t2")
    assert code in ("invalid", "exists"), "a second VM was let into an open template"


def test_no_build_while_publishing(warden):
    """A template that is being sealed must not get a VM that writes it."""
    warden.open_template("t2", kernel=b"idle")
    manifest = warden.state / "templates/.build-t2/manifest"
    manifest.unlink()
    os.mkfifo(manifest)  # the seal waits here
    slot = warden.slot_make()
    seal = warden.client.send(Verb.TEMPLATE_PUBLISH, template="t2")
    build = warden.client.send(Verb.BUILD, vm="vm2", template="t2", slot=slot, sizes=sizes())
    code = warden.client.receive(build).code
    with open(manifest, "wb"):
        pass
    warden.client.receive(seal)
    if code == "ok":
        warden.stop("vm2")
    else:
        warden.slot_drop(slot)
    warden.template_drop("t2")
    assert code in ("invalid", "exists"), "a VM was let into a template while it was sealed"


# --- a memory file of the client's own --------------------------------------------------------------


@contextlib.contextmanager
def own_mount_file(place):
    """A descriptor of `place`/folder/memory in a mount that nobody else sees: by that name warden finds another file, or
    a link. The same happens when a client swaps the folder between two looks of warden's."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            assert libc.unshare(CLONE_NEWNS) == 0 and libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) == 0
            assert libc.mount(b"none", os.fsencode(place), b"tmpfs", 0, None) == 0
            (place / "folder").mkdir()
            (place / "folder/memory").write_bytes(b"mine")
            socket.send_fds(theirs, [b"x"], [os.open(place / "folder/memory", os.O_RDONLY)])
            theirs.recv(1)  # the mount is there as long as this process
        finally:
            os._exit(0)
    theirs.close()
    with ours:
        _, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
        yield fd
    os.close(fd)
    os.waitpid(pid, 0)


def test_a_memory_file_is_found_through_no_link(warden, tmp_path):
    """Root opens nothing at the other end of a link: that alone can have effects, as with a watchdog's device."""
    place, other = tmp_path / "place", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    (other / "memory").write_bytes(b"not mine")
    (place / "folder").symlink_to(other)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(watch, os.fsencode(other / "memory"), IN_OPEN) >= 0
    slot = warden.slot_make()
    with own_mount_file(place) as memory, overlay() as disk, open(warden.state / "templates/t1/state", "rb") as state:
        code = refused(warden.restore, "vm2", "t1", slot, fds=[disk.fileno(), state.fileno(), memory])
    with pytest.raises(BlockingIOError):
        os.read(watch, 4096)
        raise AssertionError("warden opened what the link leads to")
    os.close(watch)
    wait_for(lambda: set(warden.list()) == {"vm1"}, "the failed start is cleared away")
    assert code == "invalid"


# --- connections ---------------------------------------------------------------------------------


def test_a_client_that_never_reads(warden):
    with another(warden) as client:
        client.sock.settimeout(5)
        with pytest.raises(Gone):
            for _ in range(FLOOD):
                client.send(Verb.LIST)
        warden.facts()


def test_a_client_that_leaves_before_its_answers(warden):
    slots = [warden.slot_make() for _ in range(3)]
    with another(warden) as client:
        for i, slot in enumerate(slots):
            warden.restore_send(f"left{i}", "t1", slot, client)
        client.send(Verb.SOCKETS, vm="vm1", count=4)
    wait_for(lambda: all(cell.state == State.RUNNING for cell in warden.list().values()) and
             len(warden.list()) == 4, "the VMs run without their client")
    for i in range(3):
        warden.stop(f"left{i}")


def test_ready_slots_go_with_the_client_that_made_them(warden):
    with another(warden) as client:
        slots = [client.call(Verb.SLOT_MAKE).reply.slot for _ in range(2)]
        client.receive(warden.restore_send("kept", "t1", slots[0], client)).check()
        client.send(Verb.SLOT_MAKE)  # its answer finds nobody
    # the fixture counts warden's descriptors: those of the other slots are closed
    assert warden.list()["kept"].state == State.RUNNING
    warden.stop("kept")


def test_too_many_connections(warden):
    clients = []
    for _ in range(CLIENTS_MAX + 8):
        with contextlib.suppress(Gone):
            clients.append(warden.connect())
    answered = 0
    for client in clients:
        with contextlib.suppress(Gone):
            client.call(Verb.LIST)
            answered += 1
    assert answered == CLIENTS_MAX - 1  # one is ours
    warden.facts()
    for client in clients:
        client.close()
    wait_for(lambda: lists(warden), "a place is free again")


def lists(warden):
    with another(warden) as client, contextlib.suppress(Gone):
        client.call(Verb.LIST)
        return True
    return False


def as_user(uid, gid, act):
    """The exit status of act() in a child that runs as uid and gid, without other groups."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            status = act()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def try_list(warden):
    """0: answered. 1: hung up on. 2: not even let near the socket."""
    try:
        Client(warden.socket_path).call(Verb.LIST, 5)
        return 0
    except Gone:
        return 1
    except PermissionError:
        return 2


def test_the_client_may_come_in(warden):
    """The configured user can reach warden, and the QMP socket of a VM."""
    def act():
        status = try_list(warden)
        with contextlib.suppress(OSError):
            socket.socket(socket.AF_UNIX).connect(str(warden.vm_dir("vm1") / "qmp.sock"))
            return status
        return 3

    assert as_user(CLIENT_UID, CLIENT_GID, act) == 0


def test_another_user_may_not(warden):
    def touch_qmp():
        try:
            socket.socket(socket.AF_UNIX).connect(str(warden.vm_dir("vm1") / "qmp.sock"))
            return 0
        except PermissionError:
            return 2

    other = CLIENT_UID + 1
    assert as_user(other, CLIENT_GID, lambda: try_list(warden)) in (1, 2)
    assert as_user(other, other, lambda: try_list(warden)) == 2
    assert as_user(other, other, touch_qmp) == 2
    cell = warden.list()["vm1"]
    assert as_user(cell.uid, cell.uid, lambda: try_list(warden)) == 2
    assert as_user(cell.uid, cell.uid, touch_qmp) == 2


def test_a_second_warden_on_the_same_folder_is_refused(stand_in):
    stand_in.template("t1", kernel=b"idle")
    pid = stand_in.restore("vm1", "t1", stand_in.slot_make())
    first, stand_in.process = stand_in.process, None
    stand_in.launch()
    second, stand_in.process = stand_in.process, first
    assert second.wait(10) == 1
    assert "another warden uses" in stand_in.log()
    assert stand_in.list()["vm1"].pid == pid and is_alive(pid)
