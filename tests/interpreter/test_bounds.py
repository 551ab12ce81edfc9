"""Much output, large results, many requests: nothing is lost, and memory is bounded."""
import concurrent.futures
import select

from lone_interp import events_of

MIB = 1024 * 1024
PEAK_MIB = 48  # of the server; 20 is usual


def read_slowly(answer):
    """A client that takes its time at first."""
    select.select([], [], [], 2)
    return events_of(answer.read())


def printed(events):
    return sum(len(e["text"]) for e in events if e["type"] == "stdout")


def test_output_waits_for_who_reads_it(own_interp):
    interp = own_interp().start()
    for code, size in (("for i in range(500_000): print('x' * 63)", 32_000_000), ("print('y' * 16_000_000)", 16_000_001)):
        connection, answer = interp.open(code, 120)
        assert printed(read_slowly(answer)) == size
        connection.close()
    interp.must_have_taken(PEAK_MIB)
    kernel, = interp.kernels_alive()
    with open(f"/proc/{kernel}/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    assert peak < 200 * 1024, f"{peak} KiB"


def test_a_flood_that_nobody_reads_delays_no_other_context(own_interp):
    interp = own_interp().start()
    flood = interp.context()["id"]
    connection, answer = interp.open("while True: print('x' * 1000)", context_id=flood)
    for _ in range(20):
        assert interp.run("1 + 1", 10).text == "2"
    answer.close()
    connection.close()
    assert interp.run("1 + 1", 30, context_id=flood).text == "2"
    interp.must_have_taken(PEAK_MIB)


def test_a_large_result_is_whole(own_interp):
    interp = own_interp().start()
    ran = interp.run("'z' * 10_000_000", 120)
    assert ran.text == "z" * 10_000_000
    assert interp.run("'small'").text == "small"
    interp.must_have_taken(160)


def test_many_at_once(own_interp):
    interp = own_interp().start()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        texts = list(pool.map(lambda i: interp.run(f"{i} * 2").text, range(50)))
    assert texts == [str(i * 2) for i in range(50)]


def test_contexts_are_limited(own_interp):
    interp = own_interp(eager=()).start()
    body = {"language": "python", "cwd": "/" + "x" * 5000}
    for _ in range(100):  # those that fail are not counted
        assert interp.get("/contexts", "POST", body)[0] == 500
    assert interp.run("1").text == "1"
