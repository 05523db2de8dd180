"""Drives `holdpoint acp` with the Python SDK of the protocol. Arguments: the program, and the name
of a function below with its own arguments."""

import asyncio
import os
import random
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.interfaces import Client
from acp.schema import AllowedOutcome, ClientCapabilities, DeniedOutcome, RequestPermissionResponse

# An answer that streams until it is cancelled, and one that runs a command until then.
STREAMING = "say@200 Some words before the silence and then the last.\nhang"
RUNNING = "say@200 Some words before the command runs its two processes.\nshell: sleep 1000 & echo runs; sleep 1000"
# The number of words in each of them.
WORDS = 9


class Editor(Client):
    """Answers permission requests with the options in `choices`, and keeps all updates. The choice
    `wait` waits for `released`, and then denies."""

    def __init__(self):
        self.choices = []
        self.asked = asyncio.Event()
        self.released = asyncio.Event()
        self.updates = []
        self.changed = asyncio.Condition()

    async def request_permission(self, options, session_id, tool_call, **kwargs):
        self.asked.set()
        if not self.choices:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        choice = self.choices.pop(0)
        kind, meta = choice if isinstance(choice, tuple) else (choice, None)
        if kind == "wait":
            await self.released.wait()
            kind = "reject_once"
        option = next(option for option in options if option.kind == kind)
        outcome = AllowedOutcome(outcome="selected", option_id=option.option_id)
        return RequestPermissionResponse(outcome=outcome, field_meta=meta)

    async def session_update(self, session_id, update, **kwargs):
        async with self.changed:
            self.updates.append(update)
            self.changed.notify_all()

    async def until(self, wanted):
        async with self.changed:
            await self.changed.wait_for(wanted)

    def text(self, kind="agent_message_chunk"):
        chunks = [u for u in self.updates if u.session_update == kind]
        return "".join(chunk.content.text for chunk in chunks)

    def on_connect(self, conn):
        pass


class Connection:
    """A running agent. `session` is the one that was opened last."""

    async def __aenter__(self):
        self.editor = Editor()
        self.process = spawn_agent_process(self.editor, sys.argv[1], "acp", env=dict(os.environ))
        self.conn, _ = await self.process.__aenter__()
        reply = await self.conn.initialize(
            protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities()
        )
        assert reply.protocol_version == PROTOCOL_VERSION, reply
        assert reply.agent_info.name == "holdpoint", reply
        return self

    async def __aexit__(self, *error):
        await self.process.__aexit__(*error)

    async def new(self, cwd=None):
        opened = await self.conn.new_session(cwd=cwd or os.getcwd(), mcp_servers=[])
        self.session = opened.session_id
        return self.session

    async def load(self, session):
        self.session = session
        await self.conn.load_session(session_id=session, cwd=os.getcwd(), mcp_servers=[])

    async def resume(self, session):
        self.session = session
        await self.conn.resume_session(session_id=session, cwd=os.getcwd(), mcp_servers=[])

    async def play(self, script):
        reply = await self.conn.prompt(session_id=self.session, prompt=[text_block(script)])
        return reply.stop_reason

    async def cancel(self):
        await self.conn.cancel(session_id=self.session)


async def everything():
    async with Connection() as one:
        editor, play = one.editor, one.play
        session = await one.new()
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
        await editor.until(lambda: "Three." in editor.text())
        await one.cancel()
        assert await playing == "cancelled"

        await one.conn.set_session_mode(session_id=session, mode_id="edits")
        assert await play("call write_file {\"path\": \"a.txt\", \"content\": \"x\"}") == "end_turn"
        async with Connection() as two:
            await two.load(session)
            assert two.editor.text().startswith("One."), two.editor.updates
            assert await play("say Four.") == "end_turn"
            await two.editor.until(lambda: two.editor.text().endswith("Four."))
        assert await play("say Five.") == "end_turn"


async def saved():
    """Sessions of earlier connections, and pages of sessions."""
    async with Connection() as one:
        session = await one.new()
        assert await one.play("say One.") == "end_turn"
    async with Connection() as two:
        await two.resume(session)
        assert await two.play("say Two.") == "end_turn"
        assert two.editor.text() == "Two.", "it resumes without the history"
    async with Connection() as three:
        await three.load(session)
        assert three.editor.text() == "One.Two.", "it is loaded with the history"
        assert three.editor.text("user_message_chunk") == "say One.say Two."
        listed = await three.conn.list_sessions(cwd=os.getcwd())
        assert [(s.session_id, s.title) for s in listed.sessions] == [(session, "say One.")], listed
        assert listed.next_cursor is None, listed
        os.mkdir("other")
        opened = {await three.new(os.path.abspath("other")) for _ in range(55)}
        first = await three.conn.list_sessions()
        second = await three.conn.list_sessions(cursor=first.next_cursor)
        assert len(first.sessions) == 50 and second.next_cursor is None, (first, second)
        ids = [s.session_id for s in first.sessions + second.sessions]
        assert sorted(ids) == sorted([*opened, session]), ids


async def together():
    """Two clients of one session at the same time."""
    async with Connection() as one, Connection() as two:
        await two.load(await one.new())
        ends = await asyncio.gather(one.play("say One."), two.play("say Two."))
        assert ends == ["end_turn", "end_turn"], ends
        for mine, prompt in (one, "say Two."), (two, "say One."):
            editor = mine.editor
            await editor.until(lambda: {"One.", "Two."} <= {*editor.text().replace(".", ". ").split()})
            assert editor.text("user_message_chunk") == prompt, "it has its own prompt"

        # The answer of one of them counts, and a later one has no effect.
        one.editor.choices, two.editor.choices = ["wait"], ["allow_once"]
        assert await one.play("shell: touch made\n---\nsay Three.") == "end_turn"
        assert one.editor.asked.is_set() and two.editor.asked.is_set()
        assert os.path.exists("made")
        one.editor.released.set()
        await two.editor.until(lambda: two.editor.text().endswith("Three."))

        playing = asyncio.create_task(one.play("say Four.\nhang"))
        await two.editor.until(lambda: two.editor.text().endswith("Four."))
        await two.cancel()
        assert await playing == "cancelled"
        assert await two.play("say Five.") == "end_turn"


async def killed(script):
    """Prints the id of the session when the turn works, and waits for its own end."""
    async with Connection() as one:
        one.editor.choices = ["wait"]
        session = await one.new()
        playing = asyncio.create_task(one.play(script))
        await one.editor.until(lambda: "One." in one.editor.text())
        print(session, flush=True)
        await playing


async def load(session, text):
    async with Connection() as one:
        await one.load(session)
        assert one.editor.text() == text, one.editor.updates
        assert await one.play("say Loaded.") == "end_turn"


async def cancels(rounds):
    """Cancels turns at random moments. Prints the state of each turn at its cancel, and waits for a
    line after each."""
    loop = asyncio.get_running_loop()
    async with Connection() as one:
        await one.new()
        editor = one.editor

        def seen():
            kinds = ("agent_message_chunk", "tool_call", "tool_call_update")
            return [u for u in editor.updates if u.session_update in kinds]

        def runs(update):
            return update.session_update == "tool_call_update" and "runs" in str(update.content)

        def is_last(update):
            text = update.session_update == "agent_message_chunk" and update.content.text
            return runs(update) or text and "last" in text

        for round in range(int(rounds)):
            script, moment = [
                (STREAMING, random.randint(1, WORDS)),
                (RUNNING, sys.maxsize),
                (RUNNING, random.randint(1, WORDS + 3)),
            ][round % 3]
            editor.updates.clear()
            playing = asyncio.create_task(one.play(script))
            await editor.until(lambda: len(seen()) >= moment or any(map(is_last, seen())))
            await one.cancel()
            assert await playing == "cancelled"
            is_running = any(map(runs, seen()))
            print("running" if is_running else "streaming", flush=True)
            await loop.run_in_executor(None, sys.stdin.readline)
        assert await one.play("say Still here.") == "end_turn"


async def main():
    _, _, name, *arguments = sys.argv
    await globals()[name](*arguments)
    print("all passed")


asyncio.run(asyncio.wait_for(main(), float(os.environ["PATIENCE"])))
