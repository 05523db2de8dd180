// Compiles the example and the components of docs/node.md, and runs them in a real terminal.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterEach, before, describe, test } from 'node:test'
import { promisify } from 'node:util'

import xterm from '@xterm/headless'

import { keys, waiters } from './rendered.mjs'
import { folder, program, root, startDaemon } from './support.mjs'

const run = promisify(execFile)
const [COLUMNS, ROWS] = [80, 24]

/** The example, compiled in a folder with its dependencies. */
const example = await folder()

before(async () => {
  await cp(path.join(root, '../../examples/ink-client'), example, {
    recursive: true,
    filter: (from) => !/\/(node_modules|dist)$/.test(from),
  })
  await mkdir(path.join(example, 'node_modules/@types'), { recursive: true })
  const { dependencies, devDependencies } = JSON.parse(await readFile(path.join(example, 'package.json'), 'utf8'))
  for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
    const target = name === 'holdpoint' ? root : path.join(root, 'node_modules', name)
    await symlink(target, path.join(example, 'node_modules', name))
  }
  const page = await readFile(path.join(root, '../../docs/node.md'), 'utf8')
  for (const [at, [, program]] of [...page.matchAll(/^```tsx\n([^]*?)^```$/gm)].entries()) {
    await writeFile(path.join(example, `src/page-${at + 1}.tsx`), program)
  }
  await run(process.execPath, ['node_modules/typescript/bin/tsc'], { cwd: example })
})

const running = []

afterEach(() => {
  for (const child of running.splice(0)) child.kill()
})

/** Runs the example in a terminal, with the program `script` that every Linux has. */
const start = (file, ...args) => startWith({}, file, ...args)

/** Like `start`, with additions to the environment. */
async function startWith(env, file, ...args) {
  const words = [process.execPath, path.join(example, 'dist', file), ...args]
  const quoted = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
  const command = `stty cols ${COLUMNS} rows ${ROWS}; exec ${quoted}`
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: await folder(),
    env: { ...process.env, TERM: 'xterm-256color', SHELL: '/bin/sh', CI: 'false', ...env },
  })
  running.push(child)
  const terminal = new xterm.Terminal({ cols: COLUMNS, rows: ROWS, allowProposedApi: true, scrollback: 1_000 })
  const screen = () => {
    const { active } = terminal.buffer
    return Array.from({ length: active.length }, (_, row) => active.getLine(row).translateToString(true)).join('\n').trim()
  }
  const { look, until } = waiters(screen)
  child.stdout.on('data', (data) => terminal.write(data, look))
  let code
  child.on('exit', (with_) => ((code = with_), look()))
  return {
    screen,
    press: (text) => child.stdin.write(text),
    shows: (pattern) => until(() => pattern.test(screen()) && screen()),
    /**
     * Waits until keys answer the current ask. The promise is about time, so there is no event to
     * wait for.
     */
    guard: () => new Promise((resolve) => setTimeout(resolve, 1_000)),
    ends: async () => {
      await until(() => code !== undefined)
      return code
    },
  }
}

describe('the example', { skip: process.platform !== 'linux' && '`script` has other options on this platform' }, () => {
  test('m_f3_the_example_streams_asks_holds_and_interrupts', async () => {
    const it = await start('main.js', '--model', 'rehearsal', "say I make a file.\nshell: echo hello > made; cat made")
    await it.shows(/I make a file\.[^]*⏸ shell: [^]*echo hello > made[^]*\[Y\] Approve \[N\] Deny \(Esc to interrupt\)/)
    await it.guard()
    it.press('y')
    await it.shows(/\[ok\] hello[^]*Type a prompt/)
    await it.guard()
    it.press('say@20 one two three four five six seven eight nine ten\\n')
    await it.shows(/> say@20/)
    it.press(keys.enter)
    await it.shows(/Thinking\.\.\./)
    await it.shows(/one two three/)
    it.press(keys.ctrl('x'))
    await it.shows(/ctrl\+x …/)
    it.press('p')
    await it.shows(/⏸ PAUSED|PAUSING/)
    it.press(`${keys.ctrl('x')}p`)
    await it.shows(/p pause/)
    await it.shows(/ten[^]*Type a prompt/)
    it.press('hang')
    await it.shows(/> hang/)
    it.press(keys.enter)
    await it.shows(/Thinking/)
    it.press(keys.esc)
    await it.shows(/Agent interrupted[^]*Type a prompt/)
    it.press(keys.ctrl('c'))
    await it.shows(/again to leave/)
    it.press(keys.ctrl('c'))
    assert.equal(await it.ends(), 0)
  })

  test('m_f3_the_example_shows_errors', async () => {
    const it = await start('main.js', '--model', 'rehearsal', '  ')
    await it.shows(/prompt[^]*Type a prompt/)
    it.press('say hello')
    await it.shows(/> say hello/)
    it.press(keys.enter)
    await it.shows(/\nhello\n/)
  })

  test('m_f3_the_example_answers_a_question', async () => {
    const it = await start('main.js', '--model', 'rehearsal', 'ask: What shall it be called?')
    await it.shows(/What shall it be called\?[^]*Your words/)
    await it.guard()
    it.press('Ada')
    await it.shows(/> Ada/)
    it.press(keys.enter)
    await it.shows(/\[ok\] .*Ada/)
  })

  test('m_f4_the_components_of_the_page_run', async () => {
    const it = await start('page-1.js')
    await it.shows(/rehearsal: \d+ tokens\nholdpoint \| [^]*⏸ waiting for approval\n⏸ shell: [^]*\[Y\] Approve/)
    await it.guard()
    it.press('n')
    await it.shows(/Type a prompt/)
  })

  test('m_f4_the_components_of_the_page_show_a_session_of_the_daemon', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
    // The user's own daemon, in an otherwise empty home folder.
    const home = await folder()
    const own = { XDG_CONFIG_HOME: `${home}/config`, XDG_DATA_HOME: `${home}/data`, XDG_RUNTIME_DIR: `${home}/run` }
    const env = { ...own, HOME: home, PATH: process.env.PATH }
    try {
      await run(program, ['new', '--name', 'deploy', '--model', 'rehearsal', 'shell: echo hello'], { cwd: home, env })
      const it = await startWith(env, 'page-2.js')
      await it.shows(/holdpoint \| deploy .*⏸ waiting for approval/)
    } finally {
      await run(program, ['daemon', 'stop'], { env })
    }
  })

  test('m_f3_the_example_attaches_to_a_session_of_the_daemon', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
    const { stateDir, sessions } = await startDaemon()()
    const id = await sessions.sessionOpen({ cwd: await folder(), model: 'rehearsal' })
    await sessions.sessionPrompt(id, 'say from the daemon\nshell: echo attached')
    const it = await start('main.js', '--attach', id, '--state-dir', stateDir)
    await it.shows(/from the daemon[^]*\[Y\]/)
    await it.guard()
    it.press('N')
    await it.shows(/\[denied\][^]*Type a prompt/)
    it.press(keys.ctrl('c'))
    await it.shows(/again/)
    it.press(keys.ctrl('c'))
    assert.equal(await it.ends(), 0)
    assert.equal(sessions.sessionGetStatus(id), 'idle', 'the session continues')
  })

  test('m_f3_the_example_waits_for_a_killed_daemon', { skip: !program && 'HOLDPOINT_PROGRAM is not set' }, async () => {
    const { stateDir, pid, sessions } = await startDaemon()()
    const id = await sessions.sessionOpen({ cwd: await folder(), model: 'rehearsal' })
    await sessions.sessionPrompt(id, 'say from the daemon')
    const it = await start('main.js', '--attach', id, '--state-dir', stateDir)
    await it.shows(/from the daemon[^]*Type a prompt/)
    process.kill(pid, 'SIGKILL')
    await it.shows(/The daemon is gone\./)
    await run(program, ['--state-dir', stateDir, 'daemon', 'start'])
    await sessions.sessionPrompt(id, 'say again')
    const screen = await it.shows(/from the daemon[^]*> say again\n[^]*again\n(?![^]*daemon gone)[^]*Type a prompt/)
    assert.equal(screen.match(/> say from the daemon/g).length, 1, 'the prompt is shown once')
    it.press(keys.ctrl('c'))
    await it.shows(/again to leave/)
    it.press(keys.ctrl('c'))
    assert.equal(await it.ends(), 0)
  })
})
