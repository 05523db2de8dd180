// Tests of the log callback: levels, and the details of sessions with debug logging.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'

import { failure, folder, holdpoint, script } from './support.mjs'

/**
 * Runs a script with a log callback. Returns the records until its exit, and the lines it printed.
 */
async function logged(text, { options = '', env = {} } = {}) {
  const file = path.join(await folder(), 'records')
  const { stdout } = await script(
    `import { writeFileSync } from 'node:fs'
     import * as holdpoint from './index.mjs'
     const { sessionOpen, sessionPrompt, sessionSettled, sessionSetDebug, sessionRename, sessionSnapshot } = holdpoint
     const open = () => sessionOpen({ cwd: '/tmp', model: 'rehearsal' })
     const records = []
     holdpoint.start({ log: (record) => records.push(record), ${options} })
     process.on('exit', () => writeFileSync(${JSON.stringify(file)}, JSON.stringify(records)))
     ${text}`,
    { env: { ...process.env, HOLDPOINT_LOG: '', ...env } },
  )
  return { records: JSON.parse(await readFile(file, 'utf8')), lines: stdout.trim().split('\n') }
}

const levels = (records) => [...new Set(records.map(({ level }) => level))].sort()

test('m_f2_a_session_with_debug_enabled_logs_at_debug_level', async () => {
  const { records, lines } = await logged(`
    const [quiet, close] = [await open(), await open()]
    console.log(quiet)
    console.log(close)
    const turns = async () => {
      for (const id of [quiet, close]) await sessionPrompt(id, 'say some words')
      for (const id of [quiet, close]) await sessionSettled(id)
    }
    await turns()
    await sessionSetDebug(close, true)
    await turns()
    await sessionSetDebug(close, false)
    await turns()`)
  const [quiet, close] = lines.map((id) => records.filter(({ session }) => session === id))
  assert.deepEqual(levels(quiet), ['info'])
  assert.deepEqual(levels(close), ['debug', 'info'])
  // Debug records appear between these two and at no other time.
  const [on, off] = [true, false].map((enabled) => close.findIndex((record) => record.fields.enabled === enabled))
  assert.deepEqual(levels(close.slice(0, on)), ['info'])
  assert.deepEqual(levels(close.slice(off)), ['info'])
  const asked = close.find(({ message }) => message === 'model request sent')
  const { turn, step, model } = asked.fields
  assert.deepEqual({ turn, step, model }, { turn: '2', step: 1, model: 'rehearsal' })
  assert.equal(asked.target, 'holdpoint_session::turn::answer')
  assert.ok(Math.abs(asked.at - Date.now()) < 600_000, `${asked.at} is milliseconds`)
  // Text of the conversation is never logged.
  assert.doesNotMatch(JSON.stringify(records), /some words/)
})

test('the_environment_overrides_the_configured_log_levels', async () => {
  const turn = "const id = await open(); await sessionPrompt(id, 'say one'); await sessionSettled(id)"
  const config = { options: "config: 'log = \"holdpoint=debug\"'" }
  assert.deepEqual(levels((await logged(turn)).records), ['info'])
  assert.deepEqual(levels((await logged(turn, config)).records), ['debug', 'info'])
  const { records } = await logged(turn, { ...config, env: { HOLDPOINT_LOG: 'error' } })
  assert.deepEqual(records, [])
})

test('m_f1_invalid_log_levels_and_callbacks_are_refused', async () => {
  const config = await failure(() => holdpoint.start({ config: 'log = "a=b=c"', log: () => {} }))
  assert.equal(config.code, 'config')
  assert.match(config.message, /a=b=c/)
  assert.equal((await failure(() => holdpoint.start({ log: 'console' }))).code, 'invalidArgument')
  assert.equal((await failure(() => holdpoint.start({ log: () => {}, logg: 1 }))).code, 'invalidArgument')
})

test('waiting_log_records_are_delivered_at_the_exit', async () => {
  const { records, lines } = await logged(`
    const id = await open()
    console.log(id)
    setImmediate(() => process.exit())`)
  const messages = records.filter(({ session }) => session === lines[0]).map(({ message }) => message)
  assert.equal(messages.at(-1), 'shut down')
})

test('an_error_in_the_log_callback_is_reported_and_the_next_record_follows', async () => {
  const { stdout } = await script(`
    import * as holdpoint from './index.mjs'
    import { once } from 'node:events'
    const seen = []
    holdpoint.start({ log: ({ message }) => {
      seen.push(message)
      if (seen.length === 1) throw new Error('thrown at ' + message)
      if (seen.length === 2) return Promise.reject(new Error('rejected at ' + message))
    } })
    const warnings = []
    process.on('warning', ({ name, message }) => warnings.push(name + ': ' + message.split('\\n')[0]))
    const id = await holdpoint.sessionOpen({ cwd: '/tmp', model: 'rehearsal' })
    await holdpoint.sessionRename(id, 'another')
    await holdpoint.sessionRename(id, 'a-third')
    while (warnings.length < 2) await once(process, 'warning')
    process.on('exit', () => {
      const expected = ['thrown', 'rejected'].map((how, n) => \`HoldpointWarning: a callback of start failed: Error: \${how} at \${seen[n]}\`)
      console.log(JSON.stringify(warnings) === JSON.stringify(expected), seen.filter((message) => message === 'renamed').length)
    })`)
  assert.equal(stdout, 'true 2\n')
})

test('dropped_log_records_are_counted', async () => {
  const many = 7_000
  const { records } = await logged(
    `const id = await open()
     const { seq } = sessionSnapshot(id)
     const renamed = Array.from({ length: ${many} }, (_, n) => sessionRename(id, 'name-' + n))
     // The event loop is blocked, and takes no records, until all of them are logged.
     while (sessionSnapshot(id).seq < seq + ${many}) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
     await Promise.all(renamed)
     while (records.at(-1).message !== 'records were dropped') await new Promise(setImmediate)
     await sessionRename(id, 'the-last')`,
    { env: { HOLDPOINT_LOG: 'off,holdpoint_session::actor::verbs=info,holdpoint_napi=warn' } },
  )
  const gap = records.findIndex(({ message }) => message === 'records were dropped')
  const { level, fields } = records[gap]
  assert.equal(level, 'warn')
  assert.ok(gap > 2_000 && fields.count > 0, `${gap} delivered, ${fields.count} dropped`)
  assert.equal(gap + fields.count, many)
  assert.deepEqual(records.slice(gap + 1).map(({ fields }) => fields.name), ['the-last'])
})

test('t_j1_a_panic_is_logged_without_secrets', async () => {
  const key = 'sk-proj-abcdefghijklmnopqrstuvwxyz0123456789AB'
  const { records } = await logged(`
    import { createRequire } from 'node:module'
    const { Panics } = createRequire(import.meta.url)('./native.js')
    const panics = new Panics()
    try { panics.atOnce() } catch {}
    await sessionRename(await open(), '${key}')`)
  const panic = records.find(({ message }) => message === 'a panic')
  assert.equal(panic.level, 'error')
  assert.match(panic.fields.panic, /at once/)
  const { fields } = records.find(({ message }) => message === 'renamed')
  assert.match(fields.name, /masked/)
  assert.doesNotMatch(JSON.stringify(records), /uvwxyz/)
})
