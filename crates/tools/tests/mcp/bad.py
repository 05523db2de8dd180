"""A server of the old era that misbehaves in the way that its first argument names."""

import json
import os
import signal
import sys
import threading
import time

KIND = sys.argv[1]
# A file that counts the starts, for servers that behave differently then.
COUNT = sys.argv[2] if len(sys.argv) > 2 else None


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def starts():
    with open(COUNT, "a+") as file:
        file.write("x")
        file.flush()
        file.seek(0)
        return len(file.read())


def tools():
    if KIND in ("huge-schema", "change-huge"):
        return [tool("small"), tool("huge", description="x", inputSchema={"type": "object", "title": "x" * 100000})]
    if KIND == "large-schemas":
        return [tool(f"t{n}", inputSchema={"type": "object", "title": "x" * 10000}) for n in range(5)]
    if KIND == "odd-schemas":
        return [tool("small"), tool("text", inputSchema={"type": "string"}), tool("untyped", inputSchema={}),
                tool("list", inputSchema={"type": "object", "properties": ["a"]}),
                tool("number", inputSchema={"type": "object", "properties": {"a": 1}}),
                tool("word", inputSchema="object"), {"name": "none"}, tool("good", inputSchema={"type": "object", "properties": {"a": {}}})]
    if KIND == "many-tools":
        return [tool(f"tool{n}") for n in range(2000)]
    if KIND == "odd-names":
        return [tool("a.b"), tool("a/b"), tool("x" * 200), tool("same"), tool("same"), tool("y" * 1000)]
    if KIND == "long-description":
        return [tool("small", description="d" * 1000000)]
    if KIND == "asks-beside":
        return [tool("work"), tool("other")]
    return [tool("work", annotations={"readOnlyHint": True})]


FORM = {"type": "object", "properties": {"x": {"type": "string"}}}


def elicit(**params):
    send({"jsonrpc": "2.0", "id": "ask", "method": "elicitation/create", "params": params})


def call(request):
    arguments = request["params"].get("arguments") or {}
    if KIND == "die" or KIND == "die-once" and starts() < 2:
        sys.stderr.write(f"Traceback: out of luck {os.environ.get('MARK')}\n")
        sys.stderr.flush()
        os._exit(7)
    if KIND in ("silent", "obeys"):
        return
    if KIND == "marks":
        # Works in a thread, and answers everything except this request.
        def work():
            token = request["params"]["_meta"]["progressToken"]
            while True:
                send({"jsonrpc": "2.0", "method": "notifications/progress",
                      "params": {"progressToken": token, "progress": 1, "message": "at work"}})
                time.sleep(0.01)
        threading.Thread(target=work, daemon=True).start()
        return
    if KIND == "steady":
        for n in range(arguments["reports"]):
            send({"jsonrpc": "2.0", "method": "notifications/progress",
                  "params": {"progressToken": request["params"]["_meta"]["progressToken"], "progress": n}})
            time.sleep(0.1)
    if KIND == "asks-and-works":
        return elicit(message="Go on?", requestedSchema=FORM)
    if KIND == "withdraws":
        elicit(message="Go on?", requestedSchema=FORM)
        # The test writes the file when it has seen the question.
        while not os.path.exists(COUNT):
            time.sleep(0.01)
        send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "ask"}})
        while len(sys.argv) > 3 and not os.path.exists(sys.argv[3]):
            time.sleep(0.01)
        return answer(request, text("without an answer"))
    if KIND == "withdraws-often":
        for n in range(200):
            send({"jsonrpc": "2.0", "id": n, "method": "elicitation/create",
                  "params": {"message": "Go on?", "requestedSchema": FORM}})
            send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}})
    if KIND == "floods-forever":
        token = request["params"]["_meta"]["progressToken"]
        def flood():
            while True:
                send({"jsonrpc": "2.0", "method": "notifications/progress",
                      "params": {"progressToken": token, "progress": 1}})
        if not arguments.get("answer"):
            flood()
        # The flood continues after the answer.
        threading.Thread(target=flood, daemon=True).start()
    if KIND == "prints-key":
        # One line, whose last 500 bytes begin inside of the key.
        sys.stderr.write("key: " + os.environ["KEY"] + "x" * (500 - len(os.environ["KEY"]) // 2))
        sys.stderr.flush()
        os._exit(7)
    if KIND == "asks-beside":
        # Asks when both calls have begun, and answers both after the answer.
        held.append(request)
        send({"jsonrpc": "2.0", "method": "notifications/progress",
              "params": {"progressToken": request["params"]["_meta"]["progressToken"], "progress": 1, "message": "held"}})
        return elicit(message="Go on?", requestedSchema=FORM) if len(held) == 2 else None
    if KIND == "requires":
        return answer(request, {"resultType": "input_required", "requestState": "s", "inputRequests": {
            "q": {"method": "elicitation/create", "params": {"mode": "form", "message": "Go on?", "requestedSchema": FORM}}}})
    if KIND == "asks-often":
        actions = []
        for n in range(20):
            elicit(message=f"Go on ({n})?", requestedSchema=FORM)
            actions.append(json.loads(sys.stdin.readline())["result"]["action"])
        return answer(request, text(" ".join(actions)))
    if KIND == "asks-large":
        many = {f"f{n}": {"type": "string", "description": "d" * 2000, "enum": ["o" * 190 + str(i) for i in range(30)]} for n in range(16)}
        for params in [
            {"message": "m" * 5000, "requestedSchema": FORM},
            {"message": "m", "requestedSchema": {"type": "object", "properties": many}},
            {"mode": "url", "elicitationId": "1", "message": "m", "url": "https://example.com/" + "u" * 3000},
        ]:
            elicit(**params)
            assert json.loads(sys.stdin.readline())["result"] == {"action": "decline"}
        return answer(request, text("all declined"))
    if KIND == "asks-url":
        elicit(mode="url", elicitationId="1", message="Log in with your password", url="https://example.com/?a=b")
        return answer(request, text("answered " + json.loads(sys.stdin.readline())["result"]["action"]))
    if KIND == "stuck":
        send({"jsonrpc": "2.0", "method": "notifications/progress",
              "params": {"progressToken": request["params"]["_meta"]["progressToken"], "progress": 1, "message": "stuck now"}})
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1000)
    if KIND == "flood":
        token = request["params"]["_meta"]["progressToken"]
        for n in range(20000):
            send({"jsonrpc": "2.0", "method": "notifications/progress",
                  "params": {"progressToken": token, "progress": n, "message": "m" * 50}})
    if KIND == "requests":
        for n in range(1000):
            send({"jsonrpc": "2.0", "id": f"r{n}", "method": "ping"})
    if KIND == "unread":
        # Never reads the answers. Slow enough that all its requests are answered before the pipe is full.
        for n in range(100000):
            send({"jsonrpc": "2.0", "id": f"r{n}", "method": "ping"})
            time.sleep(0.0005)
    if KIND == "unread-invalid":
        for n in range(100000):
            send({"jsonrpc": "2.0", "id": f"r{n}", "method": 9})
            send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
            time.sleep(0.0005)
    if KIND == "unread-cancels":
        # Never reads the answers, and withdraws its requests after they were answered.
        for n in range(100000):
            send({"jsonrpc": "2.0", "id": f"r{n}", "method": 9})
            send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": f"r{n}"}})
            time.sleep(0.0005)
    if KIND == "long-line":
        sys.stdout.write("x" * (20 * 1024 * 1024))
        sys.stdout.flush()
        time.sleep(1000)
    if KIND == "garbage":
        for n in range(3000):
            sys.stdout.write("this is not a message " * 20 + "\n")
        sys.stdout.flush()
        time.sleep(1000)
    if KIND == "image":
        image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
        return answer(request, {"content": [image, {"type": "text", "text": "an image"}]})
    if KIND == "wrong-result":
        return answer(request, {"tools": "none"})
    if KIND == "error":
        return send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "no \u202e luck"}})
    if KIND == "large-error":
        return send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": "no luck " * 1000000}})
    if KIND == "large-result":
        return answer(request, text("line\n" * 1000000))
    if KIND == "ask-secret":
        elicit(message="Log in", requestedSchema={"type": "object", "properties": {"password": {"type": "string"}}})
        return answer(request, text("answered " + json.dumps(json.loads(sys.stdin.readline()).get("result"))))
    if KIND in ("change", "change-huge"):
        tools_now.append(tool("another"))
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return answer(request, text("changed"))
    if KIND == "roots":
        send({"jsonrpc": "2.0", "id": "roots", "method": "roots/list"})
        return answer(request, text(json.dumps(json.loads(sys.stdin.readline())["result"])))
    if KIND == "invalid-request":
        answers = []
        # The last one is an answer to no request, which is not answered.
        for wrong in [{"id": 7, "method": 9}, {"id": "a", "method": None}, {"id": 8, "method": 9, "error": {"code": "x"}}]:
            send({"jsonrpc": "2.0", **wrong})
        send({"jsonrpc": "2.0", "id": "end", "method": "ping"})
        while len(answers) < 3 or all(it["id"] != "end" for it in answers):
            answers.append(json.loads(sys.stdin.readline()))
        return answer(request, text(" ".join(sorted(f"{it['id']}:{it.get('error', {}).get('code')}" for it in answers))))
    if KIND == "invalid-error":
        return send({"jsonrpc": "2.0", "id": request["id"], "error": "bad luck"})
    if KIND == "sampling":
        send({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})
        return answer(request, text(json.dumps(json.loads(sys.stdin.readline()).get("error"))))
    answer(request, text("worked " + json.dumps(arguments) + " " + os.environ.get("MARK", "")))


if KIND == "no-start":
    sys.stderr.write("cannot start: no configuration\n")
    sys.exit(3)
if KIND == "never-answers":
    time.sleep(1000)
if KIND == "prints-first":
    print("Welcome to this server!")
    print("{ not json")
    sys.stdout.flush()
if KIND == "ignores-eof":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

LARGE_ERROR = {"code": -32000, "message": "no luck", "data": "x" * 8000000}
held = []
reads = []
tools_now = tools()
for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if request.get("id") == "ask" and KIND == "asks-beside":
        for waiting in held:
            answer(waiting, text("done"))
    elif method == "initialize" and KIND == "large-start-error":
        send({"jsonrpc": "2.0", "id": request["id"], "error": LARGE_ERROR})
    elif method == "tools/list" and KIND == "large-list-error":
        send({"jsonrpc": "2.0", "id": request["id"], "error": LARGE_ERROR})
    elif method == "initialize":
        answer(request, {"protocolVersion": request["params"]["protocolVersion"],
                         "capabilities": {"tools": {"listChanged": True},
                                          **({"prompts": {}, "resources": {}} if KIND in ("named", "error-key") else {})},
                         "serverInfo": {"name": "bad", "version": "1"}})
    elif method == "tools/list":
        if KIND == "closes-stdin":
            # Before the answer, so that no call can still be written.
            os.close(0)
        answer(request, {"tools": tools_now})
        if KIND == "closes-stdin":
            time.sleep(1000)
    elif method in ("tools/call", "prompts/list", "resources/read") and KIND == "error-key":
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": f"no luck with {os.environ['KEY']}"}})
    elif method == "tools/call":
        call(request)
    elif method == "prompts/list" and KIND == "named":
        # On the second page.
        page = [{"name": "other"}] if "cursor" not in request.get("params", {}) else [
            {"name": "review", "arguments": [{"name": "file", "required": True}, {"name": "style"}]}]
        answer(request, {"prompts": page, **({"nextCursor": "2"} if page[0]["name"] == "other" else {})})
    elif method == "prompts/get" and KIND == "named":
        texts = [("user", f"Review {json.dumps(request['params']['arguments'])}."), ("assistant", "Yes.")]
        answer(request, {"messages": [{"role": role, "content": {"type": "text", "text": value}} for role, value in texts]})
    elif method == "resources/read" and KIND == "named":
        uri = request["params"]["uri"]
        contents = {"page://1": {"text": "Page one."}, "page://large": {"text": "x" * 300_000}, "page://image": {"blob": "QUJD"}}
        if uri == "page://once" and not reads:
            reads.append(uri)
            answer(request, {"contents": [{"uri": uri, "text": "Now."}], "ttlMs": 1})
        elif uri in contents:
            answer(request, {"contents": [{"uri": uri, **contents[uri]}]})
        elif uri != "page://slow":
            send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32002, "message": "no such page\x1b[2J"}})
    elif method == "notifications/cancelled" and KIND == "obeys":
        send({"jsonrpc": "2.0", "id": request["params"]["requestId"], "error": {"code": 0, "message": "cancelled"}})
    elif method == "ping":
        answer(request, {})
    elif "id" in request and method:
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}})
while KIND == "ignores-eof":
    time.sleep(1000)
