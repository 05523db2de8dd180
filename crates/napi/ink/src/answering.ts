// How an ask is answered: by keys that count only when there was time to read it, and once.

import type { HoldpointError, InterruptOptions, Snapshot } from '../../index.js'
import { useEffect, useRef, useState } from 'react'

import { shownLine } from './shown.js'

/** Milliseconds from when an ask appeared in which no key answers it: what was typed was meant for something else. */
const GUARD = 300

/** The answer of an ask that is shown. */
export interface Answering {
  /** Whether a key that answers counts by now. */
  counts: () => boolean
  /** Whether an answer is on its way. */
  isSent: () => boolean
  /** Sends the answer. If that fails, keys count again, after the same while. */
  send: (answer: () => Promise<unknown>) => void
  /** Why the last answer was not taken. */
  trouble: string | null
}

/** The answer of an ask that appears with the component; give that the ask's id as its `key`. */
export function useAnswering(): Answering {
  const appeared = useRef(Infinity)
  const isSent = useRef(false)
  const [trouble, setTrouble] = useState<string | null>(null)
  const appear = () => {
    appeared.current = performance.now()
  }
  useEffect(appear, [])
  return {
    trouble,
    isSent: () => isSent.current,
    counts: () => !isSent.current && performance.now() - appeared.current >= GUARD,
    send: (answer) => {
      isSent.current = true
      answer().catch((error: HoldpointError) => {
        // It is no longer open: the event that says so is on its way.
        if (error.code === 'alreadyAnswered' || error.code === 'askClosed' || error.code === 'closed') return
        isSent.current = false
        appear()
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
