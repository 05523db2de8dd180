// Keys, one at a time: what Ink reads in one go is taken apart, and what is pasted stays in one piece.

import { useInput, useStdout, type Key } from 'ink'
import { createContext, useContext, useEffect, useLayoutEffect, useRef, type RefObject } from 'react'

import type { Draft } from './draft.js'

/** A key: what it is called, and the text that it types, if it types any. */
export interface Press {
  /** `enter`, `esc`, `left`, `ctrl+x` …, `paste`, or the character itself. */
  readonly name: string
  /** What it adds to what is being typed. */
  readonly text?: string
}

/** Takes a key. */
export type Presses = (press: Press) => void

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

/** The keys of what Ink has read. */
function* pressed(input: string, key: Key): Generator<Press> {
  const named = NAMED.find(([flag]) => key[flag])
  if (named) yield { name: key.meta && named[1] === 'enter' ? 'ctrl+j' : named[1] }
  else if (key.ctrl) yield { name: `ctrl+${input}` }
  else if (!key.meta) {
    for (const { segment } of new Intl.Segmenter().segment(input)) {
      for (const part of /\p{Cc}/u.test(segment) ? segment : [segment]) yield typed(part)
    }
  }
}

function typed(part: string): Press {
  if (!/^\p{Cc}/u.test(part)) return { name: part, text: part }
  const code = part.charCodeAt(0)
  return { name: CONTROLS[part] ?? (code < 32 ? `ctrl+${String.fromCharCode(code + 96)}` : 'unknown') }
}

/** What a terminal puts around what is pasted, and what has it do so. */
const PASTE = { begin: '[200~', end: '[201~', on: '\u001b[?2004h', off: '\u001b[?2004l' }

/**
 * Milliseconds in which what follows the end of a paste is of the paste: nobody types so fast, and what stands for its end may
 * stand in it.
 */
const TOGETHER = 5

/** What stands in another part, as that one knows it. */
export interface Inner {
  /** Takes the keys, if anything does. */
  press: Presses | null
  /** It is an ask that the user has answered, or whose turn they have interrupted. */
  isDone: boolean
  /** The words that they are typing for it. */
  words: Draft | null
}

/** What stands in this part, for the part around it. */
export const InnerOf = createContext<RefObject<Inner> | null>(null)

/** Takes keys while active: from the part around it, if that hands them on, else from the terminal. */
export function useKeys(take: Presses, isActive = true): void {
  const around = useContext(InnerOf)
  const latest = useRef(take)
  const pasted = useRef<string | null>(null)
  /** Runs from the end of a paste until it is over. */
  const ending = useRef<ReturnType<typeof setTimeout> | null>(null)
  const { stdout } = useStdout()
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
    return () => {
      if (ending.current) clearTimeout(ending.current)
      pasted.current = ending.current = null
      stdout.write(PASTE.off)
    }
  }, [reads, stdout])
  const ends = () => {
    if (ending.current) clearTimeout(ending.current)
    ending.current = setTimeout(() => {
      const text = pasted.current
      pasted.current = ending.current = null
      if (text) latest.current({ name: 'paste', text: text.replace(/\r\n?/g, '\n') })
    }, TOGETHER)
  }
  useInput(
    (input, key) => {
      if (pasted.current !== null && ending.current) {
        if (input !== PASTE.begin && input !== PASTE.end && !key.ctrl) pasted.current += input
        ends()
        return
      }
      // The end of what was pasted may have been lost, and this gets out of it.
      if (key.ctrl && input === 'c') pasted.current = null
      if (input === PASTE.begin) pasted.current = ''
      else if (input === PASTE.end) {
        if (pasted.current !== null) ends()
      } else if (pasted.current !== null) pasted.current += input
      else for (const press of pressed(input, key)) latest.current(press)
    },
    { isActive: reads },
  )
}
