// Hooks that follow a session: driven by its events, with nothing asked for in between.

import type { Event, Snapshot } from 'holdpoint'
import { useEffect, useLayoutEffect, useMemo, useRef, useSyncExternalStore } from 'react'

import { useSessions } from './sessions'
import type { SessionState } from './state'
import { storeOf, type SessionStore } from './store'

/**
 * A session's state: the same object until something in it has changed, and fresh when a component begins to use it.
 * All who follow a session share one attachment, which ends with the last of them.
 *
 * Of a session that is not known here yet it says `idle`, with an empty `model`, until it is found. While the daemon of a
 * session is gone, `connection` says so; when it is back, the session is followed again from its last event on. A
 * session that was closed is `closed` until it is opened again. Throws in rendering, for an error boundary, if the
 * session can't be followed; its `code` says why.
 */
export function useRustSessionState(sessionId: string): SessionState {
  const store = useStore(sessionId)
  return useSyncExternalStore(store.subscribe, store.getState, store.getState)
}

/**
 * All that a session has last published: another object after each of its facts, `null` while it is not known here yet.
 * Shares the attachment of {@link useRustSessionState}, and throws as that does.
 */
export function useSessionSnapshot(sessionId: string): Snapshot | null {
  const store = useStore(sessionId)
  return useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot)
}

/**
 * Calls `take` with every event of a session that comes from now on, in order. Shares the attachment of
 * {@link useRustSessionState}; what was before, and what is missed while no component looks, `sessionAttach` gives. Events
 * of the time when the daemon could not be reached follow when it is back.
 */
export function useSessionEvents(sessionId: string, take: (event: Event) => void): void {
  const store = useStore(sessionId)
  const latest = useRef(take)
  useLayoutEffect(() => {
    latest.current = take
  })
  useEffect(() => {
    const undo = [store.follow((event) => latest.current(event)), store.subscribe(() => {})]
    return () => undo.forEach((each) => each())
  }, [store])
}

function useStore(sessionId: string): SessionStore {
  const sessions = useSessions()
  return useMemo(() => storeOf(sessions, sessionId), [sessions, sessionId])
}
