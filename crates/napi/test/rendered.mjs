// What the tests of components share: a component on a screen in memory, keys, and ways to wait for what it shows.
import { afterEach, mock } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'

import { render } from 'ink-testing-library'
import { createElement as h } from 'react'

import { SessionsProvider } from 'holdpoint/react'

import { open, patience, record } from './support.mjs'

/** Milliseconds in which a key does not answer what has just appeared. */
const GUARD = 300
/** Milliseconds in which a second A does not approve always. */
const ALWAYS_GUARD = 700
/** Milliseconds after which what follows a paste is surely typed. */
const TOGETHER = 20

export const keys = {
  enter: '\r',
  esc: '\u001b',
  left: '\u001b[D',
  right: '\u001b[C',
  up: '\u001b[A',
  home: '\u001b[H',
  end: '\u001b[F',
  tab: '\t',
  backtab: '\u001b[Z',
  backspace: '\u007f',
  delete: '\u001b[3~',
  /** Shift+Enter, as xterm sends it with `modifyOtherKeys`. */
  shiftEnter: '\u001b[27;2;13~',
  /** Replies of the terminal that are control strings: OSC 4, 10, 11 and 52, DCS, APC, PM and SOS. */
  replies: [
    '\u001b]4;1;rgb:cd00/0000/0000\u001b\\', '\u001b]10;rgb:ffff/ffff/ffff\u0007', '\u001b]11;rgb:0/0/0\u001b\\',
    '\u001b]52;c;eQ==\u0007', '\u001bP>|xterm(390)\u001b\\', '\u001b_Gi=1;OK\u0007y\u001b\\', '\u001b^yes\u001b\\', '\u001bXyes\u001b\\',
  ],
  /** Inputs that mean nothing: Alt with a key, reports of the focus and the mouse, keys without a name (Ctrl+F1 is one to Ink). */
  unknown: ['\u001by', '\u001b!', '\u001b[I', '\u001b[<0;10;10M', '\u001b[15~', '\u001bOk', '\u001b[1;5P', '\u001b[9;5~'],
  ctrl: (letter) => String.fromCharCode(letter.charCodeAt(0) - 96),
  pasted: '\u001b[201~',
  paste: (text) => `\u001b[200~${text}${keys.pasted}`,
}

/** Who waits for something, looked at whenever it may have come. */
export function waiters(instead) {
  const waiting = new Set()
  return {
    look: () => [...waiting].forEach((look) => look()),
    until: (found) =>
      new Promise((resolve, reject) => {
        const settle = (how, value) => {
          waiting.delete(look)
          clearTimeout(late)
          how(value)
        }
        const look = () => {
          const value = found()
          if (value) settle(resolve, value)
        }
        const late = setTimeout(() => settle(reject, new Error(`it does not come; instead: ${instead()}`)), patience)
        waiting.add(look)
        look()
      }),
  }
}

/** The time of the components, in whole milliseconds: it passes only where a test lets it. */
let now = Math.ceil(performance.now())
mock.method(performance, 'now', () => now)

/** Resolves when what has just been drawn or read has had its effects: React runs them behind the drawing. */
const effects = () => new Promise((had) => setImmediate(() => setImmediate(had)))

/** What is undone after each test. */
const undoes = []

afterEach(async () => {
  for (const undo of undoes.splice(0).reverse()) await undo()
})

/** Opens a session that is closed after the test. */
export async function opened(sessions, options) {
  const id = await open(sessions, options)
  undoes.push(() => sessions.sessionClose(id).catch(() => {}))
  return id
}

/** Shows a component, with these sessions, on a screen of so many columns. */
export function show(component, { sessions, columns = 100 } = {}) {
  const tree = (shown) => (sessions ? h(SessionsProvider, { sessions }, shown) : shown)
  const { look, until } = waiters(() => text())
  const screen = render(tree(h(Nothing)))
  const { stdin, stdout } = screen
  Object.defineProperty(stdout, 'columns', { value: columns, configurable: true })
  const write = stdout.write
  stdout.write = (frame) => {
    // Orders to the terminal are no frames.
    if (/^(\u001b\[[?\d;]*[a-zA-Z])+$/.test(frame)) return stdout.orders.push(frame)
    write(frame)
    look()
  }
  stdout.orders = []
  undoes.push(() => screen.unmount())
  screen.rerender(tree(component))
  const text = () => stdout.lastFrame() ?? ''
  return {
    text,
    orders: stdout.orders,
    frames: stdout.frames,
    unmount: screen.unmount,
    rerender: (shown) => screen.rerender(tree(shown)),
    /** Presses a key; resolves when it has been read. */
    async press(...pressed) {
      for (const key of pressed) {
        stdin.write(key)
        // A lone escape is known for one only when nothing follows.
        await effects()
        // What follows a paste at once is of it.
        if (key.endsWith(keys.pasted)) await delay(TOGETHER)
      }
    },
    resize(width) {
      Object.defineProperty(stdout, 'columns', { value: width, configurable: true })
      stdout.emit('resize')
    },
    /** Resolves with what is shown when it shows this, and takes keys. */
    shows: async (pattern) => {
      await until(() => (typeof pattern === 'function' ? pattern(text()) : pattern.test(text())))
      const shown = text()
      await effects()
      return shown
    },
    /** Lets so many milliseconds pass. */
    pass: (milliseconds) => (now += milliseconds),
    /** Lets the time pass after which keys answer what is shown, or so many milliseconds less. */
    guard: (less = 0) => (now += GUARD - less),
    /** Lets the time pass after which a second A approves always, or so many milliseconds less. */
    alwaysGuard: (less = 0) => (now += ALWAYS_GUARD - less),
  }
}

function Nothing() {
  return null
}

/** Sessions whose calls are counted, by name. */
export function counting(sessions) {
  const calls = {}
  const counted = new Proxy(sessions, {
    get(target, name) {
      const value = target[name]
      if (typeof value !== 'function') return value
      return (...args) => {
        calls[name] = (calls[name] ?? 0) + 1
        return value.apply(target, args)
      }
    },
  })
  return { sessions: counted, calls }
}

/** Scripts that ask: whether, which, and what. */
export const CONFIRM = 'shell: echo confirmed > made'
export const CHOICE = `call ask_user {"questions": [
  {"id": "colour", "header": "Colour", "question": "Which?", "options": [{"label": "red", "description": "afar"}, {"label": "grey"}]}
]}`
export const WORDS = `call ask_user {"questions": [{"id": "name", "header": "Name", "question": "What?"}]}`

/** A session, what it has done, and a part of it on a screen; and that this is told what happens from now on. */
export async function shownPart(place, Part, { columns, script, props, ...options } = {}) {
  const sessions = await place()
  const id = await opened(sessions, options)
  const seen = await record(sessions, id)
  if (script) await sessions.sessionPrompt(id, script)
  let attached
  const isAttached = new Promise((resolve) => (attached = resolve))
  const followed = new Proxy(sessions, {
    get: (_, name) => {
      const value = sessions[name]
      if (name !== 'sessionAttach') return typeof value === 'function' ? value.bind(sessions) : value
      return (...args) => value.apply(sessions, args).finally(attached)
    },
  })
  const screen = show(h(Part, { sessionId: id, ...props }), { sessions: followed, columns })
  return { sessions, id, seen, screen, isAttached }
}
