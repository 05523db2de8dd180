// The time after an ask: keys that were meant for the ask are swallowed, and a line says how it was
// closed.

import type { AskCloseCause, Event } from '../../index.mjs'
import { AfterAsk, clientOrigin } from '../../index.mjs'
import { useSessionEvents } from '../../react/index.mjs'
import { useLayoutEffect, useState, type RefObject } from 'react'

import type { SharedInput, Press } from './keys.js'
import { shownLine } from './shown.js'

const CAUSES: Record<AskCloseCause, string> = {
  interrupted: 'the turn was interrupted',
  sessionClosed: 'the session was closed',
  callEnded: 'its call ended',
  withdrawn: 'it was withdrawn',
  turnEnded: 'its turn ended',
  shutdown: 'the runtime was stopped',
  restart: 'the runtime was restarted',
  moved: 'the session was moved',
  panicked: 'the session failed',
}

/**
 * After each ask, drops the keys that were meant for it and tells how it was closed. `askId` names
 * the current ask.
 */
export function useAfterAsk(sessionId: string, askId: string | undefined, shared: RefObject<SharedInput>) {
  const [after] = useState(() => new AfterAsk())
  const [notice, setNotice] = useState<string | null>(null)
  useLayoutEffect(() => {
    if (askId === undefined) return
    return () => after.begin(performance.now())
  }, [after, askId])
  useLayoutEffect(() => {
    const { current } = shared
    return () => {
      current.forms.clear()
      current.answered.clear()
      current.interrupted = null
      setNotice(null)
    }
  }, [shared, sessionId])
  useSessionEvents(sessionId, (event) => {
    const line = takeClosingNotice(event, shared.current)
    if (line !== null) setNotice(line)
  })
  return {
    /** Line on how the last ask was closed, if not by this user. */
    notice,
    /** Hides the notice. */
    hide: () => setNotice(null),
    /** Whether a key was meant for the ask that has closed. */
    swallows: ({ name }: Press) => after.swallows(name, performance.now()),
  }
}

/**
 * If the event closes an ask, removes the ask from `shared`. Returns a line on how the ask was
 * closed, or `null` if it was not shown or this user closed it.
 */
function takeClosingNotice({ turn, body }: Event, shared: SharedInput): string | null {
  const { forms, answered, interrupted } = shared
  if (body.type !== 'askAnswered' && body.type !== 'askClosed') return null
  const form = forms.get(body.ask)
  const isAnsweredHere = answered.delete(body.ask)
  forms.delete(body.ask)
  if (!form) return null
  const unsent = form.isBegun ? '; your words were not sent' : ''
  if (body.type === 'askClosed') {
    return turn != null && turn === interrupted ? null : `Ask closed: ${CAUSES[body.cause]}${unsent}`
  }
  const { by } = body
  if (by.type === 'setting') return `Answered by the setting asks = ${by.asks}${unsent}`
  // Another client's answer may have arrived before this user's.
  if (isAnsweredHere && by.pid === process.pid) return null
  return `Answered ${shownLine(clientOrigin(by.name, by.pid ?? undefined))}${unsent}`
}
