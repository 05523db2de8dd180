"""Drives `holdpoint acp` with the Python SDK of the protocol. Argument: the program."""

import asyncio
import os
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.interfaces import Client
from acp.schema import AllowedOutcome, ClientCapabilities, DeniedOutcome, RequestPermissionResponse


class Editor(Client):
    """Answers permission requests with the options in `choices`, and keeps all updates."""

    def __init__(self):
        self.choices = []
        self.asked = asyncio.Event()
        self.updates = []

    async def request_permission(self, options, session_id, tool_call, **kwargs):
        self.asked.set()
        if not self.choices:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        choice = self.choices.pop(0)
        kind, meta = choice if isinstance(choice, tuple) else (choice, None)
        option = next(option for option in options if option.kind == kind)
        outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
        return RequestPermissionResponse(outcome=outcome, field_meta=meta)

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)

    def text(self):
        chunks = [u for u in self.updates if u.session_update == "agent_message_chunk"]
        return "".join(chunk.content.text for chunk in chunks)

    def on_connect(self, conn):
        pass


async def connect(editor):
    context = spawn_agent_process(editor, sys.argv[1], "acp", env=dict(os.environ))
    conn, process = await context.__aenter__()
    reply = await conn.initialize(
        protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities()
    )
    assert reply.protocol_version == PROTOCOL_VERSION, reply
    assert reply.agent_info.name == "holdpoint", reply
    return context, conn


async def main():
    editor = Editor()
    context, conn = await connect(editor)
    session = (await conn.new_session(cwd=os.getcwd(), mcp_servers=[])).session_id

    async def play(script):
        reply = await conn.prompt(session_id=session, prompt=[text_block(script)])
        return reply.stop_reason

    assert await play("think Hm.\nsay One.") == "end_turn"
    assert editor.text() == "One.", editor.updates

    run = "shell: touch made\n---\nsay Two."
    editor.choices = [("reject_once", {"holdpoint": {"reason": "not now"}})]
    assert await play(run) == "end_turn"
    assert not os.path.exists("made")
    last = [u for u in editor.updates if u.session_update == "tool_call_update"][-1]
    assert last.status == "failed" and "not now" in str(last.content), last
    editor.choices = ["allow_once"]
    assert await play(run) == "end_turn"
    assert os.path.exists("made")
    editor.choices = ["allow_always"]
    assert await play(run) == "end_turn"
    assert await play(run) == "end_turn", "it is not asked again"

    playing = asyncio.create_task(play("say Three.\nhang"))
    while "Three." not in editor.text():
        await asyncio.sleep(0.01)
    await conn.cancel(session_id=session)
    assert await playing == "cancelled"

    await conn.set_session_mode(session_id=session, mode_id="edits")
    assert await play("call write_file {\"path\": \"a.txt\", \"content\": \"x\"}") == "end_turn"
    listed = await conn.list_sessions(cwd=os.getcwd())
    assert [s.session_id for s in listed.sessions] == [session], listed

    second = Editor()
    other_context, other = await connect(second)
    await other.load_session(session_id=session, cwd=os.getcwd(), mcp_servers=[])
    assert second.text().startswith("One."), second.updates
    assert await play("say Four.") == "end_turn"
    while not second.text().endswith("Four."):
        await asyncio.sleep(0.01)
    await other_context.__aexit__(None, None, None)

    assert await play("say Five.") == "end_turn"
    await context.__aexit__(None, None, None)
    print("all passed")


asyncio.run(asyncio.wait_for(main(), 300))
