export { SessionsProvider, useRustSessionState, useSessionEvents, useSessions, useSessionSnapshot } from './dist/index.js'
export type { Connection, QuestionState, SessionsProviderProps, SessionState } from './dist/index.js'
