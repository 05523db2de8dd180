"""A server of the revision 2026-07-28, made with the PyPI package `mcp`."""

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("modern")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def slow(steps: int, ctx: Context) -> str:
    """Report progress."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return "finished"


if __name__ == "__main__":
    server.run()
