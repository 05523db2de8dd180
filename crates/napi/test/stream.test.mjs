// Tests of the events for callbacks and loops: complete and in order, at any pace.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import net from 'node:net'
import path from 'node:path'
import { test } from 'node:test'

import { connect } from '../index.mjs'
import { attach, everywhere, failure, folder, full, holdpoint, open, patience, program, record, run, script, startDaemon } from './support.mjs'

const MANY = full ? 100_000 : 20_000

/** Some of the events that change the snapshot. */
const CHANGES = ['turnStarted', 'stepStarted', 'askRaised', 'askAnswered', 'turnFinished']

/** Returns the sum of the pieces of each text, or the `itemSoFar` that replaced them. */
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

everywhere('events', (getSessions, { remote }) => {
  test(`m_f1_a_slow_callback_gets_${MANY}_events_completely_and_in_order`, async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const events = []
    const over = new Promise((resolve) => {
      attach(sessions, id, (event) => {
        busyFor(0.05)
        events.push(event)
        if (event.body.type === 'turnFinished') resolve()
      })
    })
    // Alternating thoughts and texts are never joined on the way.
    await sessions.sessionPrompt(id, 'think a\nsay b\n'.repeat(MANY / 2))
    await over
    assertInOrder(events)
    assertItemsAreWhole(events)
    const pieces = events.filter(({ body }) => body.type === 'text' || body.type === 'thought')
    if (!remote) assert.equal(pieces.length, MANY)
    // A daemon ends the stream of a slow client, and replaces the missing pieces by their sum.
    const summed = events.filter(({ body }) => body.type === 'itemSoFar')
    assert.ok(pieces.length === MANY || summed.length > 0, `${pieces.length} pieces, and no itemSoFar`)
  })

  test('m_f1_a_pause_during_a_flood_of_events_is_shown', async () => {
    const sessions = await getSessions()
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

  test('m_f1_synchronous_reads_are_as_new_as_the_event', async () => {
    const sessions = await getSessions()
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

  test('m_b4_after_and_limit_select_past_events', async () => {
    const sessions = await getSessions()
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
    assert.ok(few.events.every(({ seq }) => seq >= other.seq), 'one fact and the events after it')
    for (const { attachment } of [all, late, few]) await sessions.sessionDetach(id, attachment)
  })

  test('m_b4_skipped_past_events_do_not_count_as_delivered', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    // More than one batch.
    await sessions.sessionPrompt(id, 'think a\nsay b\n'.repeat(1_000))
    await sessions.sessionSettled(id)
    const limit = 6
    const all = []
    const slowly = (event) => {
      all.push(event)
      busyFor(0.05)
    }
    const { attachment } = await sessions.sessionAttach(id, slowly, { limit, keepAlive: true })
    await sessions.sessionSettled(id)
    assert.ok(all.some(({ body }) => body.type === 'turnFinished'), 'all events were delivered')
    assert.ok(all.length > 1_000, `${all.length} events`)
    await sessions.sessionDetach(id, attachment)
    const events = []
    const end = await new Promise((onEnd) => {
      const leave = ({ seq }) => events.push(seq) === 1 && sessions.sessionDetach(id)
      sessions.sessionAttach(id, leave, { limit, keepAlive: true, onEnd })
    })
    assert.equal(end.after, events.at(-1))
    // The number of events may differ, because waiting pieces are joined.
    assert.ok(end.after < all.at(-1).seq, 'the detach came before the end')
  })

  test('m_b5_after_detach_has_resolved_nothing_more_is_delivered', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    // The turn does not end by itself.
    await sessions.sessionPrompt(id, `flood 5000\nsay@200 ${'on and '.repeat(10_000)}`)
    await seen.event('text')
    await sessions.sessionDetach(id)
    const delivered = seen.events.length
    assert.equal((await seen.end()).reason, 'detached')
    assert.equal((await seen.end()).after, seen.events.at(-1).seq)
    await sessions.sessionInterrupt(id)
    await sessions.sessionSettled(id)
    assert.equal(seen.events.length, delivered)
    // A new attachment continues where the last one stopped.
    const rest = await record(sessions, id, { after: seen.events.at(-1).seq })
    await rest.event('turnFinished')
    assertItemsAreWhole([...seen.events, ...rest.events])
    await sessions.sessionDetach(id, rest.attachment)
  })

  test('m_f1_a_session_is_iterated', async () => {
    const sessions = await getSessions()
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
    // A client that waits for a daemon's session to settle is attached as well.
    if (!remote) assert.equal(sessions.sessionSnapshot(id).clients, 0, 'leaving the loop detaches')
    const closing = sessions.sessionEvents(id, { limit: 1 })
    // The first event shows that the loop is attached.
    await closing.next()
    await sessions.sessionClose(id)
    const types = []
    let last = await closing.next()
    for (; !last.done; last = await closing.next()) types.push(last.value.body.type)
    assert.equal(types.at(-1), 'sessionClosed')
    assert.equal(last.value.reason, 'closed')
  })

  test('m_b8_closing_a_running_session_ends_its_stream_with_closed', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    let onEnd
    const end = new Promise((resolve) => (onEnd = resolve))
    const seen = []
    const running = new Promise((resolve) => {
      const callback = ({ body }) => {
        seen.push(body.type)
        if (body.type === 'stepStarted') resolve()
      }
      return sessions.sessionAttach(id, callback, { onEnd })
    })
    await sessions.sessionPrompt(id, 'hang')
    await running
    await sessions.sessionClose(id)
    assert.equal((await end).reason, 'closed', seen.join(' '))
    assert.ok(seen.includes('sessionClosed'))
  })

  test('m_b5_a_loop_can_detach_itself', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    await sessions.sessionPrompt(id, 'think a\nsay b\n'.repeat(2_000))
    await sessions.sessionSettled(id)
    const events = sessions.sessionEvents(id)
    let count = 0
    let last = await events.next()
    for (; !last.done; last = await events.next()) if (++count === 10) await sessions.sessionDetach(id)
    assert.equal(last.value.reason, 'detached')
    assert.ok(count <= 512, `${count} events: more than one batch`)
  })

  test('m_b5_a_loop_can_be_left_while_it_waits_for_an_event', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const late = new Promise((resolve) => setTimeout(resolve, patience, 'the loop did not end').unref())
    for (const isAttached of [false, true]) {
      const events = sessions.sessionEvents(id, { limit: 0 })
      const waiting = events.next()
      if (isAttached) while (sessions.sessionSnapshot(id).clients === 0) await new Promise((resolve) => setImmediate(resolve))
      const left = events.return('left')
      assert.deepEqual(await Promise.race([waiting, late]), { done: true, value: undefined })
      assert.deepEqual(await Promise.race([left, late]), { done: true, value: 'left' })
      assert.equal((await events.next()).done, true)
    }
    while (!remote && sessions.sessionSnapshot(id).clients > 0) await new Promise((resolve) => setImmediate(resolve))
  })

  test('m_f1_a_loop_may_wait_for_its_session', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    await sessions.sessionPrompt(id, 'think a\nsay b\n'.repeat(500))
    for await (const { body } of sessions.sessionEvents(id)) {
      if (body.type === 'turnStarted') assert.equal((await sessions.sessionSettled(id)).lastTurn.outcome, 'done')
      if (body.type === 'turnFinished') break
    }
    await sessions.sessionClose(id)
  })

  test('m_b8_the_stream_ends_with_its_session', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionClose(id)
    assert.equal((await seen.end()).reason, 'closed')
    assert.equal(seen.events.at(-1).body.type, 'sessionClosed')
    assert.equal((await failure(() => sessions.sessionGetStatus(id))).code, 'unknownSession')
  })

  test('m_f1_an_error_in_a_callback_is_reported_and_the_stream_continues', async () => {
    const sessions = await getSessions()
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
    // Without `onError`, the process emits a warning.
    const warned = once(process, 'warning')
    await attach(sessions, id, callback, { limit: 1 })
    const [warning] = await warned
    assert.equal(warning.name, 'HoldpointWarning')
    assert.match(warning.message, /thrown at/)
    await sessions.sessionClose(id)
  })

  test('m_f1_the_rejection_of_an_async_callback_is_reported', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const [errors, types] = [[], []]
    let over
    const seen = new Promise((resolve) => (over = resolve))
    const onError = (error) => errors.push(error.message) && error.message.includes('turnFinished') && over()
    const callback = async ({ body }) => {
      types.push(body.type)
      throw new Error(`rejected at ${body.type}`)
    }
    await attach(sessions, id, callback, { onError })
    await sessions.sessionPrompt(id, 'say one')
    await seen
    assert.deepEqual(errors, types.map((type) => `rejected at ${type}`))
    const warned = once(process, 'warning')
    await attach(sessions, id, callback, { limit: 1 })
    assert.match((await warned)[0].message, /rejected at/)
    await sessions.sessionClose(id)
  })

  test('m_b5_detaching_from_a_closed_session_ends_its_deliveries', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    let go
    const gone = new Promise((resolve) => (go = resolve))
    const events = []
    const { attachment } = await sessions.sessionAttach(id, (event) => {
      events.push(event.seq)
      if (event.body.type === 'thought') {
        busyFor(0.2)
        go()
      }
    })
    await sessions.sessionPrompt(id, 'think a\nsay b\n'.repeat(2_000))
    await gone
    await sessions.sessionClose(id)
    await sessions.sessionDetach(id, attachment)
    const delivered = events.length
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal(events.length, delivered, 'nothing arrives after the detach')
  })

  test('m_f1_attaching_during_a_close_reports_the_end', async () => {
    const sessions = await getSessions()
    for (let round = 0; round < (full ? 100 : 20); round++) {
      const id = await open(sessions)
      const ended = new Promise((resolve) => {
        const attached = sessions.sessionAttach(id, () => {}, { onEnd: ({ reason }) => resolve(reason), keepAlive: true })
        attached.catch(({ code }) => resolve(code))
      })
      await sessions.sessionClose(id)
      assert.equal(await ended, 'closed')
    }
  })
})

test('m_b6_a_stream_ended_by_a_daemon_restart_has_the_number_to_continue_from', { skip: !process.env.HOLDPOINT_PROGRAM }, async () => {
  const { stateDir, sessions } = await startDaemon()()
  const id = await open(sessions)
  const seen = await record(sessions, id)
  await sessions.sessionPrompt(id, 'say one')
  await seen.event('turnFinished')
  await run(program, ['--state-dir', stateDir, 'daemon', 'restart'])
  const { reason, after } = await seen.end()
  assert.equal(reason, 'stopped')
  assert.equal(after, seen.events.at(-1).seq)
  const again = await record(sessions, id, { after })
  await sessions.sessionPrompt(id, 'say two')
  await again.event('turnFinished')
  await sessions.sessionDetach(id)
})

test('m_b6_a_session_settles_after_several_daemon_restarts', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const { stateDir, sessions } = await startDaemon()()
  const id = await open(sessions)
  await sessions.sessionPrompt(id, 'say one')
  await sessions.sessionSettled(id)
  // Each daemon reserves numbers, and the last reserved one belongs to no event.
  for (let restart = 1; restart <= 3; restart++) {
    await run(program, ['--state-dir', stateDir, 'daemon', 'restart'])
    const again = await connect({ stateDir })
    const types = []
    const { attachment } = await again.sessionAttach(await again.sessionFind(id), ({ body }) => types.push(body.type))
    await again.sessionSettled(id)
    assert.equal(types.filter((type) => type === 'turnFinished').length, 1, `restart ${restart}`)
    await again.sessionDetach(id, attachment)
  }
})

test('m_b8_a_stream_continues_after_repeated_actor_failures', async () => {
  const { Panics } = createRequire(import.meta.url)('../native.js')
  const id = await open(holdpoint)
  await holdpoint.sessionPrompt(id, 'say long ago')
  const { seq } = await holdpoint.sessionSettled(id)
  // No past is requested, and no event has arrived when the actor fails.
  const seen = await record(holdpoint, id, { limit: 0 })
  const rounds = 8
  for (let round = 0; round < rounds; round++) {
    await new Panics().session(id)
    await holdpoint.sessionPrompt(id, `say round ${round}`)
    await seen.event('turnFinished', round)
  }
  assert.ok(seen.events.every((event) => event.seq > seq), 'no past events')
  assertInOrder(seen.events)
  assertItemsAreWhole(seen.events)
  await holdpoint.sessionClose(id)
  assert.equal((await seen.end()).reason, 'closed')
})

test('m_f1_events_that_wait_for_a_slow_loop_are_bounded', async () => {
  // Tools write no faster than the buffer keeps, and the loop takes only the first event until all
  // is over.
  const [steps, bursts] = [full ? 6 : 2, 220]
  const { stdout } = await script(`
    import { sessionOpen, sessionPrompt, sessionEvents, sessionGetStatus } from './index.mjs'
    const id = await sessionOpen({ cwd: '/tmp', model: 'rehearsal', policy: 'all' })
    const events = sessionEvents(id)
    const facts = [(await events.next()).value.body.type]
    const before = process.memoryUsage.rss()
    let most = 0
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage.rss() - before)), 5)
    const step = (at) => 'say words of step ' + at + '\\nshell: for burst in $(seq ${bursts}); do yes | head -c 262144; sleep 0.01; done'
    await sessionPrompt(id, Array.from({ length: ${steps} }, (_, at) => step(at)).join('\\n---\\n'))
    while (sessionGetStatus(id) !== 'idle') await new Promise((resolve) => setTimeout(resolve, 5))
    clearInterval(watch)
    const items = new Map()
    let [last, whole, soFar] = [0, 0, 0]
    for await (const { seq, body } of events) {
      if (seq <= last) throw new Error('out of order')
      last = seq
      if (body.type === 'text') items.set(body.item, (items.get(body.item) ?? '') + body.text)
      else if (body.type === 'itemSoFar') soFar += items.set(body.item, body.soFar.head ?? '') ? 1 : 0
      else if (body.type !== 'output') facts.push(body.type)
      if (body.type === 'assistantMessage') whole += body.blocks.filter(({ item, text }) => text && items.get(item) === text).length
      if (body.type === 'turnFinished') break
    }
    console.log(JSON.stringify({ most, whole, soFar, facts }))
  `)
  const { most, whole, soFar, facts } = JSON.parse(stdout)
  console.log(`${Math.round(most / 1048576)} MiB more memory while ${steps * bursts / 4} MiB were written`)
  // 64 MiB wait in the addon. The ring and the data in flight need some more.
  assert.ok(most < 150 * 1048576, `${most} bytes more`)
  assert.ok(soFar > 0, 'the loop was too slow')
  for (const [type, count] of Object.entries({ stepFinished: steps + 1, toolStarted: steps, toolFinished: steps, gap: 0 })) {
    assert.equal(facts.filter((fact) => fact === type).length, count, type)
  }
})

test('a_stream_to_a_daemon_that_does_not_answer_can_be_detached', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const { stateDir } = await startDaemon()()
  const socketPath = path.join(await folder(), 'socket')
  let isHanging = false
  const sockets = []
  let hung = 0
  const relay = net.createServer((client) => {
    sockets.push(client.on('error', () => {}))
    if (isHanging) {
      hung += 1
      relay.emit('hung')
      return
    }
    const daemon = net.connect(path.join(stateDir, 'run/holdpoint.sock'))
    sockets.push(daemon.on('error', () => {}))
    client.pipe(daemon).pipe(client)
  })
  await once(relay.listen(socketPath), 'listening')
  try {
    const sessions = await connect({ socket: socketPath })
    const id = await open(sessions)
    const events = sessions.sessionEvents(id)
    await events.next()
    const seen = await record(sessions, id)
    isHanging = true
    for (const socket of sockets) socket.destroy()
    // Both streams connect again.
    while (hung < 2) await once(relay, 'hung')
    await Promise.all([sessions.sessionDetach(id, seen.attachment), events.return()])
    assert.equal((await seen.end()).reason, 'detached')
  } finally {
    for (const socket of sockets) socket.destroy()
    relay.close()
  }
})
