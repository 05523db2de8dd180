"""An agent without the SDK, for messages that it does not send, and for programs in a sandbox.

It needs only Python, and plays the script in its prompt: one step per line. With the argument
`options` or `models`, it offers the models m1 and m2 by this means.

say TEXT          a piece of a message
write PATH TEXT   write the file without asking, and report an error
list PATH         report the names in a folder, or an error
env NAME          report the variable
get URL           report the body of the page, or an error
pid               report the process id
model             report the model
raw JSON          write this message, with the id of the session for SESSION, and that of the last
                  terminal for TERMINAL
other TEXT        a piece of a message of another session
run JSON          ask for permission to run a command with this input
ask JSON          ask for permission for this call, without waiting for the answer
answered          wait for that answer
request JSON      make this request, and report the reply
requests JSON     make these requests at once, and report the replies in their order
note JSON         make this request, and write the reply to the file `reply`
crossing JSON     make this request when the turn is cancelled, and write the reply to the file
                  `reply`
play FILE         the steps in this file
late JSON         make this request after the end of the turn
later             report the reply to it
die               exit at once
fail TEXT         end the turn with an error whose id is a text
gone              exit after the turn
"""

import json
import os
import sys
import urllib.request

session = f"own-{os.getpid()}"
requests = 0
model = "m1"


def opened():
    if "models" in sys.argv:
        models = [{"modelId": id, "name": id} for id in ["m1", "m2"]]
        return {"models": {"currentModelId": model, "availableModels": models}}
    if "options" in sys.argv:
        values = [{"value": id, "name": id} for id in ["m1", "m2"]]
        option = {"id": "which", "name": "Model", "category": "model", "type": "select"}
        return {"configOptions": [{**option, "currentValue": model, "options": values}]}
    return {}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(text, other=None):
    content = {"type": "text", "text": text + "\n"}
    change = {"sessionUpdate": "agent_message_chunk", "content": content}
    send({"method": "session/update", "params": {"sessionId": other or session, "update": change}})


def attempt(action):
    try:
        update(action())
    except Exception as error:
        update(f"error: {error}")


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return f"wrote {path}"


def run(command):
    global requests
    requests += 1
    call = {"toolCallId": f"call-{requests}", "kind": "execute", "title": "run", "rawInput": command}
    kinds = {"yes": "allow_once", "no": "reject_once"}
    options = [{"optionId": id, "name": id, "kind": kind} for id, kind in kinds.items()]
    params = {"sessionId": session, "toolCall": call, "options": options}
    id = f"request-{requests}"
    send({"id": id, "method": "session/request_permission", "params": params})
    while line := sys.stdin.readline():
        message = json.loads(line)
        if message.get("id") == id:
            chosen = message["result"]["outcome"].get("optionId")
            status = "completed" if chosen == "yes" else "failed"
            change = {"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": status}
            send({"method": "session/update", "params": {"sessionId": session, "update": change}})
            update(f"chosen: {chosen}")
            return


def ask(call):
    kinds = {"yes": "allow_once", "no": "reject_once"}
    options = [{"optionId": id, "name": id, "kind": kind} for id, kind in kinds.items()]
    params = {"sessionId": session, "toolCall": call, "options": options}
    send({"id": "ask", "method": "session/request_permission", "params": params})


replies = {}
terminal = None


def reply_to(id):
    """Waits for a reply. Other messages have no consequence meanwhile."""
    while id not in replies:
        message = json.loads(sys.stdin.readline())
        if "method" not in message:
            replies[message["id"]] = message
    return replies.pop(id)


def message_of(text):
    text = text.replace("SESSION", session).replace("TERMINAL", str(terminal))
    return json.loads(text)


def request(id, message):
    message["params"].setdefault("sessionId", session)
    send({"id": id, **message})


def outcome(reply):
    global terminal
    result = reply.get("error") or reply.get("result")
    if "terminalId" in result:
        terminal = result["terminalId"]
    return json.dumps(result)


def steps(script):
    """The steps of a script; `play FILE` is replaced by those in the file."""
    for line in script.splitlines():
        if line.startswith("play "):
            yield from open(line[5:]).read().splitlines()
        else:
            yield line


def play(id, script):
    last = None
    for line in steps(script):
        step, _, rest = line.partition(" ")
        if step == "say":
            update(rest)
        elif step == "write":
            path, _, text = rest.partition(" ")
            attempt(lambda: write(path, text))
        elif step == "list":
            attempt(lambda: " ".join(sorted(os.listdir(os.path.expanduser(rest)))))
        elif step == "env":
            update(f"{rest}={os.environ.get(rest)}")
        elif step == "get":
            attempt(lambda: urllib.request.urlopen(rest, timeout=60).read().decode())
        elif step == "pid":
            update(f"pid={os.getpid()}")
        elif step == "model":
            update(f"model={model}")
        elif step == "raw":
            send(message_of(rest))
        elif step == "other":
            update(rest, "another-session")
        elif step == "run":
            run(json.loads(rest))
        elif step == "ask":
            ask(message_of(rest))
        elif step == "answered":
            update("answered: " + outcome(reply_to("ask")))
        elif step == "request":
            request("own", message_of(rest))
            update("reply: " + outcome(reply_to("own")))
        elif step == "requests":
            messages = message_of(rest)
            for number, message in enumerate(messages):
                request(f"own-{number}", message)
            for number in range(len(messages)):
                update(f"reply {number}: " + outcome(reply_to(f"own-{number}")))
        elif step == "note":
            request("own", message_of(rest))
            with open("reply", "w") as file:
                file.write(outcome(reply_to("own")))
        elif step == "crossing":
            while json.loads(sys.stdin.readline()).get("method") != "session/cancel":
                pass
            request("own", message_of(rest))
            with open("reply", "w") as file:
                file.write(outcome(reply_to("own")))
        elif step == "late":
            last = message_of(rest)
        elif step == "later":
            update("late: " + outcome(reply_to("late")))
        elif step == "die":
            sys.exit(3)
        elif step == "fail":
            send({"id": str(id), "error": {"code": -32603, "message": rest}})
            return
        elif step == "gone":
            last = step
    send({"id": id, "result": {"stopReason": "end_turn"}})
    if last == "gone":
        sys.exit(7)
    elif last:
        request("late", last)


while line := sys.stdin.readline():
    message = json.loads(line)
    if "method" not in message:
        replies[message["id"]] = message
        continue
    method, id, params = message.get("method"), message.get("id"), message.get("params")
    if method == "initialize":
        capabilities, info = {"loadSession": True}, {"name": "plain", "version": "1.2.3"}
        result = {"protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": info}
        send({"id": id, "result": result})
    elif method == "session/new":
        send({"id": id, "result": {"sessionId": session, **opened()}})
    elif method == "session/load":
        session = params["sessionId"]
        send({"id": id, "result": opened()})
    elif method in ("session/set_config_option", "session/set_model"):
        model = params.get("value") or params.get("modelId")
        send({"id": id, "result": opened()})
    elif method == "session/prompt":
        play(id, params["prompt"][0]["text"].rsplit("\n\n---\n\n", 1)[-1])
