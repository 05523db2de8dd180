// Tests of the process that loads the addon: what ends it, and what remains of it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'

import { everywhere, existsSync, folder, open, program, record, root, script, startDaemon, until } from './support.mjs'

const IMPORT = `import * as holdpoint from './index.mjs'
const { sessionOpen, sessionPrompt, sessionAttach, sessionGetStatus, sessionEvents } = holdpoint
const id = await sessionOpen({ cwd: '/tmp', model: 'rehearsal' })
`

test('t_j1_no_panic_ends_node', async () => {
  const { stdout } = await script(`
    import { createRequire } from 'node:module'
    const { Panics } = createRequire(import.meta.url)('./native.js')
    const panics = new Panics()
    const thrown = async (what) => {
      try { await what() } catch (error) { return \`\${error.code}: \${error.message}\` }
    }
    console.log(await thrown(() => panics.atOnce()))
    console.log(await thrown(() => panics.later()))
    console.log(await thrown(() => panics.property))
    console.log(await thrown(() => panics.unguarded()))
    console.log(await thrown(() => panics.task()))
    console.log(await thrown(() => new Promise((_, reject) => panics.callback(reject))))
    ;(() => { for (let n = 0; n < 100; n++) new Panics() })()
    for (let n = 0; n < 5; n++) { globalThis.gc(); await new Promise((resolve) => setImmediate(resolve)) }
    const { sessionOpen } = await import('./index.mjs')
    console.log(typeof await sessionOpen({ cwd: '/tmp', model: 'rehearsal' }))
  `)
  const where = ['at once', 'later', 'in a getter', 'in a task']
  const messages = where.map((where) => `panicked: bug in holdpoint: ${where}`)
  // Where no caller can get the error, napi's own error reports it.
  const unguarded = 'GenericFailure: unguarded'
  const callback = 'GenericFailure: Error: bug in holdpoint: in a callback'
  assert.deepEqual(stdout.trim().split('\n'), [...messages.slice(0, 3), unguarded, messages[3], callback, 'string'])
})

test('t_j1_every_function_of_the_addon_has_a_guard', () => {
  const sources = readdirSync(path.join(root, 'src'), { recursive: true }).filter((name) => name.endsWith('.rs'))
  const functions = sources.flatMap((name) => {
    const text = readFileSync(path.join(root, 'src', name), 'utf8')
    return [...text.matchAll(/#\[napi(\((?:(?!#\[napi)[^])*?\))?\]\n(?:\s*#\[.*\]\n)*\s*pub fn (\w+)/g)]
  })
  // The sources contain every function of the addon.
  const native = createRequire(import.meta.url)('../native.js')
  const isClass = (name) => /^[A-Z]/.test(name)
  const methods = Object.keys(native).filter(isClass).flatMap((name) => Object.getOwnPropertyNames(native[name].prototype))
  // The package adds one method to the class itself.
  const others = ['constructor', 'sessionEvents']
  const exported = [...methods, ...Object.keys(native)].filter((name) => !isClass(name) && !others.includes(name))
  const found = new Set(functions.map(([, , name]) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase())))
  assert.deepEqual(exported.filter((name) => !found.has(name)), [])
  assert.ok(exported.length > 30)
  // The hook that runs when the addon is loaded is not a function of the package.
  const bare = functions.filter(([, how]) => !/catch_unwind|module_exports/.test(how ?? ''))
  assert.deepEqual(bare.map(([, , name]) => name), [])
})

test('m_f1_an_attached_callback_does_not_keep_node_alive', async () => {
  const { stdout } = await script(`${IMPORT}
    await sessionAttach(id, () => {})
    console.log(sessionGetStatus(id))`)
  assert.equal(stdout, 'idle\n')
})

test('m_f1_node_stays_alive_for_a_turn_it_started', async () => {
  const { stdout } = await script(`${IMPORT}
    await sessionAttach(id, ({ body }) => { if (body.type === 'turnFinished') console.log(body.outcome) })
    await sessionPrompt(id, 'wait 200ms\\n' + 'think a\\nsay b\\n'.repeat(2000))`)
  assert.equal(stdout, 'done\n')
})

test('m_f1_node_stays_alive_for_a_followed_turn_of_a_daemon', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
  const { stateDir } = await startDaemon()()
  const following = (attach, prompt) => `
    import { connect } from './index.mjs'
    const daemon = await connect({ stateDir: ${JSON.stringify(stateDir)} })
    const id = await daemon.sessionOpen({ cwd: '/tmp', model: 'rehearsal' })
    ${attach}
    await daemon.sessionPrompt(id, '${prompt}')
    process.on('exit', () => console.log(daemon.sessionGetStatus(id)))`
  const callback = "await daemon.sessionAttach(id, ({ body }) => body.type === 'turnFinished' && console.log(body.outcome))"
  assert.equal((await script(following(callback, 'wait 200ms\\nsay hello'))).stdout, 'done\nidle\n')
  assert.equal((await script(following('', 'hang'))).stdout, 'running\n', 'it continues without this client')
})

test('m_f1_node_stays_alive_for_a_loop_over_events', async () => {
  const { stdout } = await script(`${IMPORT}
    setTimeout(() => sessionPrompt(id, 'say hello'), 100).unref()
    for await (const { body } of sessionEvents(id)) if (body.type === 'turnFinished') break
    console.log('over')`)
  assert.equal(stdout, 'over\n')
})

test('m_f1_threads_of_node_share_one_engine', async () => {
  const { stdout } = await script(`${IMPORT}
    import { Worker } from 'node:worker_threads'
    const worker = new Worker(\`
      import('./index.mjs').then(async ({ sessionFind, sessionGetStatus, sessionPrompt, sessionSettled }) => {
        const id = await sessionFind('\${id}')
        await sessionPrompt(id, 'say hello')
        await sessionSettled(id)
        console.log(sessionGetStatus(id))
      })\`, { eval: true })
    await new Promise((resolve) => worker.on('exit', resolve))
    await sessionPrompt(id, 'say it is still there')
    console.log((await holdpoint.sessionSettled(id)).lastTurn.turn)`)
  assert.equal(stdout, 'idle\n2\n')
})

test('m_b8_the_engine_ends_with_the_last_thread_that_uses_it', async () => {
  const stateDir = await folder()
  // The main thread does not use the engine.
  const { stdout } = await script(`
    import { once } from 'node:events'
    import { Worker } from 'node:worker_threads'
    const first = new Worker(\`
      import('./index.mjs').then(async ({ start, sessionOpen, sessionAttach, sessionPrompt }) => {
        const { parentPort } = await import('node:worker_threads')
        start({ stateDir: ${JSON.stringify(stateDir)} })
        const id = await sessionOpen({ cwd: '/tmp', model: 'rehearsal' })
        await sessionAttach(id, ({ body }) => body.type === 'text' && parentPort.postMessage('says'))
        await sessionPrompt(id, 'say@20 one two three four five six seven eight nine ten')
      })\`, { eval: true })
    await once(first, 'message')
    await first.terminate()
    const second = new Worker(\`
      import('./index.mjs').then(async ({ sessionList }) => {
        const [{ live, lastTurn }] = await sessionList()
        console.log(live, lastTurn.cause.type)
      })\`, { eval: true })
    await once(second, 'exit')`)
  assert.equal(stdout, 'false shutdown\n')
})

/**
 * Returns the processes with this text in their arguments. During `execve` a process has no
 * arguments for a moment.
 */
function marked(mark) {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      return readFileSync(path.join('/proc', pid, 'cmdline'), 'latin1').includes(mark)
    } catch {
      return false
    }
  })
}

for (const how of ['process.exit()', "process.kill(process.pid, 'SIGKILL')"]) {
  test(`m_c2_no_process_survives_${how}`, { skip: process.platform !== 'linux' }, async () => {
    const mark = `3${process.pid}${Math.floor(Math.random() * 1e6)}`
    const cwd = await folder()
    const child = spawn(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import * as holdpoint from './index.mjs'
         const id = await holdpoint.sessionOpen({ cwd: ${JSON.stringify(cwd)}, model: 'rehearsal', policy: 'all' })
         await holdpoint.sessionPrompt(id, 'shell: (setsid sleep ${mark} &) ; trap "" TERM; echo up; sleep ${mark}')
         for await (const { body } of holdpoint.sessionEvents(id)) if (body.type === 'output') break
         console.log('up')
         process.stdin.once('data', () => ${how})`,
      ],
      { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] },
    )
    const lines = createInterface({ input: child.stdout })
    await once(lines, 'line')
    await until(() => marked(mark).length >= 2)
    child.stdin.write('now\n')
    await once(child, 'exit')
    // The supervisor ends them after the grace.
    await until(() => marked(mark).length === 0)
  })
}

everywhere('processes', (getSessions) => {
  test('m_c2_an_interrupt_ends_the_whole_tree', async () => {
    const sessions = await getSessions()
    const cwd = await folder()
    const id = await sessions.sessionOpen({ cwd, model: 'rehearsal', policy: 'all' })
    const seen = await record(sessions, id)
    const mark = `3${process.pid}${Math.floor(Math.random() * 1e6)}`
    await sessions.sessionPrompt(id, `shell: (setsid sleep ${mark} &) ; echo up; sleep ${mark}`)
    await seen.event('output')
    if (process.platform === 'linux') await until(() => marked(mark).length >= 2)
    const { found, outcome, receipt } = await sessions.sessionInterrupt(id)
    assert.deepEqual({ found, outcome }, { found: 'turn', outcome: 'interrupted' })
    assert.equal(receipt.tools[0].name, 'shell')
    assert.ok(receipt.processes.terminated + receipt.processes.killed >= 2)
    if (process.platform === 'linux') assert.deepEqual(marked(mark), [])
    assert.equal((await sessions.sessionInterrupt(id)).found, 'nothing')
    assert.equal(existsSync(cwd), true)
    await sessions.sessionClose(id)
  })
})
