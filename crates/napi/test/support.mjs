// Shared code of the tests: sessions of this process and of a daemon, and functions that wait for
// events.
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

/**
 * Milliseconds after which a test gives up waiting. HOLDPOINT_PATIENCE is in seconds, as in Rust.
 */
export const patience = 1_000 * Number(process.env.HOLDPOINT_PATIENCE ?? 300)

// Node gives children the default signal handlers, whatever its own are, but they inherit its
// umask.
process.umask(0o022)

const run = promisify(execFile)

/** Path of the program `holdpoint`, as built by the workspace. */
const program = process.env.HOLDPOINT_PROGRAM

/** Creates a folder that is removed after the tests of the file. */
export async function folder() {
  const made = await mkdtemp(path.join(tmpdir(), 'hp-'))
  after(() => rm(made, { recursive: true, force: true }))
  return made
}

/** Runs the same tests with the engine of this process and with a daemon. */
export function everywhere(name, tests) {
  describe(`${name}, in this process`, () => tests(async () => holdpoint, { remote: false }))
  describe(`${name}, in a daemon`, { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, () => {
    const daemon = startDaemon()
    tests(async () => (await daemon()).sessions, { remote: true })
  })
}

/**
 * Returns a function that starts a daemon with its own state folder and configuration when it is
 * first called. The daemon is stopped after the tests.
 */
export function startDaemon(config = '') {
  let started
  after(async () => {
    if (!started) return
    const { stateDir } = await started
    // A test may have ended one daemon and started another: stop the one that runs.
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

/** Attachments that keep the process alive. */
const attachments = []
after(() => Promise.all(attachments.map(([sessions, id, attachment]) => sessions.sessionDetach(id, attachment))))

/** Attaches until the end of the file's tests. */
export async function attach(sessions, id, callback, options = {}) {
  const attached = await sessions.sessionAttach(id, callback, { keepAlive: true, ...options })
  attachments.push([sessions, id, attached.attachment])
  return attached
}

/** Opens a session in a folder of its own. */
export async function open(sessions, options = {}) {
  return sessions.sessionOpen({ cwd: await folder(), model: 'rehearsal', ...options })
}

/** Attaches, records the events, and waits for those that a test needs. */
export async function record(sessions, id, options = {}) {
  const events = []
  const news = new EventEmitter().setMaxListeners(0)
  let end
  const callback = (event) => {
    events.push(event)
    news.emit(event.body.type)
  }
  const onEnd = (reason) => {
    end = reason
    for (const type of news.eventNames()) news.emit(type)
  }
  const attached = await attach(sessions, id, callback, { ...options, onEnd })
  return {
    ...attached,
    events,
    /** Returns an event of this type, after skipping the first `skip` of them. */
    async event(type, skip = 0) {
      for (;;) {
        const found = events.filter(({ body }) => body.type === type)[skip]
        if (found) return found
        const lastTypes = () => events.map(({ body }) => body.type).slice(-20).join(' ')
        if (end) throw new Error(`the stream has ended (${end.reason}) before ${type}; last events: ${lastTypes()}`)
        await once(news, type, { signal: AbortSignal.timeout(patience) }).catch(() => {
          throw new Error(`${type} did not arrive; last events: ${lastTypes()}`)
        })
      }
    },
    async end() {
      if (!end) await once(news, 'end')
      return end
    },
  }
}

/** Waits for a condition that has no event. */
export async function until(condition) {
  const deadline = Date.now() + patience
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`still waiting after ${patience} ms: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Returns the error that a promise rejects with or a function throws. */
export async function failure(what) {
  try {
    await (typeof what === 'function' ? what() : what)
  } catch (error) {
    return error
  }
  throw new Error('the call did not fail')
}

/** Runs a JavaScript script in its own process. */
export async function script(text, options = {}) {
  const args = ['--input-type=module', '--expose-gc', '-e', text]
  return run(process.execPath, args, { cwd: root, timeout: patience, ...options })
}

export { existsSync, holdpoint, program, run, Sessions }
