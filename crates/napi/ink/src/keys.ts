// Keys, one at a time: what Ink reads in one go is taken apart, and what is pasted stays in one
// piece. Every input of the terminal is a press, since any of them means that the user is busy with
// something else than an ask.

import type { AskForm } from '../../index.mjs'
import { useInput, useStdin, useStdout, type Key } from 'ink'
import { createContext, useContext, useEffect, useLayoutEffect, useRef, type RefObject } from 'react'

import { ControlStrings } from './control-strings.js'
import { keepReadable } from './readable.js'

/** A key, or another input of the terminal. */
export interface Press {
  /** `enter`, `esc`, `left`, `ctrl+x` …, the character itself, `paste`, or `unknown`. */
  readonly name: string
  /** The text that it types, if it types any. */
  readonly text?: string
}

/** An input that is none of the named keys: of Alt, of a mouse, a report of the terminal. */
export const UNKNOWN: Press = { name: 'unknown' }

/** Takes a key. Returns whether it had an effect, for the part around. */
export type Presses = (press: Press) => boolean | void

const NAMED: readonly (readonly [keyof Key, string])[] = [
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
  // What most terminals send for Backspace is what Ink calls Delete.
  ['backspace', 'backspace'],
  ['delete', 'backspace'],
]

const CONTROLS: Record<string, string> = { '\r': 'enter', '\n': 'ctrl+j', '\t': 'tab', '\b': 'backspace', '\u007f': 'backspace' }

/** Enter with Shift, Ctrl or Alt, as xterm sends it with `modifyOtherKeys`: unknown to Ink. */
const MODIFIED_ENTER = /^\u001b\[27;\d+;13~$/

/** The keys of an input, and the sequence of the terminal that Ink has read it from. */
function* pressed(input: string, key: Key, sequence: string): Generator<Press> {
  const named = NAMED.find(([flag]) => key[flag])
  if (MODIFIED_ENTER.test(sequence)) yield { name: 'ctrl+j' }
  else if (named) yield { name: nameOf(named[1], key, sequence) }
  else if (key.ctrl) yield { name: `ctrl+${input}` }
  // A sequence that Ink does not know comes without its escape, as if it were text.
  else if (input === '' || key.meta || key.super || key.hyper || sequence === `\u001b${input}`) yield UNKNOWN
  else yield* typedAll(input)
}

/** The keys of a text, one at a time. */
function* typedAll(text: string): Generator<Press> {
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    for (const part of /\p{Cc}/u.test(segment) ? segment : [segment]) yield typed(part)
  }
}

function nameOf(name: string, key: Key, sequence: string): string {
  if (name === 'enter' && (key.meta || key.shift || key.ctrl)) return 'ctrl+j'
  if (name === 'tab' && key.shift) return 'backtab'
  return key.delete && sequence.startsWith('\u001b[3') ? 'delete' : name
}

function typed(part: string): Press {
  if (!/^\p{Cc}/u.test(part)) return { name: part, text: part }
  const code = part.charCodeAt(0)
  return { name: CONTROLS[part] ?? (code < 32 ? `ctrl+${String.fromCharCode(code + 96)}` : UNKNOWN.name) }
}

/** What a terminal puts around what is pasted, and what has it do so. */
const PASTE = { begin: '[200~', end: '[201~', on: '\u001b[?2004h', off: '\u001b[?2004l' }

/**
 * Milliseconds in which what follows the end of a paste is of the paste: nobody types so fast, and what stands for its end may
 * stand in it.
 */
const TOGETHER = 5

/** A part inside another one, as the outer one knows it. */
export interface Inner {
  /** Takes the keys while an ask is shown. */
  press: Presses | null
  /** The forms of asks that were shown, by the ask's id, until an event says that the ask is closed. */
  readonly forms: Map<string, AskForm>
  /** The ids of asks that this user has answered, unless the answer was refused. */
  readonly answered: Set<string>
  /** The turn that this user has interrupted last, unless the interrupt failed. */
  interrupted: number | null
}

/** The link between a part and the part around it. */
export const InnerOf = createContext<RefObject<Inner> | null>(null)

/** Takes keys while active: from the part around it, if that hands them on, else from the terminal. */
export function useKeys(take: Presses, isActive = true): void {
  const around = useContext(InnerOf)
  const latest = useRef(take)
  const pasted = useRef<string | null>(null)
  /** Runs from the end of a paste until it is over. */
  const ending = useRef<ReturnType<typeof setTimeout> | null>(null)
  /** The sequence of the terminal that Ink has read last. */
  const sequence = useRef('')
  const strings = useRef(new ControlStrings())
  const { stdout } = useStdout()
  const { internal_eventEmitter: inputs } = useStdin()
  // Keys that come in one go find whatever the one before has changed.
  useLayoutEffect(() => {
    latest.current = take
  })
  useLayoutEffect(() => {
    if (!around || !isActive) return
    const own: Presses = (press) => latest.current(press)
    const inner = around.current
    inner.press = own
    return () => {
      if (inner.press === own) inner.press = null
    }
  }, [around, isActive])

  const reads = isActive && around === null
  useEffect(() => {
    if (!reads) return
    stdout.write(PASTE.on)
    const read = (input: string) => {
      sequence.current = input
    }
    if (inputs) keepReadable(inputs)
    inputs?.prependListener('input', read)
    return () => {
      inputs?.off('input', read)
      if (ending.current) clearTimeout(ending.current)
      pasted.current = ending.current = null
      stdout.write(PASTE.off)
    }
  }, [reads, stdout, inputs])
  const ends = () => {
    if (ending.current) clearTimeout(ending.current)
    ending.current = setTimeout(() => {
      const text = pasted.current
      pasted.current = ending.current = null
      if (text !== null) latest.current({ name: 'paste', text: text.replace(/\r\n?/g, '\n') })
    }, TOGETHER)
  }
  useInput(
    (input, key) => {
      const isPasting = pasted.current !== null && !ending.current
      const rest = isPasting ? null : strings.current.take(sequence.current, performance.now())
      if (pasted.current !== null && ending.current) {
        if (rest !== null) pasted.current += rest
        else if (input !== PASTE.begin && input !== PASTE.end && !key.ctrl) pasted.current += input
        ends()
        return
      }
      if (rest !== null) {
        for (const press of [UNKNOWN, ...typedAll(rest)]) latest.current(press)
        return
      }
      // The end of what was pasted may have been lost, and this gets out of it.
      if (key.ctrl && input === 'c') pasted.current = null
      if (input === PASTE.begin) pasted.current = ''
      else if (input === PASTE.end) {
        if (pasted.current !== null) ends()
      } else if (pasted.current !== null) pasted.current += input
      else for (const press of pressed(input, key, sequence.current)) latest.current(press)
    },
    { isActive: reads },
  )
}
