"""scripted_model.py - a model that says what a test wrote down, for programs that would ask a real one.

    with ScriptedModel(listener, ["n = 6 * 7", "print(n)"]) as model:
        environment = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": model.key}
        ...                   # the program runs
        model.results         # ["", "42\\n"]: what came back of each piece of code

It wants one piece of code to be run after the other, and then repeats what the last one gave: it knows no answer that
the program did not bring. It speaks what the frameworks speak to OpenAI's own server: chat completions, and responses,
at once or as a stream. To a program that offers a tool it calls that tool; to one that offers none it writes the code
into its text, as smolagents wants it. Whatever else is asked is refused and kept in `refused`.
"""

import http.server
import json
import secrets
import threading

ANSWER = "The sandbox said: "
BODY_MAX = 1 << 20
PIECE = 16  # characters of a streamed text that come at once


def text_of(content):
    """Of a message: a text, or a list of parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


class Chat:
    """POST /v1/chat/completions"""

    @staticmethod
    def results(asked):
        """What came back so far. Without tools: what was said after each of our own turns."""
        kind = "tool" if asked.get("tools") else "user"
        messages = asked["messages"]
        first = next((n for n, m in enumerate(messages) if m["role"] == "assistant"), len(messages))
        return [text_of(m["content"]) for m in messages[first:] if m["role"] == kind]

    @staticmethod
    def tool(asked):
        return next((tool["function"]["name"] for tool in asked.get("tools") or ()), None)

    @staticmethod
    def answer(asked, item):
        message = {"role": "assistant", "content": item["content"][0]["text"]} if item["type"] == "message" else {
            "role": "assistant", "content": None,
            "tool_calls": [{"id": item["call_id"], "type": "function",
                            "function": {"name": item["name"], "arguments": item["arguments"]}}]}
        return {"id": item["id"], "object": "chat.completion", "created": 1, "model": asked["model"],
                "choices": [{"index": 0, "message": message, "logprobs": None,
                             "finish_reason": "stop" if item["type"] == "message" else "tool_calls"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


class Responses:
    """POST /v1/responses"""

    @staticmethod
    def results(asked):
        items = asked["input"] if isinstance(asked["input"], list) else ()
        return [text_of(i["output"]) for i in items if i.get("type") == "function_call_output"]

    @staticmethod
    def tool(asked):
        return next((tool["name"] for tool in asked.get("tools") or ()), None)

    @staticmethod
    def answer(asked, item):
        return {"id": "resp_" + item["id"], "object": "response", "created_at": 1, "model": asked["model"],
                "status": "completed", "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
                "output": [item], "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "temperature": 1,
                "top_p": 1, "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                                      "input_tokens_details": {"cached_tokens": 0},
                                      "output_tokens_details": {"reasoning_tokens": 0}}}

    @staticmethod
    def events(whole):
        """The same as a stream: the item piece by piece, and at the end all of it."""
        item = whole["output"][0]
        at = {"output_index": 0, "item_id": item["id"]}
        is_call = item["type"] == "function_call"
        text = item["arguments"] if is_call else item["content"][0]["text"]
        kind, more = ("function_call_arguments", {}) if is_call else ("output_text", {"content_index": 0, "logprobs": []})
        empty = {**item, "status": "in_progress", **({"arguments": ""} if is_call else {"content": []})}
        yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
        yield {"type": "response.output_item.added", "output_index": 0, "item": empty}
        for begin in range(0, len(text), PIECE):
            yield {"type": f"response.{kind}.delta", **at, **more, "delta": text[begin:begin + PIECE]}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield {"type": "response.completed", "response": whole}


ROUTES = {"/v1/chat/completions": Chat, "/v1/responses": Responses}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def refuse(self, why):
        self.server.model.refused.append(f"{self.command} {self.path}: {why}")
        self.send_json(400, {"error": {"message": why, "type": "invalid_request_error"}})

    def do_GET(self):
        self.refuse("nothing here is got")

    def do_POST(self):
        model, api = self.server.model, ROUTES.get(self.path)
        size = int(self.headers.get("content-length", 0))
        if size > BODY_MAX:
            self.close_connection = True
            return self.refuse("too large")
        body = self.rfile.read(size)
        if not api:
            return self.refuse("no such route")
        if self.headers.get("authorization") != f"Bearer {model.key}":
            return self.refuse("not the key")
        model.on_asked()
        asked = json.loads(body)
        model.results = api.results(asked)
        if len(model.results) != model.turns:
            return self.refuse(f"{len(model.results)} results of {model.turns} calls: {body[-2000:]}")
        whole = api.answer(asked, model.next_item(api.tool(asked)))
        if asked.get("stream"):
            return self.send_events(api.events(whole))
        return self.send_json(200, whole)

    def send_json(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_events(self, events):
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for number, event in enumerate(events):
            data = json.dumps({**event, "sequence_number": number})
            self.wfile.write(f"event: {event['type']}\ndata: {data}\n\n".encode())
            self.wfile.flush()


class ScriptedModel:
    def __init__(self, listener, pieces, on_asked=lambda: None):
        """`listener`: a socket that listens; `pieces`: of code, to be run in this order; `on_asked` is called first of
        all when the model is asked."""
        self.on_asked = on_asked
        self.pieces, self.turns, self.results, self.refused = pieces, 0, [], []
        self.key = "sk-" + secrets.token_hex(16)
        self.url = "http://{}:{}/v1".format(*listener.getsockname())
        self.server = http.server.ThreadingHTTPServer(listener.getsockname(), Handler, bind_and_activate=False)
        self.server.socket.close()
        self.server.socket, self.server.model, self.server.daemon_threads = listener, self, True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def next_item(self, tool):
        """As the responses API has it."""
        number, is_last = self.turns, self.turns == len(self.pieces)
        if is_last:
            return message(number, ANSWER + self.results[-1])
        self.turns += 1
        code = self.pieces[number]
        if not tool:
            return message(number, f"Thought: this has to be computed.\n<code>\n{code}\n</code>")
        return {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": tool,
                "arguments": json.dumps({"code": code}), "status": "completed"}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def message(number, text):
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]}
