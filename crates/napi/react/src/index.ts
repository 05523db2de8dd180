// Sessions in React: a hook that follows one, and where the sessions are found that it follows.

export { SessionsProvider, useSessions, type SessionsProviderProps } from './sessions'
export { useRustSessionState, useSessionEvents, useSessionSnapshot } from './hooks'
export type { Connection, QuestionState, SessionState } from './state'
