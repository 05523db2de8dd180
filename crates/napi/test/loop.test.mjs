// Tests of the event loop while the addon works.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { holdpoint, open, record } from './support.mjs'

// The bound of 20 ms at the 99th percentile belongs to the benchmark. This test only checks that
// other work runs during a flood of events.
test('t_j3_the_event_loop_keeps_running_during_a_flood_of_events', async () => {
  const id = await open(holdpoint)
  const seen = await record(holdpoint, id)
  let turns = 0
  const turn = () => {
    turns++
    timer = setImmediate(turn)
  }
  let timer = setImmediate(turn)
  await holdpoint.sessionPrompt(id, 'think a\nsay b\n'.repeat(10_000))
  await seen.event('turnFinished')
  clearImmediate(timer)
  const batches = seen.events.length / 512
  assert.ok(turns > batches, `${turns} turns of the loop for ${seen.events.length} events`)
  await holdpoint.sessionDetach(id)
})
