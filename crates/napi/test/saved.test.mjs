// Tests of sessions in this process that are saved in a folder and opened again from there.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'

import { folder, program, run, script } from './support.mjs'

/** A script that starts the engine with saved sessions in this folder. */
const using = (stateDir, text) => `
  import * as holdpoint from './index.mjs'
  const { sessionOpen, sessionFind, sessionList, sessionInbox, sessionAttach, sessionPrompt, sessionSettled } = holdpoint
  const code = (work) => { try { return work() ?? 'done' } catch ({ code, hint }) { return \`\${code}: \${hint}\` } }
  console.log(code(() => holdpoint.start({ stateDir: ${JSON.stringify(stateDir)} })))
  ${text}`

test('m_b7_a_saved_session_is_found_by_the_next_process', async () => {
  const [stateDir, cwd] = [await folder(), await folder()]
  await script(using(stateDir, `
    const id = await sessionOpen({ cwd: ${JSON.stringify(cwd)}, name: 'kept', model: 'rehearsal' })
    console.log((await sessionPrompt(id, 'say one')).saved)
    await sessionSettled(id)
    process.kill(process.pid, 'SIGKILL')`)).catch(({ signal }) => assert.equal(signal, 'SIGKILL'))
  const { stdout } = await script(using(stateDir, `
    const [{ name, live, lastTurn }] = await sessionList()
    console.log(name, live, lastTurn.outcome)
    const id = await sessionFind('kept')
    const texts = []
    await sessionAttach(id, ({ body }) => body.type === 'assistantMessage' && texts.push(body.blocks[0].text))
    await sessionPrompt(id, 'say two')
    console.log((await sessionSettled(id)).lastTurn.turn, texts.join(' '))`))
  assert.equal(stdout, 'done\nkept false done\n2 one two\n')
})

test('m_b9_the_list_is_read_in_pages', async () => {
  const cwd = await folder()
  const { stdout } = await script(`
    import * as holdpoint from './index.mjs'
    for (const name of ['one', 'two', 'three']) {
      await holdpoint.sessionOpen({ cwd: ${JSON.stringify(cwd)}, model: 'rehearsal', name })
    }
    const all = (await holdpoint.sessionList()).map(({ name }) => name)
    const first = await holdpoint.sessionListPage({ limit: 2 })
    const rest = await holdpoint.sessionListPage({ after: first.next })
    const listed = [first, rest].flatMap(({ sessions }) => sessions.map(({ name }) => name))
    console.log(listed.join() === all.join(), first.sessions.length, rest.next)
    for (const options of [{ limit: 0 }, { after: 'x' }]) {
      await holdpoint.sessionListPage(options).catch(({ code, message }) => console.log(code, message))
    }`)
  assert.match(stdout, /^true 2 undefined\ninvalidArgument .*limit.*\ninvalidArgument .*after.*\n$/)
})

test('m_b7_without_a_folder_nothing_is_reported_as_saved', async () => {
  const cwd = await folder()
  const { stdout } = await script(`
    import * as holdpoint from './index.mjs'
    const id = await holdpoint.sessionOpen({ cwd: ${JSON.stringify(cwd)}, model: 'rehearsal' })
    console.log((await holdpoint.sessionPrompt(id, 'say one')).saved)
    const { saved, notSaved } = await holdpoint.sessionSettled(id)
    console.log(saved, notSaved)`)
  assert.equal(stdout, 'false\nfalse the session is kept in memory only and lost when its process ends\n')
})

/**
 * Runs calls on a session that is only saved. Returns the code of each error, and whether the
 * session is live after it.
 */
async function refusals(calls) {
  const [stateDir, cwd] = [await folder(), await folder()]
  await script(using(stateDir, `
    const id = await sessionOpen({ cwd: ${JSON.stringify(cwd)}, name: 'kept', model: 'rehearsal' })
    await sessionPrompt(id, 'say one')
    await sessionSettled(id)
    process.kill(process.pid, 'SIGKILL')`)).catch(({ signal }) => assert.equal(signal, 'SIGKILL'))
  const { stdout } = await script(using(stateDir, `
    const [{ id }] = await sessionList()
    for (const call of [${calls.map((call) => `() => holdpoint.${call}`)}]) {
      const code = await call().catch(({ code }) => code)
      console.log(code, (await sessionList())[0].live)
    }`))
  return stdout.trim().split('\n').slice(1)
}

test('m_a5_a_refused_answer_opens_no_saved_session', async () => {
  const answers = [
    "sessionPauseConfirm(id, true, { askId: id + '.1' })", 'sessionPauseConfirm(id, true)', "sessionPauseConfirm('kept', true)",
  ]
  assert.deepEqual(await refusals(answers), ['unknownAsk false', 'nothingShown false', 'nothingShown false'])
})

test('an_interrupt_without_a_shown_ask_opens_no_saved_session', async () => {
  const interrupts = ['id', "'kept'"].map((given) => `sessionPauseInterrupt(${given}).then(({ found }) => found)`)
  assert.deepEqual(await refusals(interrupts), ['nothing false', 'nothing false'])
})

test('a_call_with_wrong_arguments_opens_no_saved_session', async () => {
  const calls = [
    'sessionPauseConfirm(id, true, { always: 1 })', "sessionPauseResume(id, { ask: '1' })", 'sessionAnswerQuestion(id, [{}])',
    "sessionSetAsks(id, 'later')", "sessionInterrupt(id, { turn: 'one' })", 'sessionRun(id, { goal: 5 })', "sessionToggleHold(id, 'later')",
  ]
  assert.deepEqual(await refusals(calls), calls.map(() => 'invalidArgument false'))
})

test('m_f1_node_exits_even_if_the_last_reserved_number_has_no_event', async () => {
  const [stateDir, cwd] = [await folder(), await folder()]
  await script(using(stateDir, `
    const id = await sessionOpen({ cwd: ${JSON.stringify(cwd)}, name: 'kept', model: 'rehearsal' })
    await sessionPrompt(id, 'say one')`))
  // A later process continues after the numbers that an earlier one had reserved.
  const look = using(stateDir, `
    const id = await sessionFind('kept')
    const seen = []
    await sessionAttach(id, ({ body }) => seen.push(body.type))
    await sessionAttach(id, () => {}, { limit: 1 })
    await sessionSettled(id)
    console.log(seen.filter((type) => type === 'turnFinished').length)`)
  for (let process = 2; process <= 4; process++) {
    assert.equal((await script(look)).stdout, 'done\n1\n', `process ${process}`)
  }
})

test('m_b8_the_end_of_a_process_cuts_its_turns_with_cause_shutdown', async () => {
  const [stateDir, cwd] = [await folder(), await folder()]
  await script(using(stateDir, `
    const id = await sessionOpen({ cwd: ${JSON.stringify(cwd)}, model: 'rehearsal' })
    await sessionAttach(id, ({ body }) => body.type === 'text' && process.exit())
    await sessionPrompt(id, 'say@20 one two three four')`))
  const { stdout } = await script(using(stateDir, `
    const [{ lastTurn }] = await sessionList()
    console.log(lastTurn.outcome, lastTurn.cause.type)`))
  assert.equal(stdout, 'done\ninterrupted shutdown\n')
})

test('m_a11_a_confirm_is_open_again_after_a_restart_and_its_turn_continues', async () => {
  const [stateDir, cwd] = [await folder(), await folder()]
  await script(using(stateDir, `
    const id = await sessionOpen({ cwd: ${JSON.stringify(cwd)}, model: 'rehearsal' })
    await sessionAttach(id, ({ body }) => body.type === 'askRaised' && process.kill(process.pid, 'SIGKILL'))
    await sessionPrompt(id, 'shell: until [ -e go ]; do sleep 0.01; done; echo late > made')`)).catch(({ signal }) => assert.equal(signal, 'SIGKILL'))
  // Node stays alive for the turn, although another process started it and no callback is attached.
  const { stdout } = await script(using(stateDir, `
    import { writeFileSync } from 'node:fs'
    const [{ session, ask }] = await sessionInbox()
    await holdpoint.sessionPauseConfirm(session, true, { askId: ask.id })
    console.log(holdpoint.sessionGetStatus(session))
    writeFileSync(${JSON.stringify(path.join(cwd, 'go'))}, '')`))
  assert.equal(stdout, 'done\nrunning\n')
  assert.ok(existsSync(path.join(cwd, 'made')))
})

test('m_e2_only_one_process_at_a_time_uses_saved_sessions', async () => {
  const stateDir = await folder()
  const { stdout } = await script(using(stateDir, `
    import { execFileSync } from 'node:child_process'
    const another = "import { start } from './index.mjs'; try { start({ stateDir: process.argv[1] }) } catch ({ code, message, hint }) { console.log(code, message, hint) }"
    process.stdout.write(execFileSync(process.execPath, ['--input-type=module', '-e', another, ${JSON.stringify(stateDir)}]))
    console.log(process.pid)`))
  const [, refused, pid] = stdout.trim().split('\n')
  assert.match(refused, new RegExp(`^start another process is using the sessions in .*/data \\(pid ${pid}\\) .*stateDir`))
  assert.equal((await script(using(stateDir, ''))).stdout, 'done\n', 'the lock is free after the process has ended')
})

test('m_e2_the_daemon_and_a_process_use_the_same_sessions_in_turn', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const [stateDir, cwd] = [await folder(), await folder()]
  const holdpoint = (...args) => run(program, ['--state-dir', stateDir, ...args])
  await script(using(stateDir, `await sessionOpen({ cwd: ${JSON.stringify(cwd)}, name: 'shared', model: 'rehearsal' })`))
  const { stdout } = await holdpoint('list')
  assert.match(stdout, /shared/)
  const refused = await script(using(stateDir, ''))
  assert.match(refused.stdout, /^start: if it is the daemon, use connect\(\{ stateDir \}\)/)
  await holdpoint('daemon', 'stop')
})

test('t_h4_saved_sessions_accessible_to_others_are_refused', async () => {
  const stateDir = await folder()
  await mkdir(path.join(stateDir, 'data'))
  // The daemon uses the same folder and the same check.
  await chmod(path.join(stateDir, 'data'), 0o755)
  assert.match((await script(using(stateDir, ''))).stdout, /^store: nothing was changed/)
  await chmod(path.join(stateDir, 'data'), 0o700)
  assert.equal((await script(using(stateDir, ''))).stdout, 'done\n')
})

test('t_h4_a_symlinked_lock_is_not_followed', async () => {
  const stateDir = await folder()
  const [data, other] = [path.join(stateDir, 'data'), path.join(stateDir, 'other')]
  await mkdir(data, { mode: 0o700 })
  await writeFile(other, 'what is there stays')
  await symlink(other, path.join(data, 'daemon.lock'))
  assert.match((await script(using(stateDir, ''))).stdout, /^store: nothing was changed/)
  assert.equal(await readFile(other, 'utf8'), 'what is there stays')
})
