// The figures of the Node.js package, beside what they may be at most: `npm run build && npm run bench`.
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'

import { sessionAttach, sessionClose, sessionDetach, sessionOpen, sessionPauseConfirm, sessionPrompt, start } from '../index.mjs'

start({ config: '[limits]\nmax_sessions = 2000' })
const cwd = await mkdtemp(path.join(tmpdir(), 'hp-'))
const open = () => sessionOpen({ cwd, model: 'rehearsal' })
const now = () => performance.timeOrigin + performance.now()

function percentile(values, part) {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
}

function tell(what, milliseconds, most) {
  const shown = milliseconds < 10 ? milliseconds.toFixed(2) : milliseconds.toFixed(0)
  console.log(`| ${what} | ${shown} ms | ${most} ms | ${milliseconds > most ? '**over**' : ''} |`)
}

/** Prompts until an event of this type has come, and gives it with the moment it came at. */
function promptUntil(id, prompt, type, then = () => {}) {
  return new Promise((resolve) => {
    let attached
    const callback = (event) => {
      if (event.body.type !== type) return
      resolve({ event, at: now(), attached })
      then(event)
    }
    sessionAttach(id, callback, { limit: 0, keepAlive: true }).then(async (begun) => {
      attached = begun
      await sessionPrompt(id, prompt)
    })
  })
}

async function firstEvent() {
  const id = await open()
  const taken = []
  for (let round = 0; round < 200; round++) {
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
  tell('prompt → first event in JavaScript, p50', percentile(taken, 0.5), 2)
}

async function pause() {
  const id = await open()
  const taken = []
  for (let round = 0; round < 200; round++) {
    const { event, at, attached } = await promptUntil(id, 'shell: touch made', 'askRaised')
    // It was raised within the millisecond that it tells.
    taken.push(at - event.at - 0.5)
    await sessionPauseConfirm(id, false, { askId: event.body.ask.id })
    await sessionDetach(id, attached.attachment)
  }
  await sessionClose(id)
  tell('pause raised → callback, p50', percentile(taken, 0.5), 1)
}

async function manyEvents() {
  const id = await open()
  const delay = monitorEventLoopDelay({ resolution: 1 })
  let count = 0
  let first
  const over = new Promise((resolve) => {
    sessionAttach(
      id,
      ({ body }) => {
        count++
        if (body.type === 'thought') first ??= now()
        if (body.type === 'stepFinished') resolve(now())
      },
      { keepAlive: true },
    )
  })
  delay.enable()
  await sessionPrompt(id, 'think a\nsay b\n'.repeat(50_000))
  const last = await over
  delay.disable()
  if (count < 100_000) throw new Error(`only ${count} events have come`)
  await sessionClose(id)
  tell('100,000 events', last - first, 1_000)
  tell('event loop delay meanwhile, p99', delay.percentile(99) / 1e6, 20)
}

async function manySessions() {
  await sessionClose(await open())
  const since = now()
  const ids = await Promise.all(Array.from({ length: 1_000 }, open))
  const taken = now() - since
  await Promise.all(ids.map((id) => sessionClose(id)))
  tell('1,000 sessions opened', taken, 100)
}

console.log('| what | measured | at most | |\n| --- | --- | --- | --- |')
for (const figure of [firstEvent, pause, manyEvents, manySessions]) await figure()
