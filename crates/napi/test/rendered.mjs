// Shared code of the component tests: a screen in memory, keys, and functions that wait for the
// screen.
import { afterEach, mock } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'

import { render } from 'ink-testing-library'
import { createElement as h } from 'react'

import { SessionsProvider } from 'holdpoint/react'

import { open, patience, record } from './support.mjs'

/** Milliseconds after its appearance in which keys do not answer an ask. */
const GUARD = 300
/** Milliseconds in which a second A or D does not answer *always*. */
const ALWAYS_GUARD = 700
/** Milliseconds after which input no longer counts as part of a paste. */
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
  /**
   * Replies of the terminal that are control strings: OSC 4, 10, 11 and 52, DCS, APC, PM and SOS.
   */
  replies: [
    '\u001b]4;1;rgb:cd00/0000/0000\u001b\\', '\u001b]10;rgb:ffff/ffff/ffff\u0007', '\u001b]11;rgb:0/0/0\u001b\\',
    '\u001b]52;c;eQ==\u0007', '\u001bP>|xterm(390)\u001b\\', '\u001b_Gi=1;OK\u0007y\u001b\\', '\u001b^yes\u001b\\', '\u001bXyes\u001b\\',
  ],
  /**
   * Inputs without a meaning: Alt with a key, reports of the focus and the mouse, and keys without
   * a name (Ctrl+F1 has none in Ink).
   */
  unknown: ['\u001by', '\u001b!', '\u001b[I', '\u001b[<0;10;10M', '\u001b[15~', '\u001bOk', '\u001b[1;5P', '\u001b[9;5~'],
  ctrl: (letter) => String.fromCharCode(letter.charCodeAt(0) - 96),
  pasted: '\u001b[201~',
  paste: (text) => `\u001b[200~${text}${keys.pasted}`,
}

/**
 * Returns functions that wait for a condition, and that check all conditions again. `currentState`
 * describes the state for the error.
 */
export function waiters(currentState) {
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
        const late = setTimeout(() => settle(reject, new Error(`timed out; current state: ${currentState()}`)), patience)
        waiting.add(look)
        look()
      }),
  }
}

/** The clock of the components, in whole milliseconds. It advances only when a test says so. */
let now = Math.ceil(performance.now())
mock.method(performance, 'now', () => now)

/**
 * Resolves when the effects of the last drawing or input are over: React runs them after the
 * drawing.
 */
const effects = () => new Promise((had) => setImmediate(() => setImmediate(had)))

/** Functions to call after each test. */
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

/** Shows a component with these sessions, on a screen with this number of columns. */
export function show(component, { sessions, columns = 100 } = {}) {
  const tree = (shown) => (sessions ? h(SessionsProvider, { sessions }, shown) : shown)
  const { look, until } = waiters(() => text())
  const screen = render(tree(h(Nothing)))
  const { stdin, stdout } = screen
  Object.defineProperty(stdout, 'columns', { value: columns, configurable: true })
  const write = stdout.write
  stdout.write = (frame) => {
    // Control sequences for the terminal are not frames.
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
    /** Presses keys. Resolves when they have been read. */
    async press(...pressed) {
      for (const key of pressed) {
        stdin.write(key)
        // A lone escape counts as the key only if no input follows.
        await effects()
        // Input right after a paste would belong to the paste.
        if (key.endsWith(keys.pasted)) await delay(TOGETHER)
      }
    },
    resize(width) {
      Object.defineProperty(stdout, 'columns', { value: width, configurable: true })
      stdout.emit('resize')
    },
    /** Resolves with the text on the screen once it matches, and the screen takes keys. */
    shows: async (pattern) => {
      await until(() => (typeof pattern === 'function' ? pattern(text()) : pattern.test(text())))
      const shown = text()
      await effects()
      return shown
    },
    /** Advances the clock by this number of milliseconds. */
    pass: (milliseconds) => (now += milliseconds),
    /** Advances the clock to the time when keys answer, or by `less` milliseconds less. */
    guard: (less = 0) => (now += GUARD - less),
    /**
     * Advances the clock to the time when a second A or D answers *always*, or by `less` milliseconds
     * less.
     */
    alwaysGuard: (less = 0) => (now += ALWAYS_GUARD - less),
  }
}

function Nothing() {
  return null
}

/** Wraps sessions, and counts their calls by name. */
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

/** Scripts that raise a Confirm, a question with options, and a question without. */
export const CONFIRM = 'shell: echo confirmed > made'
export const CHOICE = `call ask_user {"questions": [
  {"id": "colour", "header": "Colour", "question": "Which?", "options": [{"label": "red", "description": "afar"}, {"label": "grey"}]}
]}`
export const WORDS = `call ask_user {"questions": [{"id": "name", "header": "Name", "question": "What?"}]}`

/**
 * Shows a component for a new session. Also returns a recorder of its events, and a promise that
 * the component is attached.
 */
export async function shownPart(getSessions, Part, { columns, script, props, ...options } = {}) {
  const sessions = await getSessions()
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
