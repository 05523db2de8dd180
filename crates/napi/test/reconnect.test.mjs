// Tests of hooks and components whose daemon goes away: they show it, and continue where they were
// when it is back.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'

import { Box, Text } from 'ink'
import { createElement as h } from 'react'

import { InputTransition, StatusBar } from 'holdpoint/ink'
import { useRustSessionState, useSessionEvents } from 'holdpoint/react'

import { opened, show, waiters } from './rendered.mjs'
import { program, record, run, startDaemon } from './support.mjs'

/**
 * Returns a component that records the results of a session's hooks, and functions that wait for
 * them.
 */
function follower() {
  const [states, events] = [[], []]
  const { look, until } = waiters(() => JSON.stringify([states.at(-1), events.map(({ body }) => body.type).slice(-20)]))
  function Follower({ id }) {
    states.push(useRustSessionState(id))
    useSessionEvents(id, (event) => {
      events.push(event)
      look()
    })
    queueMicrotask(look)
    return h(Text, null, states.at(-1).connection)
  }
  const state = (found) => until(() => states.length > 0 && found(states.at(-1)) && states.at(-1))
  const count = (type) => events.filter(({ body }) => body.type === type).length
  return { Follower, states, events, state, comes: (type, times = 1) => until(() => count(type) >= times) }
}

/** Returns the facts in a session's log. */
async function factsOf(sessions, id, after) {
  const seen = await record(sessions, id, { after })
  const { seq } = await sessions.sessionSettled(id)
  await sessions.sessionDetach(id, seen.attachment)
  return seen.events.filter((event) => event.seq <= seq && isFact(event))
}

const isFact = ({ body }) => !['text', 'thought', 'output', 'status', 'itemSoFar', 'saved'].includes(body.type)

/** Checks that every fact arrived once and in order, and no event twice. */
async function missedNothing(sessions, id, first, events) {
  const numbers = events.map(({ seq }) => seq)
  assert.deepEqual(numbers, [...new Set(numbers)].sort((one, other) => one - other))
  const facts = await factsOf(sessions, id, first)
  assert.ok(facts.length > 10)
  assert.deepEqual(events.filter(isFact).slice(0, facts.length), facts)
}

describe('a daemon that goes away', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, () => {
  const begin = async () => {
    const { stateDir, sessions } = await startDaemon()()
    const daemon = (what) => run(program, ['--state-dir', stateDir, 'daemon', what])
    const kill = async () => process.kill(Number(await readFile(path.join(stateDir, 'data/daemon.lock'), 'utf8')), 'SIGKILL')
    return { stateDir, sessions, daemon, kill, id: await opened(sessions) }
  }

  test('m_f2_m_b6_the_hook_continues_after_a_daemon_restart', async () => {
    const { sessions, daemon, id } = await begin()
    const { Follower, states, events, state, comes } = follower()
    show(h(Follower, { id }), { sessions })
    // The hook must be attached before the first event.
    while (sessions.sessionSnapshot(id).clients === 0) await turn()
    const { seq: first } = sessions.sessionSnapshot(id)
    await sessions.sessionPrompt(id, 'say one')
    await comes('turnFinished')
    for (const round of [1, 2]) {
      const before = await state(({ status }) => status === 'idle')
      await daemon('stop')
      const away = await state(({ connection }) => connection === 'stopped')
      assert.deepEqual({ ...away, connection: 0, version: 0 }, { ...before, connection: 0, version: 0 }, 'the last known state')
      assert.ok(away.version > before.version)
      await daemon('start')
      // The prompt runs before the hook is back, or while it reconnects.
      await sessions.sessionPrompt(id, 'say two')
      await comes('turnFinished', 1 + round)
      await state(({ connection, status }) => connection === 'connected' && status === 'idle')
    }
    await missedNothing(sessions, id, first, events)
  })

  test('m_f2_m_b6_the_hook_continues_after_a_daemon_was_killed', async () => {
    const { sessions, daemon, kill, id } = await begin()
    const { Follower, events, state, comes } = follower()
    show(h(Follower, { id }), { sessions })
    // The hook must be attached before the first event.
    while (sessions.sessionSnapshot(id).clients === 0) await turn()
    const { seq: first } = sessions.sessionSnapshot(id)
    for (const round of [1, 2]) {
      await sessions.sessionPrompt(id, `say@20 ${'word '.repeat(2_000)}`)
      await comes('text', 10 * round)
      await kill()
      await state(({ connection }) => connection === 'lost')
      await daemon('start')
      await comes('turnFinished', round)
      await state(({ connection, status }) => connection === 'connected' && status !== 'running')
    }
    await missedNothing(sessions, id, first, events)
  })

  test('m_f2_a_hook_mounted_without_a_daemon_connects_when_it_is_back', async () => {
    const { sessions, daemon, id } = await begin()
    await daemon('stop')
    const { Follower, state } = follower()
    show(h(Follower, { id }), { sessions })
    await state(({ connection }) => connection !== 'connected')
    await daemon('start')
    await state(({ connection }) => connection === 'connected')
    await sessions.sessionPrompt(id, 'hang')
    await state(({ isLoading }) => isLoading)
    await sessions.sessionInterrupt(id)
  })

  test('a_hook_mounted_again_by_name_without_a_daemon_shows_that_it_is_gone', async () => {
    const { sessions, daemon, id } = await begin()
    const { name } = sessions.sessionSnapshot(id).settings
    const first = follower()
    const screen = show(h(first.Follower, { id: name }), { sessions })
    await first.state(({ model }) => model !== '')
    await daemon('stop')
    await first.state(({ connection }) => connection === 'stopped')
    screen.unmount()
    await turn()
    const second = follower()
    show(h(second.Follower, { id: name }), { sessions })
    await second.state(({ connection }) => connection === 'stopped')
    await daemon('start')
    await second.state(({ connection, model }) => connection === 'connected' && model !== '')
  })

  test('m_f2_a_session_reopened_by_another_client_is_followed_again', async () => {
    const { stateDir, sessions, id } = await begin()
    const { Follower, state } = follower()
    show(h(Follower, { id }), { sessions })
    await state(({ model }) => model !== '')
    const client = (...args) => run(program, ['--state-dir', stateDir, ...args])
    for (let round = 0; round < 2; round += 1) {
      await client('close', id)
      await state(({ status }) => status === 'closed')
      await client('prompt', id, 'hang')
      await state(({ isLoading }) => isLoading)
      await client('interrupt', id)
      await state(({ status }) => status === 'idle')
    }
  })

  test('m_f3_ink_shows_a_missing_daemon_and_continues_when_it_is_back', async () => {
    const { sessions, daemon, kill, id } = await begin()
    const parts = [h(StatusBar, { sessionId: id, key: 'bar' }), h(InputTransition, { sessionId: id, key: 'input' })]
    const screen = show(h(Box, { flexDirection: 'column' }, parts), { sessions })
    await screen.shows(/holdpoint \|/)
    await sessions.sessionPrompt(id, 'hang')
    await screen.shows(/Thinking/)
    await daemon('stop')
    await screen.shows(/daemon stopped\n[^]*The daemon was stopped\. Every session is saved\./)
    await daemon('start')
    await screen.shows((text) => /ctrl\+x p/.test(text) && !/daemon|Thinking/.test(text))
    await sessions.sessionPrompt(id, 'shell: echo made > made')
    await screen.shows(/waiting for approval\n[^]*\[Y\] Approve/)
    await kill()
    await screen.shows(/daemon gone\n[^]*\[Y\] Approve[^]*The daemon is gone\./)
    await daemon('start')
    // The policy Confirm is open again, with the same id.
    await screen.shows((text) => /waiting for approval\n[^]*\[Y\] Approve/.test(text) && !/daemon/.test(text))
    screen.guard()
    await screen.press('n')
    await screen.shows((text) => !/Approve/.test(text))
    assert.equal((await sessions.sessionSettled(id)).asks.length, 0)
  })
})
