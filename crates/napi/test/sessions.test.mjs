// Tests of sessions as a whole: open, list, find, rename, prompt, hold, run, close and delete.
import assert from 'node:assert/strict'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import path from 'node:path'
import { after, test } from 'node:test'

import { connect } from '../index.mjs'
import { everywhere, failure, folder, open, program, record, script, startDaemon } from './support.mjs'

/** Starts a server that answers like a model and records its requests. */
async function modelServer() {
  const requests = []
  const server = createServer((request, answer) => {
    let body = ''
    request.on('data', (data) => (body += data))
    request.on('end', () => {
      requests.push({ authorization: request.headers.authorization, ...JSON.parse(body) })
      const choices = [{ delta: { role: 'assistant', content: 'It.' } }, { delta: {}, finish_reason: 'stop' }]
      answer.setHeader('content-type', 'text/event-stream')
      for (const choice of choices) {
        const chunk = { id: '1', object: 'chat.completion.chunk', created: 1, model: 'some', choices: [{ index: 0, ...choice }] }
        answer.write(`data: ${JSON.stringify(chunk)}\n\n`)
      }
      answer.end('data: [DONE]\n\n')
    })
  })
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  after(() => server.close())
  return { url: `http://127.0.0.1:${server.address().port}/v1`, requests }
}

everywhere('sessions', (getSessions) => {
  test('m_f1_open_list_find_rename_close_delete', async () => {
    const sessions = await getSessions()
    const cwd = await folder()
    const id = await sessions.sessionOpen({
      cwd, name: 'mine', model: 'rehearsal', policy: 'readonly', sandbox: 'off', asks: 'deny', maxSteps: 3,
      maxTurnTokens: 1000,
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
    await sessions.sessionSetAsks(id, 'wait')
    assert.equal(sessions.sessionSnapshot(id).settings.asks, 'wait')
    await sessions.sessionSetAsks(id, 'deny')
    const wrong = await failure(sessions.sessionSetAsks(id, 'never'))
    assert.match(wrong.message, /`asks` must be one of `wait`, `deny` and `approve`, got "never"/)
    await sessions.sessionSetPolicy(id, 'edits')
    assert.equal(sessions.sessionSnapshot(id).settings.policy, 'edits')
    const noMode = await failure(sessions.sessionSetPolicy(id, 'yolo'))
    assert.match(noMode.message, /`policy` must be one of .*, got "yolo"/)
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

  test('m_f1_detach_accepts_a_name_or_an_id_prefix_and_delete_a_name', async () => {
    const sessions = await getSessions()
    const name = `named-${Math.random().toString(36).slice(2)}`
    const id = await open(sessions, { name })
    for (const what of [name, id.slice(0, -1)]) {
      const seen = await record(sessions, id)
      await sessions.sessionDetach(what)
      assert.equal((await seen.end()).reason, 'detached')
    }
    await sessions.sessionClose(name)
    await sessions.sessionDelete(name)
    assert.equal((await failure(() => sessions.sessionGetStatus(id))).code, 'unknownSession')
  })

  test('m_b2_prompts_queue_and_each_ends_once', async () => {
    const sessions = await getSessions()
    const cwd = await folder()
    const id = await open(sessions, { cwd, policy: 'all' })
    const seen = await record(sessions, id)
    const first = 'shell: until [ -e go ]; do sleep 0.01; done\nsay one'
    assert.deepEqual((await sessions.sessionPrompt(id, first)).position, 0)
    assert.equal(sessions.sessionGetStatus(id), 'running')
    assert.deepEqual((await sessions.sessionPrompt(id, 'say two')).position, 1)
    await writeFile(path.join(cwd, 'go'), '')
    const { lastTurn, queue } = await sessions.sessionSettled(id)
    assert.deepEqual({ turn: lastTurn.turn, outcome: lastTurn.outcome, queue }, { turn: 2, outcome: 'done', queue: [] })
    await seen.event('turnFinished', 1)
    await sessions.sessionDetach(id)
  })

  test('m_d1_hold_release_toggle', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const held = await sessions.sessionHold(id)
    assert.equal(held.state, 'standing')
    assert.equal(held.cause.by.name, 'node')
    assert.equal(sessions.sessionGetStatus(id), 'paused')
    assert.equal(sessions.sessionGetPauseState(id), null, 'a hold is not a pause')
    await sessions.sessionPrompt(id, 'say later')
    assert.equal((await sessions.sessionToggleHold(id, 'off')).state, 'standing', 'the shown state was outdated')
    assert.equal((await sessions.sessionToggleHold(id)).state, 'off')
    assert.equal((await sessions.sessionSettled(id)).lastTurn.outcome, 'done')
    assert.equal((await sessions.sessionRelease(id)).state, 'off')
    assert.equal((await failure(sessions.sessionToggleHold(id, 'maybe'))).code, 'invalidArgument')
  })

  test('m_d5_a_run_works_through_its_tasks', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    const goal = 'Do it.\n```rehearsal\ncall tasks {"action": "start", "task": 1}\n---\ncall tasks {"action": "finish", "task": 1}\n```\n'
    await sessions.sessionRun(id, { goal, tasks: ['the only one'], limits: { iterations: 3 } })
    await seen.event('iterationStarted')
    const { lastRun } = await sessions.sessionSettled(id)
    assert.equal(lastRun.end, 'done')
    assert.equal((await failure(sessions.sessionRun(id, { goal: '' }))).code, 'emptyGoal')
    assert.equal((await failure(sessions.sessionRun(id, { task: 1 }))).code, 'invalidArgument')
    const misspelt = await failure(sessions.sessionRun(id, { goal: 'x', limits: { iteration: 3 } }))
    assert.equal(misspelt.code, 'invalidArgument')
    assert.match(misspelt.message, /`run\.limits\.iteration` is unknown/)
    await sessions.sessionClose(id)
  })

  test('m_e6_a_model_request_uses_the_environment_of_its_session', async () => {
    const sessions = await getSessions()
    const model = await modelServer()
    const env = { PATH: process.env.PATH, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'key of one session', NOT: undefined }
    const id = await open(sessions, { model: 'openai/some', env })
    await sessions.sessionPrompt(id, 'Say it.')
    assert.equal((await sessions.sessionSettled(id)).lastTurn.outcome, 'done')
    const [{ authorization, messages }] = model.requests
    assert.equal(authorization, 'Bearer key of one session')
    assert.match(JSON.stringify(messages.at(-1)), /Say it\./)
    await sessions.sessionClose(id)
  })

  test('m_b9_a_reopened_session_gets_the_current_environment', async () => {
    const sessions = await getSessions()
    process.env.LANG = 'C.UTF-8'
    const id = await open(sessions, { name: 'again', policy: 'all' })
    await sessions.sessionPrompt(id, 'say before')
    await sessions.sessionSettled(id)
    await sessions.sessionClose(id)
    assert.equal((await failure(() => sessions.sessionGetStatus(id))).code, 'unknownSession')
    assert.equal(await sessions.sessionFind('again'), id)
    const seen = await record(sessions, id)
    await sessions.sessionPrompt(id, 'shell: echo "at $LANG by $PATH"')
    const { output } = (await seen.event('toolFinished')).body
    assert.equal(output.head.trim(), `at C.UTF-8 by ${process.env.PATH}`)
    assert.ok(seen.events.some(({ body }) => body.type === 'promptAccepted' && body.text === 'say before'))
    await sessions.sessionClose(id)
  })

  test('m_b9_a_saved_session_is_renamed_and_closed_without_being_opened', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    await sessions.sessionClose(id)
    const busy = []
    const fill = async () => {
      for (;;) {
        const another = await open(sessions)
        busy.push(another)
        await sessions.sessionPrompt(another, 'hang')
      }
    }
    assert.equal((await failure(fill)).code, 'tooManySessions', 'the limit of live sessions is reached')
    await sessions.sessionRename(id, 'renamed')
    assert.equal((await failure(sessions.sessionClose('renamed'))).code, 'closed')
    const line = (await sessions.sessionList()).find((session) => session.id === id)
    assert.deepEqual({ name: line.name, live: line.live }, { name: 'renamed', live: false })
    await Promise.all(busy.map((id) => sessions.sessionClose(id)))
    await sessions.sessionDelete(id)
  })
})

test('m_f1_the_engine_is_set_up_once_before_its_first_use', async () => {
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

test('m_f1_the_configuration_sets_the_system_prompt_and_the_session_limit', async () => {
  const { url, requests } = await modelServer()
  const config = `system_prompt = "You are an oak."\n[limits]\nmax_sessions = 1\n[providers.openai]\napi_key = "k"\nbase_url = "${url}"`
  const { stdout } = await script(`
    import { start, sessionOpen, sessionPrompt, sessionSettled } from './index.mjs'
    start({ config: ${JSON.stringify(config)} })
    const id = await sessionOpen({ cwd: '/tmp', model: 'openai/some' })
    await sessionPrompt(id, 'Who are you?')
    console.log((await sessionSettled(id)).lastTurn.outcome)
    const busy = await sessionOpen({ cwd: '/tmp', model: 'rehearsal' })
    await sessionPrompt(busy, 'hang')
    console.log(await sessionOpen({ cwd: '/tmp', model: 'rehearsal' }).catch(({ code, message }) => code + ' ' + message))
    process.exit()
  `)
  assert.match(stdout, /^done\ntooManySessions too many live sessions: the limit is 1,/)
  assert.match(JSON.stringify(requests[0].messages[0]), /You are an oak\./)
})

test('m_f1_a_daemon_is_found_by_its_folder_or_its_socket', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const { stateDir, sessions } = await startDaemon()()
  const socket = path.join(stateDir, 'run/holdpoint.sock')
  const policy = async (sessions) => sessions.sessionSnapshot(await open(sessions)).settings.policy
  assert.equal(await policy(sessions), 'ask')
  assert.equal(await policy(await connect({ socket, stateDir: '/nowhere' })), 'ask')
  assert.equal(await policy(await connect({ socket, config: 'policy = "readonly"' })), 'readonly')
  // The user's configuration applies to sessions that this connection opens.
  await mkdir(path.join(stateDir, 'config'), { recursive: true })
  await writeFile(path.join(stateDir, 'config/config.toml'), 'policy = "edits"')
  assert.equal(await policy(await connect({ stateDir })), 'edits')
  assert.equal(await policy(await connect({ stateDir, config: '' })), 'ask')
  const found = await script(`
    import { connect } from './index.mjs'
    console.log((await (await connect()).sessionList()).length)
  `, { env: { ...process.env, HOME: stateDir, XDG_RUNTIME_DIR: await linked(stateDir) } })
  assert.equal(found.stdout, '5\n')
})

/** Creates a runtime folder with the daemon's socket in its usual place. */
async function linked(stateDir) {
  const runtime = await folder()
  await symlink(path.join(stateDir, 'run'), path.join(runtime, 'holdpoint'))
  return runtime
}

test('m_f1_changes_by_other_clients_of_a_daemon_update_the_snapshot', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const { stateDir, sessions } = await startDaemon()()
  const other = await connect({ stateDir })
  const id = await open(sessions)
  await other.sessionPrompt(id, 'shell: echo asked')
  // No callback is attached, and the snapshot is updated all the same.
  while (sessions.sessionGetStatus(id) !== 'paused') await new Promise((resolve) => setImmediate(resolve))
  const { id: askId } = sessions.sessionGetPauseState(id)
  await other.sessionPauseConfirm(id, false, { askId })
  const error = await failure(sessions.sessionPauseConfirm(id, true))
  assert.equal(error.code, 'alreadyAnswered')
  await sessions.sessionSettled(id)
})

test('m_b9_a_session_closed_by_another_client_is_found_again', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const { stateDir, sessions } = await startDaemon()()
  const other = await connect({ stateDir })
  const id = await open(sessions, { policy: 'all' })
  await other.sessionClose(id)
  assert.equal((await failure(sessions.sessionPrompt(id, 'say hello'))).code, 'closed', 'a closed session is not reopened unasked')
  assert.equal(await sessions.sessionFind(id), id)
  const seen = await record(sessions, id)
  await sessions.sessionPrompt(id, 'shell: echo "by $PATH"')
  assert.equal((await seen.event('toolFinished')).body.output.head.trim(), `by ${process.env.PATH}`)
  assert.equal((await sessions.sessionSettled(id)).status, 'idle')
  await other.sessionClose(id)
  await sessions.sessionDelete(sessions.sessionSnapshot(id).settings.name)
  assert.equal((await failure(() => sessions.sessionGetStatus(id))).code, 'unknownSession')
})

test('m_f1_a_session_deleted_by_another_client_becomes_unknown', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const { stateDir, sessions } = await startDaemon()()
  const other = await connect({ stateDir })
  const id = await open(sessions)
  await other.sessionClose(id)
  await other.sessionDelete(id)
  const code = () => {
    try {
      return sessions.sessionGetStatus(id)
    } catch (error) {
      return error.code
    }
  }
  while (code() !== 'unknownSession') await new Promise((resolve) => setImmediate(resolve))
})

test('m_d2_hold_at_in_the_configuration_sets_the_boundary_of_a_run', async () => {
  const { stdout } = await script(`
    import { start, sessionOpen, sessionRun, sessionAttach, sessionHold, sessionInterrupt } from './index.mjs'
    start({ config: 'hold_at = "step"' })
    for (const holdAt of [undefined, 'iteration']) {
      const id = await sessionOpen({ cwd: '/tmp', model: 'rehearsal' })
      const holdAtOfRun = new Promise((resolve) => sessionAttach(id, ({ body }) => {
        if (body.type === 'runStarted') resolve(body.run.holdAt)
      }))
      await sessionRun(id, { goal: '\`\`\`rehearsal\\nhang\\n\`\`\`', tasks: ['a'], holdAt })
      console.log(await holdAtOfRun)
      await sessionInterrupt(id)
    }
  `)
  assert.equal(stdout, 'step\niteration\n')
})
