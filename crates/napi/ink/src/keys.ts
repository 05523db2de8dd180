// Single key presses from Ink's inputs. Keys that Ink emits in one input are separated, and a paste
// stays in one piece. Every input of the terminal is a press, because any of them shows that the
// user is busy with something other than an ask.

import type { AskForm } from '../../index.mjs'
import { useInput, useStdin, useStdout, type Key } from 'ink'
import { createContext, useContext, useEffect, useLayoutEffect, useRef, type RefObject } from 'react'

import { ControlStrings } from './control-strings.js'
import { keepReadable } from './readable.js'

/** A key, or another input of the terminal. */
export interface Press {
  /** `enter`, `esc`, `left`, `ctrl+x` …, the character itself, `paste`, or `unknown`. */
  readonly name: string
  /** Text that the key types; absent if it types none. */
  readonly text?: string
}

/** Any other input: a key with Alt, a mouse event or a report of the terminal. */
export const UNKNOWN: Press = { name: 'unknown' }

/** Handles a key. For an ask, returns whether the key had an effect. */
export type PressHandler = (press: Press) => boolean | void

const KEY_NAMES: readonly (readonly [keyof Key, string])[] = [
  ['escape', 'esc'],
  ['return', 'enter'],
  ['upArrow', 'up'],
  ['downArrow', 'down'],
  ['leftArrow', 'left'],
  ['rightArrow', 'right'],
  ['home', 'home'],
  ['end', 'end'],
  ['pageUp', 'pageup'],
  ['pageDown', 'pagedown'],
  ['tab', 'tab'],
  ['backspace', 'backspace'],
  // Ink calls the key Delete if the terminal sends the usual code of Backspace.
  ['delete', 'backspace'],
]

const CONTROL_NAMES: Record<string, string> = { '\r': 'enter', '\n': 'ctrl+j', '\t': 'tab', '\b': 'backspace', '\u007f': 'backspace' }

/**
 * Enter with Shift, Ctrl or Alt, as xterm sends it with `modifyOtherKeys`. Ink does not know it.
 */
const MODIFIED_ENTER = /^\u001b\[27;\d+;13~$/

/** Yields the keys of an input. `sequence` is the terminal's sequence that Ink read it from. */
function* pressesOfInput(input: string, key: Key, sequence: string): Generator<Press> {
  const named = KEY_NAMES.find(([flag]) => key[flag])
  if (MODIFIED_ENTER.test(sequence)) yield { name: 'ctrl+j' }
  else if (named) yield { name: nameOf(named[1], key, sequence) }
  else if (key.ctrl) yield { name: `ctrl+${input}` }
  // Ink passes on an unknown sequence without its escape, as if it were text.
  else if (input === '' || key.meta || key.super || key.hyper || sequence === `\u001b${input}`) yield UNKNOWN
  else yield* pressesOfText(input)
}

/** Yields the keys of a text, one at a time. */
function* pressesOfText(text: string): Generator<Press> {
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    // CR LF is one segment, but two keys.
    for (const part of /\p{Cc}/u.test(segment) ? segment : [segment]) yield pressOf(part)
  }
}

function nameOf(name: string, key: Key, sequence: string): string {
  if (name === 'enter' && (key.meta || key.shift || key.ctrl)) return 'ctrl+j'
  if (name === 'tab' && key.shift) return 'backtab'
  return key.delete && sequence.startsWith('\u001b[3') ? 'delete' : name
}

function pressOf(part: string): Press {
  if (!/^\p{Cc}/u.test(part)) return { name: part, text: part }
  const code = part.charCodeAt(0)
  return { name: CONTROL_NAMES[part] ?? (code < 32 ? `ctrl+${String.fromCharCode(code + 96)}` : UNKNOWN.name) }
}

/** The sequences around pasted text, and those that turn them on and off. */
const PASTE = { begin: '[200~', end: '[201~', on: '\u001b[?2004h', off: '\u001b[?2004l' }

/**
 * Milliseconds within which input after the end of a paste still belongs to the paste. No user
 * types so fast, and the pasted text may contain the end sequence.
 */
const PASTE_GAP_MS = 5

/**
 * The state that `InputTransition`, which reads the terminal, shares with the component of the ask
 * that it shows.
 */
export interface SharedInput {
  /** Takes the keys while an ask is shown. */
  press: PressHandler | null
  /** Forms of shown asks, by the ask's id, until an event closes the ask. */
  readonly forms: Map<string, AskForm>
  /** Ids of the asks that this user has answered, unless the answer was refused. */
  readonly answered: Set<string>
  /** Turn that this user interrupted last, unless the interrupt failed. */
  interrupted: number | null
}

/** Context with the shared state of `InputTransition`; `null` outside of it. */
export const SharedInputContext = createContext<RefObject<SharedInput> | null>(null)

/** Takes keys while active: from `InputTransition` if inside it, else from the terminal. */
export function useKeys(take: PressHandler, isActive = true): void {
  const sharedRef = useContext(SharedInputContext)
  const latest = useRef(take)
  const pasted = useRef<string | null>(null)
  /** Timer that runs from the end sequence of a paste until the paste is over. */
  const pasteTimer = useRef<ReturnType<typeof setTimeout> | null>(null)
  /** Sequence of the terminal that Ink has read last. */
  const sequence = useRef('')
  const controlStrings = useRef(new ControlStrings())
  const { stdout } = useStdout()
  const { internal_eventEmitter: inputs } = useStdin()
  // Each of several keys in one input must see the effects of the one before.
  useLayoutEffect(() => {
    latest.current = take
  })
  useLayoutEffect(() => {
    if (!sharedRef || !isActive) return
    const handler: PressHandler = (press) => latest.current(press)
    const shared = sharedRef.current
    shared.press = handler
    return () => {
      if (shared.press === handler) shared.press = null
    }
  }, [sharedRef, isActive])

  const readsTerminal = isActive && sharedRef === null
  useEffect(() => {
    if (!readsTerminal) return
    stdout.write(PASTE.on)
    const recordSequence = (input: string) => {
      sequence.current = input
    }
    if (inputs) keepReadable(inputs)
    inputs?.prependListener('input', recordSequence)
    return () => {
      inputs?.off('input', recordSequence)
      if (pasteTimer.current) clearTimeout(pasteTimer.current)
      pasted.current = pasteTimer.current = null
      stdout.write(PASTE.off)
    }
  }, [readsTerminal, stdout, inputs])
  const restartPasteTimer = () => {
    if (pasteTimer.current) clearTimeout(pasteTimer.current)
    pasteTimer.current = setTimeout(() => {
      const text = pasted.current
      pasted.current = pasteTimer.current = null
      if (text !== null) latest.current({ name: 'paste', text: text.replace(/\r\n?/g, '\n') })
    }, PASTE_GAP_MS)
  }
  useInput(
    (input, key) => {
      const isPasting = pasted.current !== null && !pasteTimer.current
      // The keys after a reply of the terminal; `null` if the input belongs to none.
      const afterReply = isPasting ? null : controlStrings.current.take(sequence.current, performance.now())
      // Input this soon after the end of a paste still belongs to it.
      if (pasted.current !== null && pasteTimer.current) {
        if (afterReply !== null) pasted.current += afterReply
        else if (input !== PASTE.begin && input !== PASTE.end && !key.ctrl) pasted.current += input
        restartPasteTimer()
        return
      }
      if (afterReply !== null) {
        for (const press of [UNKNOWN, ...pressesOfText(afterReply)]) latest.current(press)
        return
      }
      // The end sequence of a paste may get lost. Ctrl+C ends the paste then.
      if (key.ctrl && input === 'c') pasted.current = null
      if (input === PASTE.begin) pasted.current = ''
      else if (input === PASTE.end) {
        if (pasted.current !== null) restartPasteTimer()
      } else if (pasted.current !== null) pasted.current += input
      else for (const press of pressesOfInput(input, key, sequence.current)) latest.current(press)
    },
    { isActive: readsTerminal },
  )
}
