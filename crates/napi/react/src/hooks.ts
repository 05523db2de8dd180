// Hooks that follow a session through its events, without polling.

import type { Event, Snapshot } from 'holdpoint'
import { useEffect, useLayoutEffect, useMemo, useRef, useSyncExternalStore } from 'react'

import { useSessions } from './sessions'
import type { SessionState } from './state'
import { storeOf, type SessionStore } from './store'

/**
 * Returns the state of a session. It is the same object until something in it has changed, and up
 * to date when a component begins to use it. All components that follow a session share one
 * attachment, which ends with the last of them.
 *
 * Until the session is known here, and after each mount by a name until the name is resolved, its
 * status is `idle` and its `model` empty. While the session's daemon is gone, `connection` says so;
 * when the daemon is back, the hook continues after the last event. A closed session has the status
 * `closed` until it is opened again. If the session can't be followed, the hook throws during
 * rendering, for an error boundary; the error's `code` has the reason.
 */
export function useRustSessionState(sessionId: string): SessionState {
  const store = useStore(sessionId)
  return useSyncExternalStore(store.subscribe, store.getState, store.getState)
}

/**
 * Returns the last snapshot of a session, or `null` until the session is known here. The object
 * changes with each fact. Shares the attachment of {@link useRustSessionState}, and throws like it.
 */
export function useSessionSnapshot(sessionId: string): Snapshot | null {
  const store = useStore(sessionId)
  return useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot)
}

/**
 * Calls `take` with every new event of a session, in order. Shares the attachment of
 * {@link useRustSessionState}; use `sessionAttach` for past events and for those that arrive while
 * no component follows the session. Events from the time when the daemon could not be reached
 * arrive when it is back.
 */
export function useSessionEvents(sessionId: string, take: (event: Event) => void): void {
  const store = useStore(sessionId)
  const latest = useRef(take)
  useLayoutEffect(() => {
    latest.current = take
  })
  useEffect(() => {
    // The empty listener keeps the store attached.
    const unsubscribes = [store.follow((event) => latest.current(event)), store.subscribe(() => {})]
    return () => unsubscribes.forEach((unsubscribe) => unsubscribe())
  }, [store])
}

function useStore(sessionId: string): SessionStore {
  const sessions = useSessions()
  return useMemo(() => storeOf(sessions, sessionId), [sessions, sessionId])
}
