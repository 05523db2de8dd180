// A session in a terminal: opened in this process, or a daemon's that is attached to.
//
//   node dist/main.js [--model MODEL] [PROMPT]
//   node dist/main.js --attach SESSION [--state-dir DIR]

import { parseArgs } from 'node:util'

import * as holdpoint from 'holdpoint'
import { SessionsProvider } from 'holdpoint/react'
import { render } from 'ink'

import { App } from './app.js'

const { values, positionals } = parseArgs({
  options: { attach: { type: 'string' }, model: { type: 'string' }, 'state-dir': { type: 'string' } },
  allowPositionals: true,
})
const { attach, model, 'state-dir': stateDir } = values

const sessions: holdpoint.Sessions = attach ? await holdpoint.connect({ ...(stateDir && { stateDir }) }) : holdpoint
const id = attach ? await sessions.sessionFind(attach) : await sessions.sessionOpen({ ...(model && { model }) })

const { waitUntilExit } = render(
  <SessionsProvider sessions={sessions}>
    <App sessionId={id} {...(positionals.length > 0 && { prompt: positionals.join(' ') })} />
  </SessionsProvider>,
  { exitOnCtrlC: false },
)
await waitUntilExit()

// What was opened here ends here; a daemon's session goes on.
if (!attach) await sessions.sessionClose(id)
process.exit()
