// Sessions in React: hooks that follow a session, and the provider of the sessions.

export { SessionsProvider, useSessions, type SessionsProviderProps } from './sessions'
export { useRustSessionState, useSessionEvents, useSessionSnapshot } from './hooks'
export type { Connection, QuestionState, SessionState } from './state'
