// A draft, and pure functions for the changes that keys make to it.

import type { Press } from './keys.js'

/** The text that is being typed, with the position of the cursor in UTF-16 code units. */
export interface Draft {
  readonly text: string
  readonly cursor: number
}

export const EMPTY: Draft = { text: '', cursor: 0 }

/** Creates a draft with the cursor at the end. */
export function draftOf(text: string): Draft {
  return { text, cursor: text.length }
}

/** Returns the draft after a key; the same object if the key has no effect. */
export function edit(draft: Draft, press: Press): Draft {
  const { text, cursor } = draft
  switch (press.name) {
    case 'left':
    case 'ctrl+b':
      return moved(draft, positionBefore(text, cursor))
    case 'right':
    case 'ctrl+f':
      return moved(draft, positionAfter(text, cursor))
    case 'home':
    case 'ctrl+a':
      return moved(draft, lineStart(text, cursor))
    case 'end':
    case 'ctrl+e':
      return moved(draft, lineEnd(text, cursor))
    case 'backspace':
      return without(draft, positionBefore(text, cursor), cursor)
    case 'delete':
    case 'ctrl+d':
      return without(draft, cursor, positionAfter(text, cursor))
    case 'ctrl+w':
      return without(draft, wordStart(text, cursor), cursor)
    case 'ctrl+u':
      return without(draft, lineStart(text, cursor), cursor)
    case 'ctrl+k':
      return without(draft, cursor, lineEnd(text, cursor))
    case 'ctrl+j':
      return inserted(draft, '\n')
    default:
      return press.text === undefined ? draft : inserted(draft, press.text)
  }
}

function moved(draft: Draft, cursor: number): Draft {
  return cursor === draft.cursor ? draft : { ...draft, cursor }
}

function inserted({ text, cursor }: Draft, more: string): Draft {
  return { text: text.slice(0, cursor) + more + text.slice(cursor), cursor: cursor + more.length }
}

function without(draft: Draft, from: number, to: number): Draft {
  if (from === to) return draft
  return { text: draft.text.slice(0, from) + draft.text.slice(to), cursor: from }
}

/** Returns the start of the character that ends at the cursor. */
function positionBefore(text: string, cursor: number): number {
  return cursor === 0 ? 0 : (new Intl.Segmenter().segment(text).containing(cursor - 1)?.index ?? 0)
}

/** Returns the end of the character that starts at the cursor. */
function positionAfter(text: string, cursor: number): number {
  return cursor + (new Intl.Segmenter().segment(text).containing(cursor)?.segment.length ?? 0)
}

/** Returns the start of the word before the cursor. Skips white space between them. */
function wordStart(text: string, cursor: number): number {
  let start = text.slice(0, cursor).trimEnd().length
  while (start > 0 && !/\s/.test(text.charAt(start - 1))) start -= 1
  return start
}

function lineStart(text: string, cursor: number): number {
  // With a negative position, `lastIndexOf` still searches the first character.
  return cursor === 0 ? 0 : text.lastIndexOf('\n', cursor - 1) + 1
}

function lineEnd(text: string, cursor: number): number {
  const end = text.indexOf('\n', cursor)
  return end === -1 ? text.length : end
}
