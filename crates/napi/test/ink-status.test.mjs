// Tests of the status bar of an Ink program in every state.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createElement as h } from 'react'

import { StatusBar } from 'holdpoint/ink'

import { CONFIRM, opened, show, shownPart } from './rendered.mjs'
import { everywhere, folder, script } from './support.mjs'

everywhere('the status bar', (getSessions) => {
  test('m_d6_idle_running_asking_pausing_paused', async () => {
    const options = { columns: 100, sandbox: 'off' }
    const { screen, seen, sessions, id } = await shownPart(getSessions, StatusBar, options)
    const { name } = sessions.sessionSnapshot(id).settings
    assert.equal(await screen.shows(/holdpoint/), `holdpoint | ${name} | no sandbox`)
    await sessions.sessionPrompt(id, `${CONFIRM}\n---\nhang`)
    await screen.shows(/⏸ waiting for approval$/)
    await sessions.sessionHold(id)
    await screen.shows(/[◐◓◑◒] PAUSING\.\.\., waiting for approval$/)
    await sessions.sessionPauseConfirm(id, true)
    assert.doesNotMatch(await screen.shows(/⏸ PAUSED$/), /[◐◓◑◒]/)
    await sessions.sessionRelease(id)
    await screen.shows(/[◐◓◑◒]$/)
    // The spinner turns and the time advances.
    const spinners = new Set()
    await screen.shows((text) => spinners.add(text.at(-1)).size === 4)
    await screen.shows(/\| 00:00:0\d \| no sandbox .$/)
    await sessions.sessionInterrupt(id)
    await seen.event('turnFinished')
    await screen.shows(/[^◐◓◑◒]$/)
  })

  test('m_d6_runs_tasks_and_files', async () => {
    const { screen, sessions, id } = await shownPart(getSessions, StatusBar, { asks: 'approve' })
    const goal = '```rehearsal\ncall write_file {"path": "one.txt", "content": "1"}\n---\nhang\n```'
    await sessions.sessionRun(id, { goal, tasks: ['first', 'second'] })
    await screen.shows(/\| Iteration #1 \| ✓0 ●0 ○2 \| 1 file modified( \| no sandbox)? [◐◓◑◒]$/)
    // A narrow terminal shortens whole segments; the label stays.
    await sessions.sessionHold(id)
    await screen.shows(/PAUSING\.\.\.$/)
    for (const width of [80, 60, 48, 40, 30, 24, 14]) {
      screen.resize(width)
      const text = await screen.shows((text) => text.length <= width && /[◐◓◑◒] PAUSING\.\.\.$/.test(text))
      for (const segment of text.slice(0, -12).trim().split(' | ')) {
        assert.match(segment, /^(holdpoint|hp-\S+|\d\d:\d\d:\d\d|(Iteration )?#1|✓0 ●0 ○2|1 file( modified)?|no sandbox|)$/, text)
      }
    }
    await sessions.sessionInterrupt(id)
  })

  const LIMITS = [
    ['1 iteration', 'say once', { iterations: 1 }],
    ['2 iterations', 'say once', { iterations: 2 }],
    ['10 tokens', 'say once', { tokens: 10 }],
    ['1 ms of work', 'wait 20ms', { timeMs: 1 }],
  ]
  for (const [label, script, limits] of LIMITS) {
    test(`m_d6_a_reached_limit_is_shown: ${label}`, async () => {
      const { screen, sessions, id } = await shownPart(getSessions, StatusBar, { columns: 200 })
      await sessions.sessionRun(id, { goal: `\`\`\`rehearsal\n${script}\n\`\`\``, tasks: ['a'], limits })
      await screen.shows((text) => text.endsWith(`⏸ PAUSED: ${label}`))
      await sessions.sessionInterrupt(id)
    })
  }

  test('m_d6_a_reached_limit_is_shown: 3 failures in a row', async () => {
    const sessions = await getSessions()
    const id = await opened(sessions)
    // A run waits too long for a test before each further try. This snapshot has the hold that
    // would follow.
    const hold = { state: 'standing', cause: { type: 'limit', limit: 'failures', count: 3 } }
    const failing = new Proxy(sessions, {
      get: (_, name) => (name === 'sessionSnapshot' ? (id) => ({ ...sessions.sessionSnapshot(id), hold }) : sessions[name]?.bind(sessions)),
    })
    const screen = show(h(StatusBar, { sessionId: id }), { sessions: failing, columns: 200 })
    await screen.shows(/⏸ PAUSED: 3 failures in a row$/)
  })

  test('m_d6_a_closed_session_is_shown_as_closed', async () => {
    const { screen, sessions, id } = await shownPart(getSessions, StatusBar, { columns: 100, script: 'hang' })
    const { name } = sessions.sessionSnapshot(id).settings
    await screen.shows(/[◐◓◑◒]$/)
    await sessions.sessionHold(id)
    await screen.shows(/PAUSING\.\.\.$/)
    await sessions.sessionClose(id)
    const text = await screen.shows(/ closed$/)
    assert.match(text, new RegExp(`^holdpoint \\| ${name}( \\| 00:00:0\\d)? closed$`))
  })
})

/** Returns the status bar of a restored session whose turn had this prompt and this status. */
async function restored(prompt, status) {
  const stateDir = await folder()
  const using = (text) => `
    import { start, sessionFind, sessionGetStatus, sessionOpen, sessionPrompt } from './index.mjs'
    start({ stateDir: ${JSON.stringify(stateDir)} })
    ${text}`
  await script(using(`
    const id = await sessionOpen({ cwd: ${JSON.stringify(stateDir)}, name: 'kept', model: 'rehearsal' })
    await sessionPrompt(id, '${prompt}')
    await sessionPrompt(id, 'say later')
    while (sessionGetStatus(id) !== '${status}') await new Promise(setImmediate)
    process.kill(process.pid, 'SIGKILL')`)).catch(({ signal }) => assert.equal(signal, 'SIGKILL'))
  const { stdout } = await script(using(`
    import { render } from 'ink-testing-library'
    import { createElement as h } from 'react'
    import { StatusBar } from './ink/dist/index.js'
    const { stdout } = render(h(StatusBar, { sessionId: await sessionFind('kept') }))
    while (!stdout.lastFrame()?.includes('PAUSED')) await new Promise(setImmediate)
    console.log(stdout.lastFrame())
    process.exit()`))
  return stdout
}

test('m_d6_a_restored_session_is_shown_as_restored', async () => {
  assert.match(await restored('hang', 'running'), /^holdpoint \| kept .*⏸ PAUSED: restored\n$/)
})

test('the_ask_of_a_restored_turn_is_shown_before_its_hold', async () => {
  const bar = await restored(CONFIRM, 'paused')
  assert.match(bar, /^holdpoint \| kept .*⏸ waiting for approval, then PAUSED: restored\n$/)
})
