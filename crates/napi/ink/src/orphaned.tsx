// What was meant for an ask that somebody else has closed: keys that go nowhere, and words that stay until they are left.

import { Text } from 'ink'
import { useLayoutEffect, useRef, type ReactElement, type RefObject } from 'react'

import { GUARD } from './answering.js'
import { DraftText } from './draft-text.js'
import type { Draft } from './draft.js'
import type { Inner } from './keys.js'
import { useLatest, type Latest } from './latest.js'

/** Keys and words that are still meant for what is asked no longer. */
export interface OfNobody {
  /** The words that were being typed for it. */
  words: Latest<Draft | null>
  /** The words are left. */
  leave: () => void
  /** Whether a key that is pressed now was meant for it: until, for a while, none is. */
  takes: () => boolean
}

/** What comes of keys and words when the ask of this id is closed by somebody else. */
export function useOrphaned(ask: string | undefined, inner: RefObject<Inner>): OfNobody {
  const [words, setWords] = useLatest<Draft | null>(null)
  const since = useRef(-Infinity)
  const begin = () => {
    since.current = performance.now()
  }
  useLayoutEffect(() => {
    if (ask === undefined) return
    // Before what comes in its place is there.
    return () => {
      const { isDone, words: amid } = inner.current
      if (isDone) return
      begin()
      if (amid) setWords(amid)
    }
  }, [ask])
  return {
    words,
    leave: () => {
      setWords(null)
      begin()
    },
    takes: () => {
      const takes = performance.now() - since.current < GUARD
      if (takes) begin()
      return takes
    },
  }
}

/** The words, and what becomes of them. */
export function Orphaned({ words }: { words: Draft }): ReactElement {
  return (
    <>
      <DraftText draft={words} />
      <Text dimColor>It is no longer asked: nothing is sent (Esc to leave)</Text>
    </>
  )
}
