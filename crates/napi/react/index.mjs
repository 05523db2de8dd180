// The package `holdpoint/react` for `import`. It re-exports the CommonJS instance, so that both
// kinds of modules share providers and attachments.
import react from './dist/index.js'

export const { SessionsProvider, useRustSessionState, useSessionEvents, useSessionSnapshot, useSessions } = react
