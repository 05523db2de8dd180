// How an ask is answered: by keys that count only when there was time to read it, and once.

import type { HoldpointError, InterruptOptions, Snapshot } from '../../index.js'
import { useContext, useLayoutEffect, useRef, useState } from 'react'

import type { Draft } from './draft.js'
import { InnerOf } from './keys.js'
import { shownLine } from './shown.js'

/**
 * Milliseconds from when an ask appeared, or a key was pressed that answers nothing, in which no key answers it: what is typed
 * on is meant for something else.
 */
export const GUARD = 300

/** The answer of an ask that is shown. */
export interface Answering {
  /** Whether a key that answers counts by now. */
  counts: () => boolean
  /** A key was pressed that answers nothing, or did not count. */
  putOff: () => void
  /** Whether an answer is on its way. */
  isSent: () => boolean
  /** Sends the answer. If that fails, keys count again, after the same while. */
  send: (answer: () => Promise<unknown>) => void
  /** Says which words the user is amid, if any. */
  typing: (words: Draft | null) => void
  /** Why the last answer was not taken. */
  trouble: string | null
}

/** The answer of an ask that appears with the component; give that the ask's id as its `key`. */
export function useAnswering(): Answering {
  const quietSince = useRef(Infinity)
  const isSent = useRef(false)
  const around = useContext(InnerOf)
  const [trouble, setTrouble] = useState<string | null>(null)
  const putOff = () => {
    quietSince.current = performance.now()
  }
  useLayoutEffect(() => {
    putOff()
    if (around) Object.assign(around.current, { isDone: false, words: null })
  }, [around])
  const done = (is: boolean) => {
    isSent.current = is
    if (around) around.current.isDone = is
  }
  return {
    trouble,
    typing: (words) => {
      if (around) around.current.words = words
    },
    putOff,
    isSent: () => isSent.current,
    counts: () => !isSent.current && performance.now() - quietSince.current >= GUARD,
    send: (answer) => {
      done(true)
      answer().catch((error: HoldpointError) => {
        // It is no longer open: the event that says so is on its way.
        if (error.code === 'alreadyAnswered' || error.code === 'askClosed' || error.code === 'closed') return
        done(false)
        putOff()
        setTrouble(said(error))
      })
    },
  }
}

/** How an interrupt is sent that ends the turn that is shown, and no later one; or a run that is between two. */
export function theTurn(snapshot: Snapshot | null): InterruptOptions {
  const turn = snapshot?.turn
  return turn == null ? { wait: false } : { turn, wait: false }
}

/** An error in a line. */
export function said(error: Error & { hint?: string }): string {
  return shownLine(error.hint ? `${error.message} (${error.hint})` : error.message)
}
