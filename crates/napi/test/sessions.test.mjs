// Sessions as a whole: opened, listed, found, named, prompted, held, run, closed, deleted; and every way to be refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { everywhere, failure, folder, open, record, script, startDaemon } from './support.mjs'

everywhere('sessions', (place) => {
  test('m_f1_open_list_find_rename_close_delete', async () => {
    const sessions = await place()
    const cwd = await folder()
    const id = await sessions.sessionOpen({
      cwd, name: 'mine', model: 'rehearsal', policy: 'readonly', asks: 'deny', maxSteps: 3, maxTurnTokens: 1000,
    })
    const { settings } = sessions.sessionSnapshot(id)
    assert.deepEqual(
      { ...settings, workspace: cwd },
      {
        id, name: 'mine', workspace: cwd, model: 'rehearsal', asks: 'deny', policy: 'readonly', maxSteps: 3,
        maxTurnTokens: 1000,
      },
    )
    const line = (await sessions.sessionList()).find((session) => session.id === id)
    assert.deepEqual({ name: line.name, live: line.live, status: line.status }, { name: 'mine', live: true, status: 'idle' })
    assert.equal(await sessions.sessionFind('mine'), id)
    await sessions.sessionRename(id, 'yours')
    assert.equal(sessions.sessionSnapshot(id).settings.name, 'yours')
    assert.equal(sessions.sessionSnapshot(id).isDebugEnabled, false)
    await sessions.sessionSetDebug(id, true)
    assert.equal(sessions.sessionSnapshot(id).isDebugEnabled, true)
    await sessions.sessionSetModel(id, 'rehearsal')
    assert.equal((await failure(sessions.sessionSetModel(id, 'nobody/nothing'))).code, 'modelSetup')
    assert.equal((await failure(sessions.sessionDelete(id))).code, 'live')
    await sessions.sessionPrompt(id, 'say hello')
    await sessions.sessionSettled(id)
    await sessions.sessionClose(id)
    assert.equal((await sessions.sessionList()).find((session) => session.id === id).live, false)
    await sessions.sessionDelete(id)
    assert.equal((await sessions.sessionList()).some((session) => session.id === id), false)
    assert.equal((await failure(sessions.sessionFind(id))).code, 'unknownSession')
  })

  test('m_b2_prompts_queue_and_each_ends_once', async () => {
    const sessions = await place()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    assert.deepEqual((await sessions.sessionPrompt(id, 'wait 50ms\nsay one')).position, 0)
    assert.equal(sessions.sessionGetStatus(id), 'running')
    assert.deepEqual((await sessions.sessionPrompt(id, 'say two')).position, 1)
    const { lastTurn, queue } = await sessions.sessionSettled(id)
    assert.deepEqual({ turn: lastTurn.turn, outcome: lastTurn.outcome, queue }, { turn: 2, outcome: 'done', queue: [] })
    await seen.event('turnFinished', 1)
    await sessions.sessionDetach(id)
  })

  test('m_d1_hold_release_toggle', async () => {
    const sessions = await place()
    const id = await open(sessions)
    const held = await sessions.sessionHold(id)
    assert.equal(held.state, 'standing')
    assert.equal(held.cause.by.name, 'node')
    assert.equal(sessions.sessionGetStatus(id), 'paused')
    assert.equal(sessions.sessionGetPauseState(id), null, 'a hold is no pause')
    await sessions.sessionPrompt(id, 'say later')
    assert.equal((await sessions.sessionToggleHold(id, 'off')).state, 'standing', 'that was no longer so')
    assert.equal((await sessions.sessionToggleHold(id)).state, 'off')
    assert.equal((await sessions.sessionSettled(id)).lastTurn.outcome, 'done')
    assert.equal((await sessions.sessionRelease(id)).state, 'off')
    assert.equal((await failure(sessions.sessionToggleHold(id, 'maybe'))).code, 'invalidArgument')
  })

  test('m_d5_a_run_works_through_its_tasks', async () => {
    const sessions = await place()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    const goal = 'Do it.\n```rehearsal\ncall tasks {"action": "start", "task": 1}\ncall tasks {"action": "finish", "task": 1}\n```\n'
    await sessions.sessionRun(id, { goal, tasks: ['the only one'], limits: { iterations: 3 } })
    await seen.event('iterationStarted')
    const after = await sessions.sessionSettled(id)
    assert.ok(after.lastRun || after.hold.state === 'standing')
    assert.equal((await failure(sessions.sessionRun(id, { goal: '' }))).code, 'emptyGoal')
    assert.equal((await failure(sessions.sessionRun(id, { task: 1 }))).code, 'invalidArgument')
    await sessions.sessionClose(id)
  })

  test('m_f1_every_refusal_has_its_code', async () => {
    const sessions = await place()
    const cwd = await folder()
    const id = await sessions.sessionOpen({ cwd, name: 'taken', model: 'rehearsal' })
    const refusals = {
      workspace: () => sessions.sessionOpen({ cwd: '/no/such/folder' }),
      nameTaken: () => sessions.sessionOpen({ cwd, name: 'taken', model: 'rehearsal' }),
      badName: () => sessions.sessionOpen({ cwd, name: ' ', model: 'rehearsal' }),
      modelSetup: () => sessions.sessionOpen({ cwd, model: 'openai', env: {} }),
      policy: () => sessions.sessionOpen({ cwd, model: 'rehearsal', rules: { deny: ['shell('] } }),
      invalidArgument: () => sessions.sessionOpen({ cwd, policy: 'whatever' }),
      unknownSession: () => sessions.sessionPrompt('nothing-is-called-so', 'say hello'),
      emptyPrompt: () => sessions.sessionPrompt(id, ' '),
      promptTooLong: () => sessions.sessionPrompt(id, 'x'.repeat(1024 * 1024 + 1)),
      nothingShown: () => sessions.sessionPauseResume(id),
      emptyGoal: () => sessions.sessionRun(id, { goal: ' ' }),
      badTask: () => sessions.sessionRun(id, { goal: 'to do', tasks: [' '] }),
    }
    for (const [code, refusal] of Object.entries(refusals)) {
      const error = await failure(refusal())
      assert.equal(error.code, code, `${code}: ${error.message}`)
      assert.ok(error instanceof Error && error.message.length > 0)
    }
    assert.match((await failure(refusals.modelSetup())).hint, /OPENAI_API_KEY|key/)
    await sessions.sessionPrompt(id, 'hang')
    assert.equal((await failure(sessions.sessionRun(id, { goal: 'to do' }))).code, 'turnOpen')
    for (let waiting = 0; waiting < 32; waiting++) await sessions.sessionPrompt(id, 'say hello')
    assert.equal((await failure(sessions.sessionPrompt(id, 'say hello'))).code, 'queueFull')
    const { receipt } = await sessions.sessionInterrupt(id)
    assert.equal(receipt.prompts.length, 32)
    for (const read of ['sessionGetStatus', 'sessionGetPauseState', 'sessionSnapshot']) {
      const error = await failure(() => sessions[read]('never-seen'))
      assert.equal(error.code, 'unknownSession')
      assert.match(error.hint, /opened, found or attached/)
    }
    await sessions.sessionClose(id)
  })

  test('m_b1_one_more_busy_session_than_may_be_is_refused', async () => {
    const sessions = await place()
    const busy = []
    let refused
    while (!refused && busy.length < 12) {
      try {
        const id = await open(sessions)
        busy.push(id)
        await sessions.sessionPrompt(id, 'hang')
      } catch (error) {
        refused = error
      }
    }
    assert.equal(refused?.code, 'tooManySessions')
    assert.match(refused.message, /10/)
    await Promise.all(busy.map((id) => sessions.sessionClose(id)))
  })
})

test('m_f1_the_engine_is_set_up_once_and_before_it_is_used', async () => {
  const { stdout } = await script(`
    import { start, sessionOpen, sessionSnapshot } from './index.mjs'
    const code = (work) => { try { work() } catch ({ code }) { return code } }
    console.log(code(() => start({ config: 'modle = 1' })))
    start({ config: 'model = "rehearsal"\\npolicy = "edits"\\n[rules]\\ndeny = ["shell(curl)"]' })
    const id = await sessionOpen({ cwd: '/tmp', rules: { deny: ['shell(wget)'] } })
    const { model, policy, rules } = sessionSnapshot(id).settings
    console.log(JSON.stringify([model, policy, rules.deny]))
    console.log(code(() => start({})))
  `)
  assert.equal(stdout, 'config\n["rehearsal","edits",["shell(curl)","shell(wget)"]]\nalreadyStarted\n')
})

test('m_f1_without_a_daemon_connecting_says_so', async () => {
  const { connect } = await import('../index.mjs')
  const error = await failure(connect({ stateDir: await folder() }))
  assert.equal(error.code, 'unreachable')
  assert.match(error.hint, /holdpoint daemon/)
})

test('m_f1_what_others_do_with_a_daemons_session_is_seen_at_once', { skip: !process.env.HOLDPOINT_PROGRAM }, async () => {
  const { stateDir, sessions } = await startDaemon()()
  const { connect } = await import('../index.mjs')
  const other = await connect({ stateDir })
  const id = await open(sessions)
  await other.sessionPrompt(id, 'shell: echo asked')
  // Nobody is attached: what is published reaches us all the same.
  while (sessions.sessionGetStatus(id) !== 'paused') await new Promise((resolve) => setImmediate(resolve))
  const { id: askId } = sessions.sessionGetPauseState(id)
  await other.sessionPauseConfirm(id, false, { askId })
  const error = await failure(sessions.sessionPauseConfirm(id, true))
  assert.equal(error.code, 'alreadyAnswered')
  await sessions.sessionSettled(id)
})
