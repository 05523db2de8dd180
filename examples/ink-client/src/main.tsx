// A session in a terminal: opened in this process, or a daemon's that is attached to.
//
//   node dist/main.js [--model MODEL] [PROMPT]
//   node dist/main.js --attach SESSION [--state-dir DIR]

import { parseArgs } from 'node:util'

import * as holdpoint from 'holdpoint'
import { SessionsProvider } from 'holdpoint/react'
import { render } from 'ink'

import { App } from './app.js'
import { Boundary } from './boundary.js'

const { values, positionals } = parseArgs({
  options: { attach: { type: 'string' }, model: { type: 'string' }, 'state-dir': { type: 'string' } },
  allowPositionals: true,
})
const { attach, model, 'state-dir': stateDir } = values

/** What went wrong, and what helps, in a line each. */
function fail(fault: unknown): never {
  const { message, hint } = fault as holdpoint.HoldpointError
  console.error(`error: ${message}${hint ? `\nhint: ${hint}` : ''}`)
  process.exit(1)
}

process.on('uncaughtException', fail)

const sessions: holdpoint.Sessions = attach ? await holdpoint.connect({ ...(stateDir && { stateDir }) }) : holdpoint
const id = attach ? await sessions.sessionFind(attach) : await sessions.sessionOpen({ ...(model && { model }) })

let fault: unknown
const screen = render(
  <SessionsProvider sessions={sessions}>
    <Boundary onFault={(thrown) => { fault = thrown; screen.unmount() }}>
      <App sessionId={id} {...(positionals.length > 0 && { prompt: positionals.join(' ') })} />
    </Boundary>
  </SessionsProvider>,
  { exitOnCtrlC: false },
)
await screen.waitUntilExit()
if (fault) fail(fault)

// What was opened here ends here; a daemon's session goes on.
if (!attach) await sessions.sessionClose(id)
process.exit()
