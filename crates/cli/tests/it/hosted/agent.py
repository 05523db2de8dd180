"""An agent that plays the script in its prompt: one step per line.

say TEXT            a piece of a message
think TEXT          a piece of a thought
run COMMAND         ask for permission, run the command with a shell, report its output
announce COMMAND    run it without asking
write PATH TEXT     ask for permission, write the file, report a diff
read PATH           report that the file is read
ask KIND TITLE      ask for permission for a call of this kind
ask2 TITLE TITLE    ask for permission for two calls at once
leave TITLE TITLE   begin calls and do not end them
paths N             ask for permission to change N files
stop REASON         end the turn for this reason
session             report the id of the session
spin                write text until the turn is cancelled, or a file `quiet` exists
hang                never answer, whatever is sent
until PATH          wait until the file exists
die CODE            exit at once
garbage N           write N lines that are not messages
huge N              write a message with N bytes of text
requests N          ask for permission N times, without waiting for answers
flood               write text for ever
env NAME            report the variable
pid                 report the process id
spawn COMMAND       start a process in the background
"""

import asyncio
import os
import sys

import acp
from acp import schema

IGNORE_END = "ignore-end" in sys.argv
SLOW_CANCEL = "ignore-cancel" in sys.argv
NO_LOAD = "no-load" in sys.argv

OPTIONS = [
    schema.PermissionOption(kind="allow_once", name="Allow", option_id="yes"),
    schema.PermissionOption(kind="allow_always", name="Always", option_id="always"),
    schema.PermissionOption(kind="reject_once", name="Reject", option_id="no"),
]


class Cancelled(Exception):
    pass


class Agent(acp.Agent):
    def __init__(self):
        self.calls = 0
        self.sessions = 0
        self.cancelled = asyncio.Event()

    def on_connect(self, connection):
        self.connection = connection

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        self.client = client_info
        return schema.InitializeResponse(
            protocol_version=1,
            agent_capabilities=schema.AgentCapabilities(load_session=not NO_LOAD),
        )

    async def new_session(self, cwd, **_):
        self.sessions += 1
        return schema.NewSessionResponse(session_id=f"own-{os.getpid()}-{self.sessions}")

    async def load_session(self, cwd, session_id, **_):
        if session_id.startswith("lost"):
            raise acp.RequestError.resource_not_found(session_id)
        await self.send(session_id, acp.update_user_message_text("an old prompt"))
        await self.send(session_id, acp.update_agent_message_text("an old answer"))
        return schema.LoadSessionResponse()

    async def cancel(self, session_id, **_):
        if not SLOW_CANCEL:
            self.cancelled.set()

    async def prompt(self, prompt, session_id, **_):
        self.session = session_id
        self.cancelled.clear()
        text = prompt[0].text
        script = text.rsplit("\n\n---\n\n", 1)[-1]
        play = asyncio.ensure_future(self.play(script, text))
        cut = asyncio.ensure_future(self.cancelled.wait())
        await asyncio.wait([play, cut], return_when=asyncio.FIRST_COMPLETED)
        if not play.done():
            play.cancel()
            return schema.PromptResponse(stop_reason="cancelled")
        cut.cancel()
        return schema.PromptResponse(
            stop_reason=play.result(),
            usage=schema.Usage(total_tokens=12, input_tokens=7, output_tokens=5),
        )

    async def send(self, session, update):
        await self.connection.session_update(session, update)

    async def say(self, text):
        await self.send(self.session, acp.update_agent_message_text(text))

    async def play(self, script, text):
        for line in script.splitlines():
            step, _, rest = line.partition(" ")
            play = getattr(self, "step_" + step, None)
            if play is None:
                await self.say(f"heard: {text}")
                return "end_turn"
            stop = await play(rest)
            if stop:
                return stop
        return "end_turn"

    async def step_say(self, text):
        await self.say(text + "\n")

    async def step_think(self, text):
        await self.send(self.session, acp.update_agent_thought_text(text))

    async def step_stop(self, reason):
        return reason

    async def step_env(self, name):
        await self.say(f"{name}={os.environ.get(name)}\n")

    async def step_pid(self, _):
        await self.say(f"pid={os.getpid()}\n")

    async def step_session(self, _):
        await self.say(f"session={self.session}\n")

    async def step_spawn(self, command):
        await asyncio.create_subprocess_shell(command, stdin=-3, stdout=-3, stderr=-3)

    async def step_spin(self, _):
        while not os.path.exists("quiet"):
            await self.say(".")
            await asyncio.sleep(0.01)

    async def step_hang(self, _):
        os.write(2, b"hanging\n")
        os.system("sleep 1000")

    async def step_until(self, path):
        while not os.path.exists(path):
            await asyncio.sleep(0.01)

    async def step_die(self, code):
        os.write(2, b"dying as told\n")
        os._exit(int(code))

    async def step_garbage(self, count):
        os.set_blocking(1, True)
        for _ in range(int(count)):
            os.write(1, b"this is not a message, " + b"x" * 1000 + b"\n")

    async def step_huge(self, size):
        await self.say("x" * int(size))

    async def step_flood(self, _):
        while True:
            await self.say("flood " * 1000)

    def call(self):
        self.calls += 1
        return f"call-{self.calls}"

    async def start(self, title, kind, status="pending", **fields):
        call = self.call()
        start = acp.start_tool_call(call, title, kind=kind, status=status, **fields)
        await self.send(self.session, start)
        return call

    async def update(self, call, **fields):
        await self.send(self.session, acp.update_tool_call(call, **fields))

    async def permitted(self, call, **fields):
        update = schema.ToolCallUpdate(tool_call_id=call, **fields)
        answer = await self.connection.request_permission(self.session, update, OPTIONS)
        outcome = answer.outcome
        if outcome.outcome == "cancelled":
            await asyncio.sleep(1000)
        reason = ((outcome.field_meta if hasattr(outcome, "field_meta") else None) or answer.field_meta or {})
        reason = reason.get("holdpoint", {}).get("reason")
        return outcome.option_id != "no", outcome.option_id, reason

    async def shell(self, call, command):
        await self.update(call, status="in_progress")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_shell(command, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
        output = ""
        while line := await process.stdout.readline():
            output += line.decode()
            await self.update(call, content=[acp.tool_content(acp.text_block(output))])
        code = await process.wait()
        await self.update(call, status="failed" if code else "completed")

    async def step_run(self, command):
        call = await self.start("shell", "execute")
        ok, option, reason = await self.permitted(
            call, title=command, kind="execute", raw_input={"command": command}
        )
        if not ok:
            await self.update(call, status="failed")
            await self.say(f"rejected: {option} {reason}\n")
            return
        await self.shell(call, command)

    async def step_announce(self, command):
        call = await self.start(command, "execute", raw_input={"command": command})
        await self.shell(call, command)

    async def step_write(self, rest):
        path, _, text = rest.partition(" ")
        path = os.path.abspath(path)
        old = open(path).read() if os.path.exists(path) else None
        diff = acp.tool_diff_content(path, text, old)
        call = await self.start(f"Write {path}", "edit")
        where = [schema.ToolCallLocation(path=path)]
        ok, option, reason = await self.permitted(
            call, title=f"Write {path}", kind="edit", content=[diff], locations=where
        )
        if not ok:
            await self.update(call, status="failed")
            await self.say(f"rejected: {option} {reason}\n")
            return
        with open(path, "w") as file:
            file.write(text)
        await self.update(call, status="completed", content=[diff])

    async def step_read(self, path):
        where = [schema.ToolCallLocation(path=os.path.abspath(path))]
        call = await self.start(f"Read {path}", "read", "in_progress", locations=where)
        await self.update(call, status="completed", raw_output={"output": open(path).read()})

    async def step_ask(self, rest):
        kind, _, title = rest.partition(" ")
        call = await self.start(title, kind)
        ok, option, reason = await self.permitted(call, title=title, kind=kind, raw_input={"url": "http://x/"})
        await self.update(call, status="completed" if ok else "failed")
        await self.say(f"{title}: {option} {reason}\n")

    async def step_ask2(self, rest):
        await asyncio.gather(*(self.step_ask(f"other {title}") for title in rest.split()))

    async def step_leave(self, rest):
        for title in rest.split():
            await self.start(title, "other", "in_progress")

    async def step_paths(self, count):
        where = [schema.ToolCallLocation(path=os.path.abspath(f"f{n}")) for n in range(int(count))]
        call = await self.start("Write files", "edit")
        ok, option, reason = await self.permitted(call, title="Write files", kind="edit", locations=where)
        await self.update(call, status="completed" if ok else "failed")
        await self.say(f"files: {option} {reason}\n")

    async def step_requests(self, count):
        calls = (self.permitted(f"many-{n}", title=f"request {n}") for n in range(int(count)))
        await asyncio.gather(*calls)


async def main():
    await acp.run_agent(Agent(), stdio_buffer_limit_bytes=1 << 26)
    if IGNORE_END:
        await asyncio.sleep(1000)


asyncio.run(main())
