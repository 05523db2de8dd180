// What the tests share: the sessions of this process and those of a daemon, and ways to wait for what happens.
import { execFile } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { connect, Sessions } from '../index.mjs'
import * as holdpoint from '../index.mjs'

export const root = fileURLToPath(new URL('../', import.meta.url))
export const full = process.env.HOLDPOINT_FULL === '1'

/** Milliseconds after which an event that has not come is given up: HOLDPOINT_PATIENCE in seconds, as in Rust. */
export const patience = 1_000 * Number(process.env.HOLDPOINT_PATIENCE ?? 300)

// Node gives children the default actions of signals, whatever it was started with itself; not so the umask.
process.umask(0o022)

const run = promisify(execFile)

/** The program `holdpoint`, as the workspace has built it. */
const program = process.env.HOLDPOINT_PROGRAM

/** A folder of its own, gone when the tests of the file are over. */
export async function folder() {
  const made = await mkdtemp(path.join(tmpdir(), 'hp-'))
  after(() => rm(made, { recursive: true, force: true }))
  return made
}

/** Runs the same tests against the engine of this process, and against a daemon. */
export function everywhere(name, tests) {
  describe(`${name}, here`, () => tests(async () => holdpoint, { remote: false }))
  describe(`${name}, of a daemon`, { skip: !program && 'HOLDPOINT_PROGRAM names no program' }, () => {
    const daemon = startDaemon()
    tests(async () => (await daemon()).sessions, { remote: true })
  })
}

/** A daemon with a state folder and configuration of its own, started when it is first wanted and stopped after the tests. */
export function startDaemon(config = '') {
  let started
  after(async () => {
    if (!started) return
    const { stateDir } = await started
    // Whichever runs: a test may have ended one and started another.
    await run(program, ['--state-dir', stateDir, 'daemon', 'stop'])
    await rm(stateDir, { recursive: true, force: true })
  })
  return () => (started ??= start(config))
}

async function start(config) {
  const stateDir = await mkdtemp(path.join(tmpdir(), 'hpd-'))
  await mkdir(path.join(stateDir, 'config'))
  await writeFile(path.join(stateDir, 'config/config.toml'), config)
  await run(program, ['--state-dir', stateDir, 'daemon', 'start'])
  const pid = Number(await readFile(path.join(stateDir, 'data/daemon.lock'), 'utf8'))
  return { stateDir, pid, sessions: await connect({ stateDir }) }
}

/** What is attached, and would keep the process. */
const attachments = []
after(() => Promise.all(attachments.map(([sessions, id, attachment]) => sessions.sessionDetach(id, attachment))))

/** Attaches until the tests of the file are over. */
export async function attach(sessions, id, callback, options = {}) {
  const attached = await sessions.sessionAttach(id, callback, { keepAlive: true, ...options })
  attachments.push([sessions, id, attached.attachment])
  return attached
}

/** Opens a session in a folder of its own. */
export async function open(sessions, options = {}) {
  return sessions.sessionOpen({ cwd: await folder(), model: 'rehearsal', ...options })
}

/** Attaches, keeps what comes, and waits for what is wanted of it. */
export async function record(sessions, id, options = {}) {
  const events = []
  const news = new EventEmitter().setMaxListeners(0)
  let end
  const callback = (event) => {
    events.push(event)
    news.emit(event.body.type)
  }
  const onEnd = (why) => {
    end = why
    for (const waitedFor of news.eventNames()) news.emit(waitedFor)
  }
  const attached = await attach(sessions, id, callback, { ...options, onEnd })
  return {
    ...attached,
    events,
    /** The first event of this type, after the `skip` first of them. */
    async event(type, skip = 0) {
      for (;;) {
        const found = events.filter(({ body }) => body.type === type)[skip]
        if (found) return found
        const came = () => events.map(({ body }) => body.type).slice(-20).join(' ')
        if (end) throw new Error(`the stream has ended (${end.reason}) before ${type}; at last came: ${came()}`)
        await once(news, type, { signal: AbortSignal.timeout(patience) }).catch(() => {
          throw new Error(`${type} does not come; at last came: ${came()}`)
        })
      }
    },
    async end() {
      if (!end) await once(news, 'end')
      return end
    },
  }
}

/** Waits for what has no event of its own. */
export async function until(condition) {
  const deadline = Date.now() + patience
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`still waiting after ${patience} ms: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** What a promise rejects with, or a function throws. */
export async function failure(what) {
  try {
    await (typeof what === 'function' ? what() : what)
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

/** Runs a script of JavaScript in a process of its own. */
export async function script(text, options = {}) {
  const args = ['--input-type=module', '--expose-gc', '-e', text]
  return run(process.execPath, args, { cwd: root, timeout: patience, ...options })
}

export { existsSync, holdpoint, program, run, Sessions }
