// Whose sessions the components below are about.

import * as holdpoint from 'holdpoint'
import { createContext, createElement, useContext, type ReactElement, type ReactNode } from 'react'

const Context = createContext<holdpoint.Sessions>(holdpoint)

/** What a provider is given. */
export interface SessionsProviderProps {
  /** The sessions: what `connect` gives. */
  sessions: holdpoint.Sessions
  /** Whoever is to use them. */
  children?: ReactNode
}

/**
 * Has every hook and component below it use these sessions: those of a daemon, as `connect` gives them. Without a
 * provider, they are those of the engine in this process.
 */
export function SessionsProvider({ sessions, children }: SessionsProviderProps): ReactElement {
  return createElement(Context.Provider, { value: sessions }, children)
}

/** The sessions that are used here. */
export function useSessions(): holdpoint.Sessions {
  return useContext(Context)
}
