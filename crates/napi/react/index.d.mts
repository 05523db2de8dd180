export { SessionsProvider, useRustSessionState, useSessionEvents, useSessions, useSessionSnapshot } from './dist/index.js'
export type { QuestionState, SessionsProviderProps, SessionState } from './dist/index.js'
