// Events on their way to callbacks and loops: whole, in order, at whatever pace they are taken.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'

import { attach, everywhere, failure, full, holdpoint, open, record, startDaemon } from './support.mjs'

const MANY = full ? 100_000 : 20_000

/** Some of the events that change what is read at once. */
const CHANGES = ['turnStarted', 'stepStarted', 'askRaised', 'askAnswered', 'turnFinished']

/** What the pieces of text add up to; what has replaced them, where they are gone. */
function fold(events) {
  const items = new Map()
  for (const { body } of events) {
    if (body.type === 'text' || body.type === 'thought') items.set(body.item, (items.get(body.item) ?? '') + body.text)
    if (body.type === 'itemSoFar') items.set(body.item, body.soFar.head ?? '')
  }
  return items
}

function assertInOrder(events) {
  for (let at = 1; at < events.length; at++) assert.ok(events[at - 1].seq < events[at].seq)
}

function assertItemsAreWhole(events) {
  const items = fold(events)
  for (const { body } of events.filter(({ body }) => body.type === 'assistantMessage')) {
    for (const block of body.blocks) assert.equal(items.get(block.item), block.text)
  }
}

function busyFor(milliseconds) {
  const until = performance.now() + milliseconds
  while (performance.now() < until);
}

everywhere('events', (place, { remote }) => {
  test(`m_f1_${MANY}_events_with_a_slow_callback_come_whole_and_in_order`, async () => {
    const sessions = await place()
    const id = await open(sessions)
    const events = []
    const over = new Promise((resolve) => {
      attach(sessions, id, (event) => {
        busyFor(0.05)
        events.push(event)
        if (event.body.type === 'turnFinished') resolve()
      })
    })
    // Thoughts and texts by turns are never put together on the way.
    await sessions.sessionPrompt(id, 'think a\nsay b\n'.repeat(MANY / 2))
    await over
    assertInOrder(events)
    assertItemsAreWhole(events)
    const pieces = events.filter(({ body }) => body.type === 'text' || body.type === 'thought')
    // A daemon cuts off who reads too slowly, and what is gone by then comes as one.
    if (!remote) assert.equal(pieces.length, MANY)
  })

  test('m_f1_a_pause_raised_in_a_flood_is_seen', async () => {
    const sessions = await place()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, `flood ${MANY / 10}\nshell: echo after the flood\n---\nflood ${MANY / 10}`)
    const { ask } = (await seen.event('askRaised')).body
    assert.equal(sessions.sessionGetPauseState(id).id, ask.id)
    await sessions.sessionPauseConfirm(id, true)
    await seen.event('turnFinished')
    assertInOrder(seen.events)
    assertItemsAreWhole(seen.events)
  })

  test('m_f1_what_is_read_at_once_is_as_new_as_the_event', async () => {
    const sessions = await place()
    const id = await open(sessions)
    const wrong = []
    const over = new Promise((resolve) => {
      attach(sessions, id, ({ seq, body }) => {
        if (CHANGES.includes(body.type) && sessions.sessionSnapshot(id).seq < seq) wrong.push(body.type)
        if (body.type === 'askRaised') {
          if (sessions.sessionGetStatus(id) !== 'paused') wrong.push('status')
          sessions.sessionPauseConfirm(id, true)
        }
        if (body.type === 'turnFinished') resolve()
      })
    })
    await sessions.sessionPrompt(id, 'say one\nshell: echo two\nsay three')
    await over
    assert.deepEqual(wrong, [])
  })

  test('m_b4_after_and_limit_say_what_of_the_past_comes', async () => {
    const sessions = await place()
    const id = await open(sessions)
    const all = await record(sessions, id)
    await sessions.sessionPrompt(id, 'say one')
    await all.event('turnFinished')
    const facts = all.events.filter(({ body }) => !['text', 'status'].includes(body.type))
    const [one, other] = [facts.at(-3), facts.at(-2)]
    const late = await record(sessions, id, { after: one.seq })
    assert.equal(late.snapshot.settings.id, id)
    await late.event('turnFinished')
    assert.ok(late.events.every(({ seq }) => seq > one.seq))
    const few = await record(sessions, id, { limit: 1 })
    await few.event('turnFinished')
    assert.ok(few.events.every(({ seq }) => seq >= other.seq), 'one fact, and what came with it')
    for (const { attachment } of [all, late, few]) await sessions.sessionDetach(id, attachment)
  })

  test('m_b5_after_detach_has_resolved_nothing_more_is_delivered', async () => {
    const sessions = await place()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, 'flood 5000\nsay@200 and it goes on for a while longer than anybody listens')
    await seen.event('text')
    await sessions.sessionDetach(id)
    const delivered = seen.events.length
    assert.equal((await seen.end()).reason, 'detached')
    assert.equal((await seen.end()).after, seen.events.at(-1).seq)
    await sessions.sessionSettled(id)
    assert.equal(seen.events.length, delivered)
    // Where it stopped, it goes on.
    const rest = await record(sessions, id, { after: seen.events.at(-1).seq })
    await rest.event('turnFinished')
    assertItemsAreWhole([...seen.events, ...rest.events])
    await sessions.sessionDetach(id, rest.attachment)
  })

  test('m_f1_a_session_is_iterated', async () => {
    const sessions = await place()
    const id = await open(sessions)
    await sessions.sessionPrompt(id, 'flood 3000')
    const events = []
    for await (const event of sessions.sessionEvents(id)) {
      events.push(event)
      if (event.body.type === 'turnFinished') break
    }
    assertInOrder(events)
    assertItemsAreWhole(events)
    await sessions.sessionSettled(id)
    // Who waits for a daemon's session to settle is attached, too.
    if (!remote) assert.equal(sessions.sessionSnapshot(id).clients, 0, 'leaving the loop detaches')
    const closing = sessions.sessionEvents(id, { limit: 1 })
    // With what was there it is attached.
    await closing.next()
    await sessions.sessionClose(id)
    const types = []
    let last = await closing.next()
    for (; !last.done; last = await closing.next()) types.push(last.value.body.type)
    assert.equal(types.at(-1), 'sessionClosed')
    assert.equal(last.value.reason, 'closed')
  })

  test('m_b8_the_stream_ends_with_its_session', async () => {
    const sessions = await place()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionClose(id)
    assert.equal((await seen.end()).reason, 'closed')
    assert.equal(seen.events.at(-1).body.type, 'sessionClosed')
    assert.equal((await failure(() => sessions.sessionGetStatus(id))).code, 'unknownSession')
  })

  test('m_f1_a_callback_that_throws_is_reported_and_goes_on', async () => {
    const sessions = await place()
    const id = await open(sessions)
    const errors = []
    let over
    const seen = new Promise((resolve) => (over = resolve))
    const callback = ({ body }) => {
      if (body.type === 'turnFinished') over()
      throw new Error(`thrown at ${body.type}`)
    }
    await attach(sessions, id, callback, { onError: (error) => errors.push(error.message) })
    await sessions.sessionPrompt(id, 'say one')
    await seen
    assert.ok(errors.includes('thrown at promptAccepted'))
    // Without anyone to tell, it is a warning.
    const warned = once(process, 'warning')
    await attach(sessions, id, callback, { limit: 1 })
    const [warning] = await warned
    assert.equal(warning.name, 'HoldpointWarning')
    assert.match(warning.message, /thrown at/)
    await sessions.sessionClose(id)
  })

  test('m_b4_a_session_has_room_for_so_many_clients', async () => {
    const sessions = await place()
    const id = await open(sessions)
    let attached = 0
    let refused
    while (!refused) await sessions.sessionAttach(id, () => {}, { limit: 0 }).then(() => attached++, (error) => (refused = error))
    assert.equal(refused.code, remote ? 'tooManyConnections' : 'tooManyClients')
    assert.match(refused.message, /256/)
    await sessions.sessionDetach(id)
    await sessions.sessionAttach(id, () => {}, { limit: 0 })
    await sessions.sessionClose(id)
  })
})

test('m_b6_a_daemon_whose_connection_breaks_says_where_to_go_on', { skip: !process.env.HOLDPOINT_PROGRAM }, async () => {
  const { stateDir, sessions } = await startDaemon()()
  const id = await open(sessions)
  const seen = await record(sessions, id)
  await sessions.sessionPrompt(id, 'say one')
  await seen.event('turnFinished')
  const { run, program } = await import('./support.mjs')
  await run(program, ['--state-dir', stateDir, 'daemon', 'restart'])
  const { reason, after } = await seen.end()
  assert.equal(reason, 'stopped')
  assert.equal(after, seen.events.at(-1).seq)
  const again = await record(sessions, id, { after })
  await sessions.sessionPrompt(id, 'say two')
  await again.event('turnFinished')
  await sessions.sessionDetach(id)
})

test('m_f1_a_callback_is_a_function', async () => {
  const id = await open(holdpoint)
  assert.ok((await failure(holdpoint.sessionAttach(id))) instanceof TypeError)
})
