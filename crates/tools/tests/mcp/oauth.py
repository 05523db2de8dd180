"""An MCP server that needs a login, and its authorization server, on two ports.

Prints the port of the MCP server. The first argument names its behaviour; it appends a line to the
file in the second argument for each request. All its secrets begin with `secret-`.
"""

import base64
import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlparse

KIND = sys.argv[1]
LOG = sys.argv[2]
LOCK = threading.RLock()
# The codes, with their requests; the valid tokens, with their scopes.
STATE = {"issued": 0, "codes": {}, "access": {}, "refresh": {}, "stream": None}
CLIENTS = {"known": "secret-of-known"} if KIND == "no-registration" else {}


def log(line):
    with LOCK, open(LOG, "a") as file:
        file.write(line + "\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self, status, value, **headers):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, header in headers.items():
            self.send_header(name.replace("_", "-"), header)
        self.end_headers()
        self.wfile.write(data)

    def raw(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def form(self):
        return {name: values[0] for name, values in parse_qs(self.raw().decode()).items()}


class Resource(Handler):
    def scopes(self):
        """The scopes of the token in the request; None if it has no valid token."""
        key = self.headers.get("Authorization", "")
        if KIND == "useless":
            return None
        if KIND == "revoked" and key == "Bearer secret-access-1":
            return None
        return STATE["access"].get(key.removeprefix("Bearer "))

    def refuse(self):
        metadata = f"{RESOURCE}/.well-known/oauth-protected-resource/mcp"
        self.body(401, {}, WWW_Authenticate=f'Bearer resource_metadata="{metadata}", scope="read"')

    def seen(self, method):
        log(f"mcp {method} {self.headers.get('Authorization', 'no token')}")

    def do_GET(self):
        if self.path.startswith("/.well-known/oauth-protected-resource"):
            if KIND == "endless":
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Connection", "close")
                self.end_headers()
                while True:
                    self.wfile.write(b" " * 65536)
            resource = "https://example.com/mcp" if KIND == "other-resource" else f"{RESOURCE}/mcp"
            return self.body(200, {"resource": resource, "authorization_servers": [ISSUER],
                                   "scopes_supported": ["read", "write"]})
        if self.scopes() is None:
            return self.refuse()
        if KIND != "sse":
            return self.body(405, {})
        self.seen("stream")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"event: endpoint\ndata: /messages\n\n")
        STATE["stream"] = self
        self.connection.recv(1)

    def do_DELETE(self):
        self.body(200, {})

    def do_POST(self):
        request = json.loads(self.raw())
        method = request.get("method")
        self.seen(method)
        scopes = self.scopes()
        if scopes is None:
            return self.refuse()
        if "id" not in request:
            return self.body(202, {})
        value = {}
        if method == "initialize":
            value = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                     "serverInfo": {"name": "private", "version": "1"}}
        elif method == "tools/list":
            value = {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            if KIND == "needs-scope" and "write" not in scopes:
                why = 'Bearer error="insufficient_scope", scope="write"'
                return self.body(403, {}, WWW_Authenticate=why)
            if KIND == "echoes":
                return self.body(400, {"no": self.headers.get("Authorization")})
            value = {"content": [{"type": "text", "text": "worked"}]}
        elif method != "ping":
            error = {"code": -32601, "message": "unknown method"}
            return self.body(400, {"jsonrpc": "2.0", "id": request["id"], "error": error})
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": value}
        if KIND != "sse":
            return self.body(200, answer)
        self.body(202, {})
        STATE["stream"].wfile.write(f"data: {json.dumps(answer)}\n\n".encode())


class Authority(Handler):
    def metadata(self):
        token = "http://example.com/token" if KIND == "plain-token" else f"{ISSUER}/token"
        metadata = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": token,
            "registration_endpoint": f"{ISSUER}/register",
            "revocation_endpoint": f"{ISSUER}/revoke",
            "code_challenge_methods_supported": ["plain" if KIND == "no-pkce" else "S256"],
            "response_types_supported": ["code"],
            "authorization_response_iss_parameter_supported": True,
        }
        if KIND == "no-registration":
            del metadata["registration_endpoint"]
        return metadata

    def do_GET(self):
        url = urlparse(self.path)
        if url.path == "/.well-known/oauth-authorization-server":
            return self.body(200, self.metadata())
        if url.path != "/authorize":
            return self.body(404, {})
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        log(f"authorize {asked.get('client_id')} {asked.get('scope')}")
        assert asked["response_type"] == "code" and asked["code_challenge_method"] == "S256"
        assert asked["resource"] == f"{RESOURCE}/mcp", asked
        answer = {"state": asked["state"], "iss": ISSUER}
        if KIND == "denies":
            answer |= {"error": "access_denied", "error_description": "the user\nsaid no"}
        else:
            answer["code"] = f"secret-code-{len(STATE['codes'])}"
            STATE["codes"][answer["code"]] = asked
        if KIND == "other-issuer":
            answer["iss"] = "https://example.com"
        self.send_response(302)
        self.send_header("Location", f"{asked['redirect_uri']}?{urlencode(answer)}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        if self.path == "/register":
            asked = json.loads(self.raw())
            log(f"register {asked['client_name']} {asked['token_endpoint_auth_method']}")
            CLIENTS["registered"] = None
            return self.body(201, {"client_id": "registered", "redirect_uris": asked["redirect_uris"]})
        form = self.form()
        key = self.headers.get("Authorization", "")
        known = [f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"
                 for name, secret in CLIENTS.items() if secret]
        if key not in known and form.get("client_id") not in [
                name for name, secret in CLIENTS.items() if secret is None]:
            return self.body(401, {"error": "invalid_client"})
        if self.path == "/revoke":
            log(f"revoke {form['token_type_hint']}")
            if KIND == "refuses-revoke":
                return self.body(503, {})
            STATE["access"].pop(form["token"], None)
            STATE["refresh"].pop(form["token"], None)
            return self.body(200, {})
        if KIND == "silent-token":
            log("token is awaited")
            return self.connection.recv(1)
        with LOCK:
            return self.token(form)

    def token(self, form):
        log(f"token {form['grant_type']}")
        assert form["resource"] == f"{RESOURCE}/mcp", form
        if form["grant_type"] == "authorization_code":
            asked = STATE["codes"].pop(form["code"], None)
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            is_good = asked and asked["code_challenge"] == challenge
            is_good = is_good and asked["redirect_uri"] == form["redirect_uri"]
            scopes = asked.get("scope", "").split() if is_good else None
        else:
            scopes = STATE["refresh"].pop(form["refresh_token"], None)
            if KIND == "breaks-refresh":
                STATE["refresh"][form["refresh_token"]] = scopes
                return self.body(500, {})
        if scopes is None or KIND == "refuses-refresh" and form["grant_type"] == "refresh_token":
            return self.body(400, {"error": "invalid_grant"})
        STATE["issued"] += 1
        number = STATE["issued"]
        STATE["access"][f"secret-access-{number}"] = scopes
        STATE["refresh"][f"secret-refresh-{number}"] = scopes
        expires = KIND in ("echoes", "expired", "refuses-refresh", "breaks-refresh") and number == 1
        answer = {"access_token": f"secret-access-{number}", "token_type": "Bearer",
                  "expires_in": 0 if expires else 3600, "scope": " ".join(scopes),
                  "id_token": "secret-id-token"}
        if KIND != "no-refresh":
            answer["refresh_token"] = f"secret-refresh-{number}"
        self.body(200, answer)


resource = Server(("127.0.0.1", 0), Resource)
authority = Server(("127.0.0.1", 0), Authority)
RESOURCE = f"http://127.0.0.1:{resource.server_address[1]}"
ISSUER = f"http://127.0.0.1:{authority.server_address[1]}"
threading.Thread(target=authority.serve_forever, daemon=True).start()
print(resource.server_address[1], flush=True)
resource.serve_forever()
