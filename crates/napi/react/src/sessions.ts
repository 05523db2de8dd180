// The sessions that hooks and components use.

import * as holdpoint from 'holdpoint'
import { createContext, createElement, useContext, type ReactElement, type ReactNode } from 'react'

const Context = createContext<holdpoint.Sessions>(holdpoint)

/** The props of `SessionsProvider`. */
export interface SessionsProviderProps {
  /** Sessions for the children, as `connect` returns them. */
  sessions: holdpoint.Sessions
  /** Components that use these sessions. */
  children?: ReactNode
}

/**
 * Makes all hooks and components below it use these sessions, which `connect` returns for a daemon.
 * Without a provider they use the sessions of the engine in this process.
 */
export function SessionsProvider({ sessions, children }: SessionsProviderProps): ReactElement {
  return createElement(Context.Provider, { value: sessions }, children)
}

/** Returns the sessions of the nearest provider. */
export function useSessions(): holdpoint.Sessions {
  return useContext(Context)
}
