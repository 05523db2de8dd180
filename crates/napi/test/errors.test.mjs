// Tests of errors: every declared code is thrown by real code, with its shape.
import assert from 'node:assert/strict'
import { open as openFile, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'
import { after, test } from 'node:test'

import { connect } from '../index.mjs'
import { everywhere, failure, folder, holdpoint, open, program, record, root, run, script, startDaemon } from './support.mjs'

const require = createRequire(import.meta.url)
const declarations = await readFile(path.join(root, 'index.d.ts'), 'utf8')

/** Codes that were thrown. */
const thrownCodes = new Set()

/**
 * Checks that a call fails with this code, and that the error has the shape of all errors of the
 * package.
 */
async function fails(code, what) {
  const error = await failure(what)
  assert.equal(error.code, code, `${code}: ${error.stack}`)
  assert.ok(error instanceof Error)
  assert.ok(error.message.length > 0)
  assert.ok(error.hint === undefined || error.hint.length > 0)
  thrownCodes.add(code)
  return error
}

everywhere('errors', (getSessions, { remote }) => {
  test('m_f1_refused_requests_have_their_codes', async () => {
    const sessions = await getSessions()
    const cwd = await folder()
    const id = await sessions.sessionOpen({ cwd, name: 'taken', model: 'rehearsal' })
    const opening = (options) => () => sessions.sessionOpen({ cwd, model: 'rehearsal', ...options })
    await fails('workspace', opening({ cwd: '/no/such/folder' }))
    await fails('nameTaken', opening({ name: 'taken' }))
    await fails('badName', opening({ name: ' ' }))
    await fails('policy', opening({ rules: { deny: ['shell('] } }))
    assert.match((await fails('modelSetup', opening({ model: 'openai', env: {} }))).hint, /OPENAI_API_KEY|key/)
    await fails('unknownSession', () => sessions.sessionPrompt('nothing-is-called-so', 'say hello'))
    await fails('emptyPrompt', () => sessions.sessionPrompt(id, ' '))
    await fails('promptTooLong', () => sessions.sessionPrompt(id, 'x'.repeat(1024 * 1024 + 1)))
    await fails('emptyGoal', () => sessions.sessionRun(id, { goal: ' ' }))
    await fails('badTask', () => sessions.sessionRun(id, { goal: 'to do', tasks: [' '] }))
    const { message } = await fails('unknownEvent', () => sessions.sessionAttach(id, () => {}, { after: 1e15 }))
    assert.match(message, /1000000000000000/)
    await fails('live', () => sessions.sessionDelete(id))
    for (const read of ['sessionGetStatus', 'sessionGetPauseState', 'sessionSnapshot']) {
      assert.match((await fails('unknownSession', () => sessions[read]('never-seen'))).hint, /opened, found or attached/)
    }
    await sessions.sessionClose(id)
    await fails('closed', () => sessions.sessionClose(id))
  })

  test('m_f1_busy_sessions_refuse_requests', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    await sessions.sessionPrompt(id, 'hang')
    await fails('turnOpen', () => sessions.sessionRun(id, { goal: 'to do' }))
    await fails('inUse', () => sessions.sessionClose(id, { unusedSince: 1 }))
    for (let waiting = 0; waiting < 32; waiting++) await sessions.sessionPrompt(id, 'say hello')
    assert.match((await fails('queueFull', () => sessions.sessionPrompt(id, 'say hello'))).message, /32/)
    const { receipt } = await sessions.sessionInterrupt(id)
    assert.equal(receipt.prompts.length, 32)
    await fails('notQueued', () => sessions.sessionUnqueue(id, receipt.prompts[0]))
    // Between two iterations no turn is open, but the run is.
    await sessions.sessionHold(id)
    await sessions.sessionRun(id, { goal: 'to do', tasks: ['a'] })
    await fails('runOpen', () => sessions.sessionRun(id, { goal: 'to do' }))
    assert.equal((await sessions.sessionInterrupt(id)).found, 'run')
    await sessions.sessionClose(id)
  })

  test('m_f1_ambiguous_and_inexact_errors_list_the_matches', async () => {
    const sessions = await getSessions()
    const [cwd, twins] = [await folder(), []]
    while (twins.length < 2) {
      const id = await sessions.sessionOpen({ cwd, name: 'twin', model: 'rehearsal' })
      await sessions.sessionClose(id)
      twins.push(id)
    }
    const { details: { ids } } = await fails('ambiguous', () => sessions.sessionDelete('twin'))
    assert.deepEqual([...ids].sort(), [...twins].sort())
    const begun = await fails('inexact', () => sessions.sessionDelete(twins[0].slice(0, 6)))
    assert.deepEqual(begun.details, { given: twins[0].slice(0, 6), session: twins[0] })
    await fails('inexact', () => sessions.sessionClose(twins[0].slice(0, 6)))
    for (const id of twins) await sessions.sessionDelete(id)
  })

  test('m_f1_a_busy_session_beyond_the_limit_is_refused', async () => {
    const sessions = await getSessions()
    const busy = []
    const fill = async () => {
      for (let tried = 0; tried < 12; tried++) {
        const id = await open(sessions)
        busy.push(id)
        await sessions.sessionPrompt(id, 'hang')
      }
    }
    const { message, hint } = await fails('tooManySessions', fill)
    assert.match(message, /10/)
    assert.match(hint, /max_sessions/)
    await Promise.all(busy.map((id) => sessions.sessionClose(id)))
  })

  test('m_a5_answers_without_effect_have_their_error_codes', async () => {
    const sessions = await getSessions()
    const [id, other] = [await open(sessions), await open(sessions)]
    const seen = await record(sessions, id)
    await fails('nothingShown', () => sessions.sessionPauseConfirm(id, true))
    await sessions.sessionPrompt(id, 'shell: echo asked\n---\nshell: echo again')
    const askId = (await seen.event('askRaised')).body.ask.id
    await fails('kindMismatch', () => sessions.sessionPauseResume(id, { askId }))
    await fails('unknownAsk', () => sessions.sessionPauseConfirm(id, true, { askId: `${id}.999999` }))
    // An ask of another session.
    await fails('unknownAsk', () => sessions.sessionPauseConfirm(other, true, { askId }))
    assert.equal(sessions.sessionGetPauseState(id).id, askId)
    await sessions.sessionPauseConfirm(id, false, { askId })
    const { details } = await fails('alreadyAnswered', () => sessions.sessionPauseConfirm(id, true, { askId }))
    assert.deepEqual(details.by, { type: 'client', name: 'node', pid: process.pid })
    const next = (await seen.event('askRaised', 1)).body.ask.id
    await sessions.sessionInterrupt(id)
    assert.equal((await fails('askClosed', () => sessions.sessionPauseConfirm(id, true, { askId: next }))).details.cause, 'interrupted')
    await sessions.sessionPrompt(id, 'ask: What?')
    await seen.event('askRaised', 2)
    await fails('incompleteAnswer', () => sessions.sessionAnswerQuestion(id, []))
    await sessions.sessionInterrupt(id)
  })

  test('m_f1_invalid_arguments_reject_the_promise', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const circle = {}
    const wrong = {
      'an unknown policy': () => sessions.sessionOpen({ policy: 'whatever' }),
      'a misspelt option': () => sessions.sessionOpen({ polcy: 'readonly' }),
      'an unknown kind of rules': () => sessions.sessionOpen({ rules: { alow: [] } }),
      'a fraction': () => sessions.sessionOpen({ maxSteps: 1.5 }),
      'a negative number': () => sessions.sessionAttach(id, () => {}, { after: -1 }),
      'a negative limit': () => sessions.sessionAttach(id, () => {}, { limit: -1 }),
      'NaN': () => sessions.sessionOpen({ maxSteps: NaN }),
      'infinity': () => sessions.sessionRun(id, { goal: 'x', limits: { iterations: Infinity } }),
      'NaN as a limit': () => sessions.sessionRun(id, { goal: 'x', limits: { iterations: Number(undefined) } }),
      'a symbol': () => sessions.sessionOpen({ rules: { deny: Symbol('x') } }),
      'a function': () => sessions.sessionOpen({ policy: () => 'readonly' }),
      'a map': () => sessions.sessionOpen(new Map([['policy', 'readonly']])),
      'an array': () => sessions.sessionOpen(['.', null, 'rehearsal']),
      'a bigint': () => sessions.sessionOpen({ maxSteps: 1n }),
      'a circular reference': () => sessions.sessionOpen(Object.assign(circle, { circle })),
      'NaN as an ask': () => sessions.sessionPauseConfirm(id, true, { askId: NaN }),
      'NaN as an attachment': () => sessions.sessionDetach(id, NaN),
      'a missing callback': () => sessions.sessionAttach(id),
      'a text as onEnd': () => sessions.sessionAttach(id, () => {}, { onEnd: 'later' }),
      'a missing id': () => sessions.sessionPrompt(undefined, 'say hello'),
      'a number as a prompt': () => sessions.sessionPrompt(id, 5),
      'a text as the approval': () => sessions.sessionPauseConfirm(id, 'yes'),
      'an invalid ask id': () => sessions.sessionPauseConfirm(id, true, { askId: 'none' }),
      'a misspelt askId': () => sessions.sessionPauseConfirm(id, true, { askID: `${id}.1` }),
      'an invalid reply': () => sessions.sessionAnswerQuestion(id, [{ id: 1 }]),
      'a run without a goal': () => sessions.sessionRun(id, { task: 1 }),
      'a missing run': () => sessions.sessionRun(id),
      'a negative turn': () => sessions.sessionInterrupt(id, { turn: -1 }),
      'an unknown hold state': () => sessions.sessionToggleHold(id, 'maybe'),
      'a wrong option of a loop': () => sessions.sessionEvents(id, { after: 'now' }).next(),
    }
    for (const [what, refuse] of Object.entries(wrong)) {
      const refused = refuse()
      assert.ok(refused instanceof Promise, what)
      const { message } = await fails('invalidArgument', refused)
      assert.doesNotMatch(message, /line 1/, `${what}: names a line of the JSON text`)
    }
    assert.match((await failure(sessions.sessionOpen({ polcy: 'readonly' }))).message, /polcy.*policy/)
    await fails('invalidArgument', () => sessions.sessionGetStatus(5))
    assert.equal(sessions.sessionSnapshot(id).hold.state, 'off', 'nothing has changed')
  })

  test('m_b4_attaching_beyond_the_client_limit_is_refused', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const attachAll = async () => {
      for (;;) await sessions.sessionAttach(id, () => {}, { limit: 0 })
    }
    const { message } = await fails(remote ? 'tooManyStreams' : 'tooManyClients', attachAll)
    assert.match(message, /256/)
    await sessions.sessionDetach(id)
    // A daemon has room again when it has noticed that the connections are closed.
    const attachAgain = async () => {
      for (;;) {
        const refused = await sessions.sessionAttach(id, () => {}, { limit: 0 }).then(() => null, (error) => error)
        if (!refused) return
        if (!remote) throw refused
        assert.equal(refused.code, 'tooManyStreams')
      }
    }
    await attachAgain()
    await sessions.sessionClose(id)
  })
})

test('m_f1_a_wrong_or_late_configuration_is_refused', async () => {
  await fails('alreadyStarted', () => holdpoint.start({}))
  await fails('config', () => holdpoint.start({ config: 'modle = 1' }))
  const { stdout } = await script(`
    import { start } from './index.mjs'
    try { start({ config: '[web]\\nallow = ["no host"]' }) } catch ({ code }) { console.log(code) }
    start({ config: '' })
  `)
  assert.equal(stdout, 'config\n', 'a refused start can be repeated')
  const { hint } = await fails('config', connect({ socket: '/none', config: '/home/me/config.toml' }))
  assert.match(hint, /the text of a configuration/)
  await fails('invalidArgument', connect({ statedir: '/none' }))
})

test('m_f1_a_missing_daemon_and_another_version_are_reported', async () => {
  const { hint } = await fails('unreachable', connect({ stateDir: await folder() }))
  assert.match(hint, /holdpoint daemon/)
  // The status of a daemon with another version.
  const socket = path.join(await folder(), 'sock')
  const another = createServer((_, answer) => answer.end(JSON.stringify({ api: 99, version: '9.9.9', pid: 4711 })))
  await new Promise((listening) => another.listen(socket, listening))
  after(() => another.close())
  const error = await fails('otherVersion', connect({ socket }))
  assert.match(error.message, /9\.9\.9.*|4711/)
  assert.match(error.hint, /restart/)
})

test('m_f1_a_sandbox_that_does_not_work_is_an_error', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const link = path.join(await folder(), 'link')
  await symlink(path.dirname(link), link)
  const { sessions } = await startDaemon(`[sandbox]\nwritable = [${JSON.stringify(link)}]\n`)()
  const { message } = await fails('sandbox', () => open(sessions))
  assert.match(message, /has a link/)
  await open(sessions, { sandbox: 'off' })
})

test('m_g1_a_program_of_a_tool_call_can_not_connect', { skip: (!program || process.platform !== 'linux') && 'needs HOLDPOINT_PROGRAM, on Linux' }, async () => {
  const { sessions, stateDir } = await startDaemon()()
  const cwd = await folder()
  const client = `
    import { connect } from ${JSON.stringify(path.join(root, 'index.mjs'))}
    await connect(${JSON.stringify({ stateDir })}).then(() => console.log('connected'), ({ code, hint }) => console.log(code, hint))
  `
  await writeFile(path.join(cwd, 'client.mjs'), client)
  const { stdout } = await run(process.execPath, ['client.mjs'], { cwd })
  assert.equal(stdout, 'connected\n', 'the control: the same program, started by the user')
  const id = await open(sessions, { cwd, policy: 'all', sandbox: 'off' })
  const seen = await record(sessions, id)
  await sessions.sessionPrompt(id, `shell: "${process.execPath}" client.mjs > answer`)
  const { body } = await seen.event('clientRefused')
  assert.equal(body.request, 'GET /v1/status')
  await seen.event('turnFinished')
  assert.match(await readFile(path.join(cwd, 'answer'), 'utf8'), /^fromTool .*--state-dir/)
  thrownCodes.add('fromTool')
})

test('m_f1_killing_a_busy_daemon_is_reported', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const { sessions, pid } = await startDaemon('[limits]\ngrace_ms = 10000\n')()
  const id = await open(sessions, { policy: 'all' })
  const seen = await record(sessions, id)
  // The process uses up its grace, and the daemon is killed meanwhile.
  await sessions.sessionPrompt(id, `shell: trap "" TERM; echo up; while :; do sleep 1; done`)
  await seen.event('output')
  const closing = failure(sessions.sessionClose(id))
  while (sessions.sessionGetStatus(id) !== 'interrupted') await new Promise((resolve) => setImmediate(resolve))
  process.kill(pid, 'SIGKILL')
  await fails('disconnected', () => closing.then((error) => Promise.reject(error)))
  assert.equal((await seen.end()).reason, 'disconnected')
  assert.match((await fails('unreachable', () => sessions.sessionList())).hint, /daemon start/)
})

test('m_f1_a_session_without_readable_facts_is_damaged', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const stateDir = await folder()
  const cli = (...args) => run(program, ['--state-dir', stateDir, ...args])
  await cli('new', '--name', 'lost', '--model', 'rehearsal', '--cwd', '/tmp', 'say hello')
  await cli('wait', 'lost')
  await cli('daemon', 'stop')
  const database = await openFile(path.join(stateDir, 'data/sessions.db'), 'r+')
  // The first page of the table of facts.
  await database.write(Buffer.alloc(4096, 0xa5), 0, 4096, 3 * 4096)
  await database.close()
  await cli('daemon', 'start')
  const sessions = await connect({ stateDir })
  const [{ id, name }] = await sessions.sessionList()
  assert.equal(name, 'lost')
  const error = await fails('damaged', sessions.sessionFind(id))
  assert.match(error.message, /events 1 to \d+/)
  await cli('daemon', 'stop')
})

test('m_b8_failed_saves_are_reported', async () => {
  const stateDir = await folder()
  const { stdout } = await script(`
    import { start, sessionOpen, sessionPrompt, sessionSettled, sessionClose } from './index.mjs'
    import { renameSync } from 'node:fs'
    const code = (promise) => promise.then(() => 'done', ({ code }) => code)
    start({ stateDir: ${JSON.stringify(stateDir)} })
    const id = await sessionOpen({ cwd: '/tmp', model: 'rehearsal' })
    const [there, away] = ['sessions.db', 'away.db'].map((name) => ${JSON.stringify(stateDir)} + '/data/' + name)
    renameSync(there, away)
    console.log((await sessionPrompt(id, 'say kept')).saved)
    console.log(await code(sessionClose(id)))
    console.log(await code(sessionOpen({ cwd: '/tmp', model: 'rehearsal' })))
    renameSync(away, there)
  `)
  assert.deepEqual(stdout.trim().split('\n'), ['false', 'notSaving', 'store'])
  thrownCodes.add('notSaving').add('store')
})

test('m_b8_an_actor_failure_during_a_turn_is_reported', async () => {
  const { Panics } = require('../native.js')
  const id = await open(holdpoint, { policy: 'all' })
  const seen = await record(holdpoint, id)
  await holdpoint.sessionPrompt(id, `shell: trap "" TERM; echo up; while :; do sleep 1; done`)
  await seen.event('output')
  const interrupting = failure(holdpoint.sessionInterrupt(id))
  while (holdpoint.sessionGetStatus(id) !== 'interrupted') await new Promise((resolve) => setImmediate(resolve))
  await new Panics().session(id)
  await fails('gone', () => interrupting.then((error) => Promise.reject(error)))
  // The actor is rebuilt, and attached callbacks continue with it.
  await holdpoint.sessionPrompt(id, 'say again')
  await seen.event('turnFinished', 1)
  await holdpoint.sessionClose(id)
})

test('m_f1_bugs_of_the_package_have_their_codes', async () => {
  const { checked, checkedAsync } = require('../refusals.js')
  const { Panics } = require('../native.js')
  const panics = new Panics()
  await fails('panicked', () => panics.atOnce())
  await fails('failed', checkedAsync(() => panics.unguarded())())
  await fails('failed', () => checked(() => panics.unguarded())())
})

test('m_f4_a_missing_addon_is_reported', async () => {
  const { stdout } = await script(`
    import { createRequire } from 'node:module'
    Object.defineProperty(process, 'arch', { value: 'abacus' })
    try { createRequire(import.meta.url)('./index.js') } catch ({ code, hint }) { console.log(code, hint) }
  `)
  assert.match(stdout, /^noAddon .*@holdpoint\/\w+-abacus/)
  thrownCodes.add('noAddon')
})

test('m_f1_every_declared_error_code_is_thrown', () => {
  const [, union] = declarations.match(/type KnownErrorCode =([^]*?)\n\n/)
  const named = [...union.matchAll(/'(\w+)'/g)].map(([, code]) => code)
  assert.ok(named.length > 30)
  // Codes that other test files or other processes cause.
  const elsewhere = {
    start: 'saved',
    stopped: 'a daemon or process that ends',
    ended: 'react',
    notOwner: 'a session of another machine (the Rust tests of fleets)',
    unknownMachine: 'a machine of no fleet (the Rust tests of fleets)',
    machineUnreachable: 'a machine that does not listen (the Rust tests of fleets)',
    homeAway: 'a folder of another machine (the Rust tests of fleets)',
    placeUnusable: 'a shared folder that this machine lacks (the Rust tests of fleets)',
  }
  const left = named.filter((code) => !thrownCodes.has(code) && !(code in elsewhere))
  assert.deepEqual(left, program ? [] : ['damaged', 'tooManyStreams', 'disconnected', 'fromTool'])
})
