"""A server of the old era over HTTP that misbehaves in the way that its first argument names.

Prints its port. Appends a line to the file in its second argument for each thing that a test waits
for.
"""

import gzip
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KIND = sys.argv[1]
LOG = sys.argv[2] if len(sys.argv) > 2 else None
# Where a redirect leads.
AWAY = sys.argv[3] if len(sys.argv) > 3 else None
LOCK = threading.Lock()
STATE = {"sessions": 0, "forgot": False, "streams": 0}


def log(line):
    if LOG:
        with LOCK, open(LOG, "a") as file:
            file.write(line + "\n")


def result(request, value):
    return {"jsonrpc": "2.0", "id": request["id"], "result": value}


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def tools():
    if KIND == "many-tools":
        return [{"name": f"tool{n}", "inputSchema": {"type": "object"}} for n in range(2000)]
    if KIND == "huge-list":
        return [{"name": "big", "description": "d" * (20 * 1024 * 1024), "inputSchema": {"type": "object"}}]
    return [{"name": "work", "inputSchema": {"type": "object"}}]


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self, status, value, kind="application/json", **headers):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, header in headers.items():
            self.send_header(name.replace("_", "-"), header)
        self.end_headers()
        self.wfile.write(data)

    def events(self):
        """Begins a stream of events, which ends with the connection."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, value, ident=None):
        ident = f"id: {ident}\n" if ident else ""
        self.wfile.write(f"{ident}data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()

    def endless(self, chunk):
        while True:
            self.wfile.write(chunk)

    def wait_closed(self):
        """Waits until the client closes the connection."""
        try:
            self.connection.recv(1)
        except OSError:
            pass
        log("closed")
        self.close_connection = True

    def do_DELETE(self):
        log("deleted")
        self.body(200, {})

    def old_stream(self):
        """The stream of a server before 2025-03-26."""
        self.events()
        endpoint = AWAY if KIND == "sse-away" else "/messages?session=1"
        STATE["stream"] = self
        self.wfile.write(f"event: endpoint\ndata: {endpoint}\n\n".encode())
        self.wait_closed()

    def old_message(self, request):
        """A message for such a server, which answers it in its stream."""
        method, stream = request.get("method"), STATE["stream"]
        log(f"message {method} {json.dumps(request.get('params'))}")
        self.body(202, b"Accepted", "text/plain")
        if method == "initialize":
            value = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                     "serverInfo": {"name": "old", "version": "1"}}
            stream.event(result(request, value))
        elif method == "tools/list":
            stream.event(result(request, {"tools": tools()}))
        elif method == "tools/call" and KIND == "sse-endless-line":
            stream.wfile.write(b"data: ")
            stream.endless(b"x" * 65536)
        elif method == "tools/call" and KIND == "sse-comments":
            stream.endless(b": comment\n" * 5000)
        elif method == "tools/call" and KIND == "sse-closes":
            stream.connection.shutdown(2)
        elif method == "tools/call" and KIND == "sse-requests":
            for number in range(1000):
                stream.event({"jsonrpc": "2.0", "id": f"r{number}", "method": "roots/list"})
        elif method == "tools/call" and KIND != "sse-silent":
            stream.event(result(request, text("worked")))

    def do_GET(self):
        if KIND.startswith("sse"):
            return self.old_stream()
        last = self.headers.get("Last-Event-ID")
        if last is None or KIND not in ("resumes", "closes-always"):
            return self.body(405, {})
        STATE["streams"] += 1
        log(f"stream after {last}")
        self.events()
        if KIND == "resumes":
            self.event(result({"id": STATE["id"]}, text("resumed")), "2")
        else:
            self.wfile.write(b"retry: 0\nid: again\ndata:\n\n")

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(raw)
        method = request.get("method")
        if KIND == "sse-refuses" and method == "tools/call":
            return self.body(500, f"no {self.headers.get('Authorization')}".encode(), "text/plain")
        if KIND.startswith("sse"):
            return self.old_message(request)
        if KIND == "start-500":
            return self.body(500, b"<h1>no luck</h1>", "text/html")
        if KIND == "start-html":
            return self.body(200, b"<h1>hello</h1>", "text/html")
        if KIND == "start-silent":
            return self.wait_closed()
        if KIND == "start-loop":
            return self.body(307, b"", Location=self.path + "x")
        if KIND == "needs-key" and self.headers.get("Authorization") != "Bearer right-key":
            return self.body(401, {}, WWW_Authenticate="Bearer")
        if KIND == "moved" and self.path != "/new/":
            return self.body(307, b"", Location="/new/")
        if method == "server/discover":
            error = {"code": -32601, "message": "unknown method"}
            return self.body(400, {"jsonrpc": "2.0", "id": request["id"], "error": error})
        if method == "initialize":
            STATE["sessions"] += 1
            value = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                     "serverInfo": {"name": "bad", "version": "1"}}
            return self.body(200, result(request, value), Mcp_Session_Id=str(STATE["sessions"]))
        if method == "tools/list":
            return self.body(200, result(request, {"tools": tools()}))
        if method == "tools/call":
            return self.call(request)
        log(f"message {method} {json.dumps(request.get('params'))}")
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def call(self, request):
        done = result(request, text("worked"))
        STATE["id"] = request["id"]
        if KIND == "endless-header":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            return self.endless(b"X-More: " + b"x" * 1000 + b"\r\n")
        if KIND == "endless-line":
            self.events()
            self.wfile.write(b"data: ")
            return self.endless(b"x" * 65536)
        if KIND == "endless-json":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            return self.endless(b" " * 65536)
        if KIND == "garbage-json":
            return self.body(200, b'{"jsonrpc": "2.0", "id"')
        if KIND == "garbage-events":
            self.events()
            for _ in range(100):
                self.wfile.write(b"data: this is not a message\n\n")
            return None
        if KIND == "error-500":
            answer = f"no luck with {self.headers.get('Authorization')}".encode()
            return self.body(500, answer, "text/plain")
        if KIND == "error-400":
            answer = f"no luck with {self.headers.get('Authorization')}".encode()
            return self.body(400, answer, "text/plain")
        if KIND == "redirect-loop":
            return self.body(307, b"", Location=self.path + "x")
        if KIND == "redirect-away":
            return self.body(307, b"", Location=AWAY)
        if KIND == "redirect-get":
            return self.body(302, b"", Location="/new/")
        if KIND == "never-answers":
            log("called")
            return self.wait_closed()
        if KIND == "streams-and-waits":
            self.events()
            token = request["params"]["_meta"]["progressToken"]
            self.event({"jsonrpc": "2.0", "method": "notifications/progress",
                        "params": {"progressToken": token, "progress": 1, "message": "at work"}})
            return self.wait_closed()
        if KIND == "closes-mid-event":
            self.events()
            return self.wfile.write(b'id: 1\ndata: {"jsonrpc": "2.0", "id"')
        if KIND in ("resumes", "closes-always"):
            self.events()
            return self.wfile.write(b"retry: 0\nid: 1\ndata:\n\n")
        if KIND == "gzip":
            return self.body(200, gzip.compress(b" " * (256 * 1024 * 1024), 1), Content_Encoding="gzip")
        if KIND == "requests":
            self.events()
            for number in range(1000):
                self.event({"jsonrpc": "2.0", "id": f"r{number}", "method": "roots/list"})
            return self.wait_closed()
        if KIND == "forgets" and not STATE["forgot"]:
            STATE["forgot"] = True
            return self.body(404, {})
        if KIND == "echo-headers":
            return self.body(200, result(request, text(json.dumps(dict(self.headers)))))
        return self.body(200, done)


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
