// Tests of the hooks: up to date with the last event, unchanged without a change, and quiet in
// between.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'

import { Text } from 'ink'
import { Component, createElement as h, StrictMode } from 'react'

import { useRustSessionState, useSessionEvents, useSessionSnapshot } from 'holdpoint/react'
import * as react from 'holdpoint/react'

import { counting, opened, show, waiters } from './rendered.mjs'
import { everywhere, folder, holdpoint, record, script } from './support.mjs'

const CONFIRM = 'shell: echo confirmed > made'
const QUESTION = `call ask_user {"questions": [{"id": "colour", "header": "Colour", "question": "Which?"}]}`
const FIELDS = [
  'status', 'isLoading', 'isPaused', 'pauseInfo', 'hold', 'question', 'model', 'tokens', 'isDebugEnabled', 'connection',
  'version',
]

/**
 * Returns a component that records every state it was rendered with, and a function that waits for
 * a state.
 */
function follower(hook = useRustSessionState) {
  const states = []
  const { look, until } = waiters(() => JSON.stringify(states.at(-1)))
  function Follower({ id }) {
    const state = hook(id)
    states.push(state)
    queueMicrotask(look)
    return h(Text, null, state?.status)
  }
  return { Follower, states, until: (found) => until(() => states.length > 0 && found(states.at(-1)) && states.at(-1)) }
}

/** Returns an error boundary that shows the code of the error. */
function boundary() {
  let caught
  const found = new Promise((resolve) => (caught = resolve))
  class Boundary extends Component {
    state = { error: null }
    static getDerivedStateFromError(error) {
      return { error }
    }
    componentDidCatch(error) {
      caught(error)
    }
    render() {
      return this.state.error ? h(Text, null, this.state.error.code) : this.props.children
    }
  }
  return { Boundary, found }
}

everywhere('the hook', (getSessions, { remote }) => {
  test('m_f2_the_state_has_exactly_these_fields', async () => {
    const sessions = await getSessions()
    const id = await opened(sessions)
    const { Follower, until } = follower()
    show(h(Follower, { id }), { sessions })
    const state = await until(({ model }) => model !== '')
    assert.deepEqual(Object.keys(state).sort(), [...FIELDS].sort())
    const { version, ...rest } = state
    assert.ok(version > 0)
    assert.deepEqual(rest, {
      status: 'idle', isLoading: false, isPaused: false, pauseInfo: null, hold: { state: 'off' }, question: null,
      model: sessions.sessionSnapshot(id).settings.model, tokens: sessions.sessionSnapshot(id).usage, isDebugEnabled: false,
      connection: 'connected',
    })
  })

  test('m_f2_is_paused_and_pause_info_change_together', async () => {
    const sessions = await getSessions()
    const id = await opened(sessions)
    const { Follower, states, until } = follower()
    show(h(Follower, { id }), { sessions })
    await sessions.sessionPrompt(id, `${CONFIRM}\n---\n${QUESTION}`)
    const { pauseInfo } = await until(({ pauseInfo }) => pauseInfo)
    assert.deepEqual(pauseInfo, sessions.sessionGetPauseState(id))
    await sessions.sessionPauseConfirm(id, true, { askId: pauseInfo.id })
    const { question } = await until(({ question }) => question)
    assert.equal(question.toolName, 'ask_user')
    assert.equal(question.questions[0].question, 'Which?')
    await sessions.sessionAnswerQuestion(id, null, { askId: question.id })
    await until(({ status }) => status === 'idle')
    for (const state of states) {
      assert.equal(state.isPaused, state.status === 'paused')
      assert.equal(state.isLoading, state.status === 'running')
      assert.equal(state.isPaused, state.pauseInfo !== null || state.question !== null, 'both change at the same time')
      assert.ok(state.pauseInfo === null || state.question === null)
    }
    const { tokens } = await until(({ tokens }) => tokens.output > 0)
    assert.deepEqual(tokens, sessions.sessionSnapshot(id).usage)
  })

  test('m_f2_the_reference_stays_the_same_until_something_changes', async () => {
    const sessions = await getSessions()
    const id = await opened(sessions)
    const { Follower, states, until } = follower()
    const screen = show(h(Follower, { id }), { sessions })
    await sessions.sessionPrompt(id, `flood 2000\n${CONFIRM}`)
    await until(({ pauseInfo }) => pauseInfo)
    const distinct = [...new Set(states)]
    for (const [at, state] of distinct.slice(1).entries()) {
      const changed = FIELDS.filter((field) => field !== 'version' && state[field] !== distinct[at][field])
      assert.notDeepEqual(changed, [], 'a new object has a changed field')
    }
    const before = states.at(-1)
    const rendered = states.length
    for (let again = 0; again < 5; again++) screen.rerender(h(Follower, { id }))
    assert.ok(states.length >= rendered + 5)
    assert.equal(states.at(-1), before)
    // A change outside of the state leaves the object as it is.
    const all = follower(useSessionSnapshot)
    show(h(all.Follower, { id }), { sessions })
    const name = `renamed-${Date.now()}`
    await sessions.sessionRename(id, name)
    await all.until(({ settings }) => settings.name === name)
    assert.equal(states.at(-1), before)
    // Unchanged parts stay the same objects when another part changes.
    await sessions.sessionHold(id)
    const held = await until(({ hold }) => hold.state !== 'off')
    assert.notEqual(held, before)
    assert.equal(held.pauseInfo, before.pauseInfo)
    assert.equal(held.tokens, before.tokens)
    const versions = [...new Set(states)].map(({ version }) => version)
    assert.deepEqual(versions, [...versions].sort((one, other) => one - other))
    assert.equal(new Set(versions).size, versions.length)
    await sessions.sessionInterrupt(id)
  })

  test('m_f2_changes_of_the_debug_setting_are_reported', async () => {
    const sessions = await getSessions()
    const id = await opened(sessions)
    const { Follower, states, until } = follower()
    show(h(Follower, { id }), { sessions })
    await until(({ model }) => model !== '')
    assert.equal(states.at(-1).isDebugEnabled, false)
    await sessions.sessionSetDebug(id, true)
    const debugged = await until(({ isDebugEnabled }) => isDebugEnabled)
    await sessions.sessionSetDebug(id, false)
    const { version } = await until(({ isDebugEnabled }) => !isDebugEnabled)
    assert.ok(version > debugged.version)
  })

  test('m_f2_event_hooks_share_the_attachment', async () => {
    const { sessions, calls } = counting(await getSessions())
    const id = await opened(sessions)
    const { Follower, until } = follower()
    const taken = []
    function Taker() {
      useSessionEvents(id, ({ body }) => taken.push(body.type))
      return h(Follower, { id })
    }
    const screen = show(h(Taker), { sessions })
    await until(({ model }) => model !== '')
    while (sessions.sessionSnapshot(id).clients === 0) await turn()
    await sessions.sessionPrompt(id, 'say one')
    await sessions.sessionSettled(id)
    assert.equal(calls.sessionAttach, 1)
    assert.equal(taken[0], 'promptAccepted', 'no past events')
    assert.ok(taken.includes('text') && taken.includes('turnFinished'))
    screen.unmount()
    const before = taken.length
    const seen = await record(sessions, id, { limit: 0 })
    await sessions.sessionPrompt(id, 'say two')
    await seen.event('turnFinished')
    assert.equal(taken.length, before)
  })

  test('m_f2_the_state_is_fresh_on_subscribe', async () => {
    const sessions = await getSessions()
    const id = await opened(sessions)
    const first = follower()
    const screen = show(h(first.Follower, { id }), { sessions })
    await first.until(({ model }) => model !== '')
    screen.unmount()
    // No component follows the session during this time.
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, CONFIRM)
    await seen.event('askRaised')
    const second = follower()
    show(h(second.Follower, { id }), { sessions })
    assert.equal(second.states[0].isPaused, true, 'in the first rendering')
    assert.deepEqual(second.states[0].pauseInfo, sessions.sessionGetPauseState(id))
    await sessions.sessionInterrupt(id)
    await second.until(({ status }) => status === 'idle')
    await sessions.sessionDetach(id)
  })

  test('m_f2_hooks_share_one_attachment_and_do_not_poll', async () => {
    const { sessions, calls } = counting(await getSessions())
    const id = await opened(sessions)
    const followers = [follower(), follower(), follower(useSessionSnapshot)]
    const tree = (which) => h(StrictMode, null, ...which.map(({ Follower }, key) => h(Follower, { id, key })))
    const screen = show(tree(followers), { sessions })
    await sessions.sessionPrompt(id, CONFIRM)
    for (const { until } of followers) await until(({ status }) => status === 'paused')
    assert.equal(calls.sessionAttach - (calls.sessionDetach ?? 0), 1, 'one attachment')
    // All pending events have arrived. From now on no call is made, however long it takes.
    await delay(100)
    const before = { ...calls }
    for (let again = 0; again < 20; again++) {
      screen.rerender(tree(followers))
      await delay(10)
    }
    assert.deepEqual(calls, before)
    // The last component to leave detaches.
    screen.rerender(tree(followers.slice(0, 1)))
    await turn()
    assert.equal(calls.sessionDetach ?? 0, before.sessionDetach ?? 0)
    screen.unmount()
    await turn()
    assert.equal(calls.sessionDetach, calls.sessionAttach)
    await sessions.sessionInterrupt(id)
    // A daemon's session has no event for a client that has left.
    while (!remote && sessions.sessionSnapshot(id).clients !== 0) await turn()
  })

  test('m_f2_text_events_do_not_cause_snapshot_reads', async () => {
    const { sessions, calls } = counting(await getSessions())
    const id = await opened(sessions)
    const { Follower, until, states } = follower()
    show(h(Follower, { id }), { sessions })
    await until(({ model }) => model !== '')
    const words = 'word '.repeat(80)
    await sessions.sessionPrompt(id, `say@400 ${words}`)
    await until(({ status, tokens }) => status === 'idle' && tokens.output > 0)
    assert.ok(calls.sessionSnapshot < 40, `${calls.sessionSnapshot} readings, ${states.length} renderings`)
  })

  test('m_f2_a_closed_session_has_the_status_closed', async () => {
    const sessions = await getSessions()
    const id = await opened(sessions)
    const { Follower, states, until } = follower()
    show(h(Follower, { id }), { sessions })
    await sessions.sessionPrompt(id, CONFIRM)
    await until(({ isPaused }) => isPaused)
    await sessions.sessionClose(id)
    const last = await until(({ status }) => status === 'closed')
    assert.equal(last.pauseInfo, null)
    assert.equal(last.isPaused || last.isLoading, false)
    const versions = [...new Set(states)].map(({ version }) => version)
    assert.ok(versions.every((version, at) => at === 0 || version > versions[at - 1]), `${versions}`)
  })

  test('m_f2_a_session_that_is_being_closed_is_followed_once_it_is_closed', async () => {
    const sessions = await getSessions()
    const id = await opened(sessions)
    const closed = Object.assign(new Error('the session is closed'), { code: 'closed' })
    let tries = 0
    const closing = new Proxy(sessions, {
      get: (_, name) => {
        if (name === 'sessionAttach' && tries++ === 0) return () => Promise.reject(closed)
        const value = sessions[name]
        return typeof value === 'function' ? value.bind(sessions) : value
      },
    })
    const { Follower, until } = follower()
    show(h(Follower, { id }), { sessions: closing })
    await sessions.sessionPrompt(id, CONFIRM)
    await until(({ isPaused }) => isPaused)
    await sessions.sessionInterrupt(id)
    await until(({ status }) => status === 'idle')
    assert.equal(tries, 2)
  })

  test('m_f2_a_reopened_session_is_followed_again', async () => {
    const sessions = await getSessions()
    const id = await opened(sessions)
    const { Follower, until } = follower()
    const screen = show(h(Follower, { id }), { sessions })
    await sessions.sessionPrompt(id, CONFIRM)
    await until(({ isPaused }) => isPaused)
    await sessions.sessionClose(id)
    await until(({ status }) => status === 'closed')
    for (const how of ['rendered', 'followed by another']) {
      await sessions.sessionFind(id)
      await sessions.sessionPrompt(id, CONFIRM)
      while (sessions.sessionGetStatus(id) !== 'paused') await turn()
      if (how === 'rendered') screen.rerender(h(Follower, { id }))
      else show(h(Follower, { id }), { sessions })
      await until(({ isPaused }) => isPaused)
      // The session is followed, not only read once.
      await sessions.sessionPauseConfirm(id, false)
      await until(({ status }) => status === 'idle')
      await sessions.sessionClose(id)
      await until(({ status }) => status === 'closed')
    }
  })

  test('m_f2_a_remounted_hook_tries_again', async () => {
    const sessions = await getSessions()
    const name = `later-${Math.random().toString(36).slice(2)}`
    const { Follower, until } = follower()
    const { Boundary, found } = boundary()
    const screen = show(h(Boundary, { key: 'first' }, h(Follower, { id: name })), { sessions })
    assert.equal((await found).code, 'unknownSession')
    await opened(sessions, { name })
    screen.rerender(h(Boundary, { key: 'again' }, h(Follower, { id: name })))
    assert.equal((await until(({ model }) => model !== '')).status, 'idle')
  })

  test('m_f2_an_unknown_session_is_thrown_to_an_error_boundary', async () => {
    const sessions = await getSessions()
    const { Follower } = follower()
    const { Boundary, found } = boundary()
    show(h(Boundary, null, h(Follower, { id: 'nowhere' })), { sessions })
    assert.equal((await found).code, 'unknownSession')
  })

  test('m_f2_a_session_is_found_by_its_name', async () => {
    const sessions = await getSessions()
    const id = await opened(sessions, { name: `named-${Math.random().toString(36).slice(2)}` })
    const { name, model } = sessions.sessionSnapshot(id).settings
    const { Follower, until } = follower()
    show(h(Follower, { id: name }), { sessions })
    assert.equal((await until((state) => state.model !== '')).model, model)
  })

  test('a_remounted_hook_finds_the_session_that_has_the_name_now', async () => {
    const sessions = await getSessions()
    const name = `moved-${Math.random().toString(36).slice(2)}`
    const before = await opened(sessions, { name })
    const first = follower(useSessionSnapshot)
    const screen = show(h(first.Follower, { id: name }), { sessions })
    assert.equal((await first.until((snapshot) => snapshot)).settings.id, before)
    screen.unmount()
    await turn()
    await sessions.sessionRename(before, `${name}-before`)
    const now = await opened(sessions, { name })
    const second = follower(useSessionSnapshot)
    show(h(second.Follower, { id: name }), { sessions })
    assert.equal((await second.until((snapshot) => snapshot)).settings.id, now)
    assert.ok(second.states.every((snapshot) => snapshot === null || snapshot.settings.id === now))
  })
})

test('m_f4_esm_and_commonjs_share_the_hooks', () => {
  const required = createRequire(import.meta.url)('holdpoint/react')
  assert.equal(required.useRustSessionState, useRustSessionState)
  assert.deepEqual(Object.keys(react).sort(), Object.keys(required).filter((name) => name !== '__esModule').sort())
  assert.equal(typeof holdpoint.sessionOpen, 'function')
})

test('m_f2_the_end_of_an_actor_is_thrown_to_an_error_boundary', async () => {
  const stateDir = await folder()
  // In a separate process with saved sessions: the store is removed, and then the session fails.
  const { stdout } = await script(`
    import { renameSync } from 'node:fs'
    import { createRequire } from 'node:module'
    import { render } from 'ink-testing-library'
    import { Text } from 'ink'
    import { Component, createElement as h } from 'react'
    import { sessionAttach, sessionOpen, sessionSnapshot, start } from './index.mjs'
    import { useRustSessionState } from './react/index.mjs'
    const { Panics } = createRequire(import.meta.url)('./native.js')
    start({ stateDir: ${JSON.stringify(stateDir)} })
    const id = await sessionOpen({ cwd: '/tmp', model: 'rehearsal' })
    const ended = new Promise((onEnd) => sessionAttach(id, () => {}, { onEnd, keepAlive: true }))
    let followed, caught
    const [isFollowed, isCaught] = [new Promise((kept) => (followed = kept)), new Promise((kept) => (caught = kept))]
    class Boundary extends Component {
      state = {}
      static getDerivedStateFromError = (error) => ({ error })
      componentDidCatch = (error) => caught(error)
      render = () => (this.state.error ? null : this.props.children)
    }
    function Follower() {
      const { model } = useRustSessionState(id)
      if (model) followed()
      return h(Text, null, model)
    }
    render(h(Boundary, null, h(Follower)))
    // A real program stays alive for its terminal. This script has none.
    setInterval(() => {}, 60_000)
    await isFollowed
    while (sessionSnapshot(id).clients < 2) await new Promise(setImmediate)
    renameSync(${JSON.stringify(path.join(stateDir, 'data/sessions.db'))}, ${JSON.stringify(path.join(stateDir, 'away.db'))})
    await new Panics().session(id)
    console.log((await ended).reason, (await isCaught).code)
    process.exit()
  `)
  assert.equal(stdout, 'ended ended\n')
})
