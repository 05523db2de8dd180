// The same, for `import`: one instance of it, so that both kinds of modules share providers and attachments.
import react from './dist/index.js'

export const { SessionsProvider, useRustSessionState, useSessionEvents, useSessionSnapshot, useSessions } = react
