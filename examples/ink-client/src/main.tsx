// A session in a terminal: opened in this process, or attached in a daemon.
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

/** Prints an error and its hint, and exits. */
function fail(error: unknown): never {
  const { message, hint } = error as holdpoint.HoldpointError
  console.error(`error: ${message}${hint ? `\nhint: ${hint}` : ''}`)
  process.exit(1)
}

process.on('uncaughtException', fail)

const sessions: holdpoint.Sessions = attach ? await holdpoint.connect({ ...(stateDir && { stateDir }) }) : holdpoint
const id = attach ? await sessions.sessionFind(attach) : await sessions.sessionOpen({ ...(model && { model }) })

let failure: unknown
const screen = render(
  <SessionsProvider sessions={sessions}>
    <Boundary onError={(error) => { failure = error; screen.unmount() }}>
      <App sessionId={id} {...(positionals.length > 0 && { prompt: positionals.join(' ') })} />
    </Boundary>
  </SessionsProvider>,
  { exitOnCtrlC: false },
)
await screen.waitUntilExit()
if (failure) fail(failure)

// A session of this process ends with it; a daemon's session continues.
if (!attach) await sessions.sessionClose(id)
process.exit()
