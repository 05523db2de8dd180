// The hook: as fresh as the last event, the same until something has changed, and quiet in between.
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

/** A component that keeps every state it was rendered with, and ways to wait for one. */
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

/** An error boundary that shows the code of what it catches. */
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

everywhere('the hook', (place, { remote }) => {
  test('m_f2_it_has_these_fields_and_no_other', async () => {
    const sessions = await place()
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

  test('m_f2_paused_and_its_pause_switch_together', async () => {
    const sessions = await place()
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
      assert.equal(state.isPaused, state.pauseInfo !== null || state.question !== null, 'they differ for no moment')
      assert.ok(state.pauseInfo === null || state.question === null)
    }
    const { tokens } = await until(({ tokens }) => tokens.output > 0)
    assert.deepEqual(tokens, sessions.sessionSnapshot(id).usage)
  })

  test('m_f2_the_same_reference_until_something_has_changed', async () => {
    const sessions = await place()
    const id = await opened(sessions)
    const { Follower, states, until } = follower()
    const screen = show(h(Follower, { id }), { sessions })
    await sessions.sessionPrompt(id, `flood 2000\n${CONFIRM}`)
    await until(({ pauseInfo }) => pauseInfo)
    const distinct = [...new Set(states)]
    for (const [at, state] of distinct.slice(1).entries()) {
      const changed = FIELDS.filter((field) => field !== 'version' && state[field] !== distinct[at][field])
      assert.notDeepEqual(changed, [], 'another object only for what is another state')
    }
    const before = states.at(-1)
    const rendered = states.length
    for (let again = 0; again < 5; again++) screen.rerender(h(Follower, { id }))
    assert.ok(states.length >= rendered + 5)
    assert.equal(states.at(-1), before)
    // What is no part of it may change.
    const all = follower(useSessionSnapshot)
    show(h(all.Follower, { id }), { sessions })
    const name = `renamed-${Date.now()}`
    await sessions.sessionRename(id, name)
    await all.until(({ settings }) => settings.name === name)
    assert.equal(states.at(-1), before)
    // What has not changed stays what it was, also beside what has.
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

  test('m_f2_debugging_is_seen_on_and_off', async () => {
    const sessions = await place()
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

  test('m_f2_events_are_taken_by_the_same_attachment', async () => {
    const { sessions, calls } = counting(await place())
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
    assert.equal(taken[0], 'promptAccepted', 'nothing of the past')
    assert.ok(taken.includes('text') && taken.includes('turnFinished'))
    screen.unmount()
    const before = taken.length
    const seen = await record(sessions, id, { limit: 0 })
    await sessions.sessionPrompt(id, 'say two')
    await seen.event('turnFinished')
    assert.equal(taken.length, before)
  })

  test('m_f2_fresh_on_subscribe', async () => {
    const sessions = await place()
    const id = await opened(sessions)
    const first = follower()
    const screen = show(h(first.Follower, { id }), { sessions })
    await first.until(({ model }) => model !== '')
    screen.unmount()
    // Nobody looks while this happens.
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, CONFIRM)
    await seen.event('askRaised')
    const second = follower()
    show(h(second.Follower, { id }), { sessions })
    assert.equal(second.states[0].isPaused, true, 'the very first time it is rendered')
    assert.deepEqual(second.states[0].pauseInfo, sessions.sessionGetPauseState(id))
    await sessions.sessionInterrupt(id)
    await second.until(({ status }) => status === 'idle')
    await sessions.sessionDetach(id)
  })

  test('m_f2_no_polling_and_one_attachment_for_all', async () => {
    const { sessions, calls } = counting(await place())
    const id = await opened(sessions)
    const followers = [follower(), follower(), follower(useSessionSnapshot)]
    const tree = (which) => h(StrictMode, null, ...which.map(({ Follower }, key) => h(Follower, { id, key })))
    const screen = show(tree(followers), { sessions })
    await sessions.sessionPrompt(id, CONFIRM)
    for (const { until } of followers) await until(({ status }) => status === 'paused')
    assert.equal(calls.sessionAttach - (calls.sessionDetach ?? 0), 1, 'one attachment')
    // Whatever was on its way is here. From now on nothing happens, and nothing is asked for, however long it takes.
    await delay(100)
    const before = { ...calls }
    for (let again = 0; again < 20; again++) {
      screen.rerender(tree(followers))
      await delay(10)
    }
    assert.deepEqual(calls, before)
    // With the last of them it is detached.
    screen.rerender(tree(followers.slice(0, 1)))
    await turn()
    assert.equal(calls.sessionDetach ?? 0, before.sessionDetach ?? 0)
    screen.unmount()
    await turn()
    assert.equal(calls.sessionDetach, calls.sessionAttach)
    await sessions.sessionInterrupt(id)
    // Of a daemon's session, who has left is not told.
    while (!remote && sessions.sessionSnapshot(id).clients !== 0) await turn()
  })

  test('m_f2_what_is_said_is_not_read_again', async () => {
    const { sessions, calls } = counting(await place())
    const id = await opened(sessions)
    const { Follower, until, states } = follower()
    show(h(Follower, { id }), { sessions })
    await until(({ model }) => model !== '')
    const words = 'word '.repeat(80)
    await sessions.sessionPrompt(id, `say@400 ${words}`)
    await until(({ status, tokens }) => status === 'idle' && tokens.output > 0)
    assert.ok(calls.sessionSnapshot < 40, `${calls.sessionSnapshot} readings, ${states.length} renderings`)
  })

  test('m_f2_a_session_that_was_closed_is_closed', async () => {
    const sessions = await place()
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

  test('m_f2_a_session_that_was_closed_and_is_used_again_is_followed_again', async () => {
    const sessions = await place()
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
      // And it is followed, not only read.
      await sessions.sessionPauseConfirm(id, false)
      await until(({ status }) => status === 'idle')
      await sessions.sessionClose(id)
      await until(({ status }) => status === 'closed')
    }
  })

  test('m_f2_an_error_boundary_may_try_again', async () => {
    const sessions = await place()
    const name = `later-${Math.random().toString(36).slice(2)}`
    const { Follower, until } = follower()
    const { Boundary, found } = boundary()
    const screen = show(h(Boundary, { key: 'first' }, h(Follower, { id: name })), { sessions })
    assert.equal((await found).code, 'unknownSession')
    await opened(sessions, { name })
    screen.rerender(h(Boundary, { key: 'again' }, h(Follower, { id: name })))
    assert.equal((await until(({ model }) => model !== '')).status, 'idle')
  })

  test('m_f2_what_can_not_be_followed_is_for_an_error_boundary', async () => {
    const sessions = await place()
    const { Follower } = follower()
    const { Boundary, found } = boundary()
    show(h(Boundary, null, h(Follower, { id: 'nowhere' })), { sessions })
    assert.equal((await found).code, 'unknownSession')
  })

  test('m_f2_a_session_is_found_by_its_name', async () => {
    const sessions = await place()
    const id = await opened(sessions, { name: `named-${Math.random().toString(36).slice(2)}` })
    const { name, model } = sessions.sessionSnapshot(id).settings
    const { Follower, until } = follower()
    show(h(Follower, { id: name }), { sessions })
    assert.equal((await until((state) => state.model !== '')).model, model)
  })
})

test('m_f4_both_kinds_of_modules_share_it', () => {
  const required = createRequire(import.meta.url)('holdpoint/react')
  assert.equal(required.useRustSessionState, useRustSessionState)
  assert.deepEqual(Object.keys(react).sort(), Object.keys(required).filter((name) => name !== '__esModule').sort())
  assert.equal(typeof holdpoint.sessionOpen, 'function')
})

test('m_f2_a_session_that_is_gone_is_for_an_error_boundary', async () => {
  const stateDir = await folder()
  // In a process of its own, whose sessions are saved: what is saved goes, and then the session fails.
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
    // A program stays for its terminal; Node stays for nothing here.
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
