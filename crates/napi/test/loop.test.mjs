// The event loop, while the addon works.
import assert from 'node:assert/strict'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test } from 'node:test'

import { full, holdpoint, open, record } from './support.mjs'

// The figure, 20 ms at the 99th percentile, is held at length; in between, a test that measured it would fail by what else
// the machine does. What is always held is that other things have their turn at all, within one flood.
test('t_j3_the_event_loop_turns_while_events_come', async () => {
  const id = await open(holdpoint)
  const seen = await record(holdpoint, id)
  const delay = monitorEventLoopDelay({ resolution: 5 })
  let turns = 0
  const turn = () => {
    turns++
    timer = setImmediate(turn)
  }
  let timer = setImmediate(turn)
  delay.enable()
  await holdpoint.sessionPrompt(id, 'think a\nsay b\n'.repeat(10_000))
  await seen.event('turnFinished')
  delay.disable()
  clearImmediate(timer)
  const batches = seen.events.length / 512
  assert.ok(turns > batches, `${turns} turns of the loop for ${seen.events.length} events`)
  assert.ok(delay.count > 0)
  const late = delay.percentile(99) / 1e6
  console.log(`the loop is at most ${late.toFixed(1)} ms late at the 99th percentile`)
  if (full) assert.ok(late <= 20, `${late} ms`)
  await holdpoint.sessionDetach(id)
})
