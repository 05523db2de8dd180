// Benchmark of the Node.js package: `npm run bench [-- PART_OF_A_NAME…]` builds the release addon
// and prints each figure with its bound. A missed bound fails nothing, because the figures mean
// something only on an idle machine.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'

import { sessionAttach, sessionClose, sessionDetach, sessionOpen, sessionPauseConfirm, sessionPrompt, start } from '../index.mjs'
import native from '../native.js'
import { percentile, Table } from './table.mjs'

const ROUNDS = 200

start({ config: '[limits]\nmax_sessions = 2000' })
const cwd = await mkdtemp(path.join(tmpdir(), 'hp-'))
const open = () => sessionOpen({ cwd, model: 'rehearsal' })
/** Milliseconds, on the clock of the events' times. */
const now = () => performance.timeOrigin + performance.now()

async function firstEvent(table) {
  const id = await open()
  const taken = []
  for (let round = 0; round < ROUNDS; round++) {
    let since
    let first
    const seen = new Promise((resolve) => (first = resolve))
    const { attachment } = await sessionAttach(id, () => since && first(now() - since), { limit: 0, keepAlive: true })
    since = now()
    await sessionPrompt(id, 'say hello')
    taken.push(await seen)
    await sessionDetach(id, attachment)
  }
  await sessionClose(id)
  table.figure('prompt → first event in JavaScript, p50', percentile(taken, 0.5), 2)
}

async function pause(table) {
  const id = await open()
  const taken = []
  let raised
  const { attachment } = await sessionAttach(id, (event) => event.body.type === 'askRaised' && raised(event), {
    limit: 0,
    keepAlive: true,
  })
  for (let round = 0; round < ROUNDS; round++) {
    const seen = new Promise((resolve) => (raised = resolve))
    const at = seen.then(now)
    await sessionPrompt(id, 'shell: touch made')
    const event = await seen
    // The event's time is cut to whole milliseconds: 0.5 ms is the average error.
    taken.push((await at) - event.at - 0.5)
    await sessionPauseConfirm(id, false, { askId: event.body.ask.id })
  }
  await sessionDetach(id, attachment)
  await sessionClose(id)
  table.figure('pause raised → callback, p50', percentile(taken, 0.5), 1)
}

async function manyEvents(table) {
  const id = await open()
  const delay = monitorEventLoopDelay({ resolution: 1 })
  let count = 0
  let first
  const over = new Promise((resolve) => {
    const callback = ({ body }) => {
      count++
      if (body.type === 'thought') first ??= now()
      if (body.type === 'stepFinished') resolve(now())
    }
    sessionAttach(id, callback, { keepAlive: true })
  })
  delay.enable()
  // Alternating thoughts and texts are never joined on the way.
  await sessionPrompt(id, 'think a\nsay b\n'.repeat(50_000))
  const last = await over
  delay.disable()
  if (count < 100_000) throw new Error(`only ${count} events arrived`)
  await sessionClose(id)
  table.figure('100,000 events, from the first to the last', last - first, 1_000)
  table.figure('event loop delay meanwhile, p99', delay.percentile(99) / 1e6, 20)
}

async function manySessions(table) {
  await sessionClose(await open())
  const since = now()
  const ids = await Promise.all(Array.from({ length: 1_000 }, open))
  const taken = now() - since
  await Promise.all(ids.map((id) => sessionClose(id)))
  table.figure('1,000 sessions opened', taken, 100)
}

console.log(`the Node.js package, Node ${process.versions.node}${native.Panics ? ' (test build)' : ''}`)
const table = new Table(process.argv.slice(2))
const groups = { 'first event': firstEvent, pause, 'many events': manyEvents, 'many sessions': manySessions }
for (const [group, measure] of Object.entries(groups)) if (table.wants(group)) await measure(table)
await rm(cwd, { recursive: true, force: true })
