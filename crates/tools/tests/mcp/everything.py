"""A server of the revision 2026-07-28, made with the PyPI package `mcp`.

Over standard input and output, or with the argument `http` on a port that it prints.
"""

import socket
import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("modern")


class Reply(BaseModel):
    go_on: bool


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def question(ctx: Context) -> str:
    """Ask the user."""
    answer = await ctx.elicit("Go on?", Reply)
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.tool()
async def slow(steps: int, ctx: Context) -> str:
    """Report progress."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return "finished"


@server.resource("page://{number}")
def page(number: str) -> str:
    return f"This is page {number}."


@server.prompt()
def review(file: str) -> str:
    return f"Review the file {file}."


def serve_http():
    import uvicorn

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    app = server.streamable_http_app(host="127.0.0.1")
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    serve_http() if sys.argv[1:] == ["http"] else server.run()
