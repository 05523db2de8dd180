// Tests of asks: raised, shown, and answered once by a named client.
import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'

import { attach, everywhere, failure, open, record, root } from './support.mjs'

const CONFIRM = 'shell: echo confirmed > made'
const QUESTION = `call ask_user {"questions": [{"id": "colour", "header": "Colour", "question": "Which?"}]}`

/** Blocks the JavaScript thread for this number of milliseconds. */
const busy = (milliseconds) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)

everywhere('asks', (getSessions, { remote }) => {
  test('m_f1_a_confirm_is_shown_and_approved', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    assert.equal(sessions.sessionGetStatus(id), 'idle')
    assert.equal(sessions.sessionGetPauseState(id), null)
    await sessions.sessionPrompt(id, CONFIRM)
    const { ask } = (await seen.event('askRaised')).body
    assert.equal(sessions.sessionGetStatus(id), 'paused')
    const pause = sessions.sessionGetPauseState(id)
    assert.deepEqual(
      { ...pause, message: undefined },
      {
        id: ask.id, kind: 'confirm', toolName: 'shell', message: undefined, details: ask.request.details,
        call: ask.call, since: ask.since,
      },
    )
    assert.match(pause.details, /echo confirmed > made/)
    const answered = await sessions.sessionPauseConfirm(id, true)
    assert.equal(answered.ask, ask.id)
    assert.equal((await seen.event('turnFinished')).body.outcome, 'done')
    assert.equal(sessions.sessionGetPauseState(id), null)
    assert.equal(sessions.sessionGetStatus(id), 'idle')
  })

  test('m_h3_a_hosted_agent_asks_in_its_session', async () => {
    const sessions = await getSessions()
    const agent = [process.execPath, path.join(root, 'test/agent.mjs')]
    const id = await open(sessions, { agent, model: 'large', sandbox: 'off' })
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, 'make test')
    await seen.event('askRaised')
    assert.match(sessions.sessionGetPauseState(id).message, /^Start the agent .* without a sandbox\?$/)
    await sessions.sessionPauseConfirm(id, true)
    const { ask } = (await seen.event('askRaised', 1)).body
    assert.match(ask.request.details, /^make test\n/)
    await sessions.sessionPauseConfirm(id, false)
    assert.equal((await seen.event('turnFinished')).body.outcome, 'done')
    const answers = seen.events.filter(({ body }) => body.type === 'assistantMessage')
    assert.equal(answers.at(-1).body.blocks[0].text, 'large: no')
    await sessions.sessionClose(id)
    const wrong = await failure(sessions.sessionOpen({ agent: [] }))
    assert.match(wrong.message, /the command of an agent is empty/)
  })

  test('m_a2_always_covers_only_calls_with_the_same_key', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, 'shell: echo same\n---\nshell: echo same\n---\nshell: echo other')
    await seen.event('askRaised')
    await sessions.sessionPauseConfirm(id, true, { always: true })
    assert.equal((await seen.event('toolFinished', 1)).body.output.head, 'same\n')
    const { ask } = (await seen.event('askRaised', 1)).body
    assert.match(ask.request.details, /other/)
    await sessions.sessionPauseConfirm(id, false)
    await seen.event('turnFinished')
    await sessions.sessionClose(id)
  })

  test('m_a2_a_denial_for_always_covers_calls_with_the_same_key', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, 'shell: echo same\n---\nshell: echo same\n---\nshell: echo other')
    await seen.event('askRaised')
    await sessions.sessionPauseConfirm(id, false, { always: true, reason: 'not here' })
    const { answer } = (await seen.event('askAnswered')).body
    assert.deepEqual(answer, { type: 'deny', reason: 'not here', always: true })
    const { status, result } = (await seen.event('toolFinished', 1)).body
    assert.deepEqual([status, result], ['denied', 'the user denied this for the whole session: not here'])
    const { ask } = (await seen.event('askRaised', 1)).body
    assert.match(ask.request.details, /other/)
    await sessions.sessionPauseConfirm(id, true)
    await seen.event('turnFinished')
    await sessions.sessionClose(id)
  })

  test('m_a5_a_second_answer_reports_who_answered_first', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, CONFIRM)
    const askId = (await seen.event('askRaised')).body.ask.id
    await sessions.sessionPauseConfirm(id, false, { askId, reason: 'not today' })
    const error = await failure(sessions.sessionPauseConfirm(id, true, { askId }))
    assert.equal(error.code, 'alreadyAnswered')
    assert.ok(error instanceof Error)
    assert.deepEqual(error.details.by, { type: 'client', name: 'node', pid: process.pid })
    const result = (await seen.event('toolFinished')).body
    assert.match(result.result, /not today/)
  })

  test('m_a5_the_wrong_kind_changes_nothing', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, CONFIRM)
    const askId = (await seen.event('askRaised')).body.ask.id
    assert.equal((await failure(sessions.sessionPauseResume(id))).code, 'kindMismatch')
    assert.equal((await failure(sessions.sessionAnswerQuestion(id, null))).code, 'kindMismatch')
    assert.equal(sessions.sessionGetPauseState(id).id, askId)
    await sessions.sessionPauseConfirm(id, true)
    await seen.event('turnFinished')
  })

  test('m_a5_an_answer_without_an_id_goes_to_the_shown_ask', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    assert.equal((await failure(sessions.sessionPauseConfirm(id, true))).code, 'nothingShown')
    const seen = await record(sessions, id)
    // Another client answers the first of two asks, and the second is not shown yet.
    await sessions.sessionPrompt(id, 'shell: echo one\n---\nshell: echo two')
    const first = (await seen.event('askRaised')).body.ask.id
    await sessions.sessionDetach(id, seen.attachment)
    await sessions.sessionPauseConfirm(id, true, { askId: first })
    const second = async () => (await sessions.sessionInbox()).find(({ session, ask }) => session === id && ask.id !== first)
    while (!(await second()));
    const { name } = (await sessions.sessionList()).find((session) => session.id === id)
    for (const what of [id, id.slice(0, -1), name]) {
      const error = await failure(sessions.sessionPauseConfirm(what, true))
      assert.equal(error.code, 'alreadyAnswered', what)
      assert.equal((await sessions.sessionPauseInterrupt(what)).found, 'nothing', what)
    }
    assert.notEqual(await second(), undefined, 'it is still open')
    // This shows the second ask.
    const { id: askId } = sessions.sessionGetPauseState(id)
    assert.equal((await sessions.sessionPauseConfirm(name, false)).ask, askId)
    await sessions.sessionSettled(id)
  })

  test('m_a5_an_ask_counts_as_shown_only_when_the_attach_has_resolved', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, `${CONFIRM}\n---\n${CONFIRM}`)
    const first = (await seen.event('askRaised')).body.ask.id
    // While JavaScript is blocked, the first ask is answered, the second is raised, and a callback
    // is attached.
    const answered = sessions.sessionPauseConfirm(id, true, { askId: first })
    busy(300)
    const attached = sessions.sessionAttach(id, () => {})
    busy(300)
    assert.equal((await failure(sessions.sessionPauseConfirm(id, true))).code, 'alreadyAnswered')
    await Promise.all([answered, attached])
    await seen.event('askRaised', 1)
    // This shows the second ask.
    assert.equal(sessions.sessionSnapshot(id).asks.length, 1)
    await sessions.sessionPauseConfirm(id, false)
    await seen.event('turnFinished')
  })

  test('m_a5_a_pause_that_was_never_shown_is_not_interrupted', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    await sessions.sessionPrompt(id, CONFIRM)
    while (sessions.sessionGetStatus(id) !== 'paused') await new Promise((resolve) => setImmediate(resolve))
    assert.equal((await sessions.sessionPauseInterrupt(id)).found, 'nothing')
    assert.equal(sessions.sessionGetPauseState(id).kind, 'confirm')
    const { name } = sessions.sessionSnapshot(id).settings
    assert.equal((await sessions.sessionPauseInterrupt(name)).outcome, 'interrupted')
  })

  test('m_a11_attaching_shows_the_open_ask_and_no_past_one', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const other = await open(sessions)
    for (const each of [id, other]) await sessions.sessionPrompt(each, CONFIRM)
    while (sessions.sessionGetStatus(id) !== 'paused') await new Promise((resolve) => setImmediate(resolve))
    const { attachment } = await record(sessions, id, { limit: 0 })
    await sessions.sessionPauseConfirm(id, true)
    await sessions.sessionSettled(id)
    await sessions.sessionDetach(id, attachment)
    // The ask is past now. The event shows it to no client.
    const answered = new Promise((resolve) => {
      const callback = ({ body }) => body.type === 'askRaised' && resolve(failure(sessions.sessionPauseConfirm(id, true)))
      attach(sessions, id, callback)
    })
    assert.equal((await answered).code, 'nothingShown')
    await sessions.sessionInterrupt(other)
  })

  test('m_a3_two_sessions_are_paused_at_once', async () => {
    const sessions = await getSessions()
    const [left, right] = [await open(sessions), await open(sessions)]
    const seen = [await record(sessions, left), await record(sessions, right)]
    await Promise.all([sessions.sessionPrompt(left, 'shell: echo left'), sessions.sessionPrompt(right, 'shell: echo right')])
    await Promise.all(seen.map((seen) => seen.event('askRaised')))
    assert.match(sessions.sessionGetPauseState(left).details, /left/)
    assert.match(sessions.sessionGetPauseState(right).details, /right/)
    const inbox = (await sessions.sessionInbox()).map((ask) => ask.session)
    assert.ok(inbox.includes(left) && inbox.includes(right))
    await sessions.sessionPauseConfirm(right, true)
    await seen[1].event('turnFinished')
    assert.equal(sessions.sessionGetStatus(left), 'paused')
    assert.equal(sessions.sessionGetStatus(right), 'idle')
    await sessions.sessionPauseConfirm(left, false)
    await seen[0].event('turnFinished')
  })

  test('m_a8_an_interrupt_while_paused_releases_the_ask', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, CONFIRM)
    const askId = (await seen.event('askRaised')).body.ask.id
    const interrupted = await sessions.sessionPauseInterrupt(id)
    assert.equal(interrupted.found, 'turn')
    assert.equal(interrupted.outcome, 'interrupted')
    assert.deepEqual(interrupted.receipt.asks, [askId])
    assert.equal(sessions.sessionGetPauseState(id), null)
    const error = await failure(sessions.sessionPauseConfirm(id, true, { askId }))
    assert.equal(error.code, 'askClosed')
    assert.equal(error.details.cause, 'interrupted')
  })

  test('m_e4_questions_are_answered_by_id_or_declined', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, QUESTION)
    await seen.event('askRaised')
    assert.equal(sessions.sessionGetPauseState(id), null, 'a question is not a pause')
    await sessions.sessionAnswerQuestion(id, [{ id: 'colour', answer: 'blue' }])
    assert.match((await seen.event('toolFinished')).body.result, /blue/)
    await seen.event('turnFinished')
    await sessions.sessionPrompt(id, QUESTION)
    await seen.event('askRaised', 1)
    await sessions.sessionAnswerQuestion(id, null)
    assert.match((await seen.event('toolFinished', 1)).body.result, /declin/)
    await seen.event('turnFinished', 1)
  })

  test('m_c5_interrupting_a_pause_affects_no_later_turn', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    assert.equal((await sessions.sessionPauseInterrupt(id)).found, 'nothing')
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, CONFIRM)
    await seen.event('askRaised')
    // The first ask stays the last one shown, because no callback is attached any more.
    await sessions.sessionDetach(id, seen.attachment)
    await sessions.sessionPauseConfirm(id, false)
    await sessions.sessionSettled(id)
    await sessions.sessionPrompt(id, 'say@1 one by one')
    assert.equal((await sessions.sessionPauseInterrupt(id)).found, 'nothing', 'no ask is open in this turn')
    await sessions.sessionInterrupt(id)
    await sessions.sessionPrompt(id, 'shell: echo another')
    while (sessions.sessionGetStatus(id) !== 'paused') await new Promise((resolve) => setImmediate(resolve))
    assert.equal((await sessions.sessionPauseInterrupt(id)).found, 'nothing', 'this one was not shown')
    assert.notEqual(sessions.sessionGetPauseState(id), null)
    assert.equal((await sessions.sessionPauseInterrupt(id)).outcome, 'interrupted')
  })

  test('m_a2_a_continue_is_resumed', { skip: remote && 'no built-in tool raises a Continue without a browser' }, async () => {
    const sessions = await getSessions()
    const id = await open(sessions, { policy: 'all' })
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, 'call probe')
    await seen.event('askRaised')
    const { kind, toolName, message } = sessions.sessionGetPauseState(id)
    assert.deepEqual({ kind, toolName, message }, { kind: 'continue', toolName: 'probe', message: 'Look at the page' })
    assert.equal((await failure(sessions.sessionPauseConfirm(id, true))).code, 'kindMismatch')
    await sessions.sessionPauseResume(id)
    assert.match((await seen.event('toolFinished')).body.result, /Resumed/)
  })
})
