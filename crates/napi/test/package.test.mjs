// Tests of the package: its two entries, its declarations, and its installation in a project.
import assert from 'node:assert/strict'
import { copyFile, mkdir, readFile, readdir, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'

import { folder, holdpoint, patience, root, run } from './support.mjs'

const require = createRequire(import.meta.url)
const declarations = await readFile(path.join(root, 'index.d.ts'), 'utf8')

test('m_f4_both_entries_export_the_declared_names', () => {
  const declared = [...declarations.matchAll(/^export declare (?:function|class) (\w+)/gm)].map(([, name]) => name).sort()
  assert.deepEqual(Object.keys(holdpoint).sort(), declared)
  assert.deepEqual(Object.keys(require('../index.js')).sort(), declared)
  assert.equal(holdpoint.sessionOpen, require('../index.js').sessionOpen)
  assert.equal(holdpoint.version(), require('../package.json').version)
  // Every function is a method of the class, so that `connect` returns them all.
  const own = ['AfterAsk', 'AskForm', 'Sessions', 'clientOrigin', 'connect', 'start', 'version']
  const methods = Object.getOwnPropertyNames(holdpoint.Sessions.prototype).filter((name) => name !== 'constructor')
  assert.deepEqual([...methods, ...own].sort(), declared)
})

test('m_f1_every_function_is_called_by_a_test', async () => {
  const files = (await readdir(path.join(root, 'test'))).filter((file) => file.endsWith('.test.mjs'))
  const tests = (await Promise.all(files.map((file) => readFile(path.join(root, 'test', file), 'utf8')))).join('\n')
  const functions = [...declarations.matchAll(/^export declare function (\w+)/gm)].map(([, name]) => name)
  assert.deepEqual(functions.filter((name) => !new RegExp(`\\b${name}\\(`).test(tests)), [])
})

test('m_f4_every_declaration_has_a_doc_comment', () => {
  const bare = declarations.matchAll(/(?<!\*\/\n)^(?: {2}\w+\(|export declare (?:function|class) ).*$/gm)
  assert.deepEqual([...bare].map(([line]) => line).filter((line) => !/^ {2}(constructor|if|for)\(/.test(line)), [])
})

test('m_f4_the_generated_declarations_are_current', async () => {
  await run(process.execPath, ['scripts/declarations.mjs', '--check'], { cwd: root })
  await run(process.execPath, ['scripts/types.mjs', '--check'], { cwd: root })
})

test('m_f4_every_package_lock_is_complete', async () => {
  // The checkout may belong to another user.
  const git = ['-c', 'safe.directory=*', 'ls-files', '*package-lock.json']
  const { stdout } = await run('git', git, { cwd: path.join(root, '../..') })
  const locks = stdout.trim().split('\n')
  assert.ok(locks.includes('crates/napi/package-lock.json'))
  for (const lock of locks) {
    const [from, project] = [path.join(root, '../..', path.dirname(lock)), await folder()]
    for (const file of ['package.json', 'package-lock.json']) await copyFile(path.join(from, file), path.join(project, file))
    const npm = (...args) => run('npm', [...args, '--offline', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: project })
    // Without the packages for other platforms, `npm ci` refuses the lock and `npm install` adds
    // them.
    await npm('ci', '--dry-run').catch(({ stderr }) => assert.fail(`${lock}: ${stderr}`))
    await npm('install', '--package-lock-only')
    const read = (folder) => readFile(path.join(folder, 'package-lock.json'), 'utf8')
    assert.equal(await read(project), await read(from), `${lock}: npm install changes it`)
  }
})

const PROGRAM = `
  const id = await sessionOpen({ cwd: process.cwd(), model: 'rehearsal' })
  const texts = []
  await sessionAttach(id, ({ body }) => {
    if (body.type === 'askRaised') sessionPauseConfirm(id, true)
    if (body.type === 'assistantMessage') texts.push(...body.blocks.map((block) => block.text))
  })
  await sessionPrompt(id, 'shell: (setsid sleep 1000 &); echo hello > greeting\\n---\\nsay Done.')
  const { lastTurn } = await sessionSettled(id)
  console.log(lastTurn?.outcome, texts.join(''))
`
const NAMES = '{ sessionOpen, sessionAttach, sessionPauseConfirm, sessionPrompt, sessionSettled }'

test('m_f4_a_fresh_project_uses_the_package', async () => {
  const [project, npm] = [await folder(), await folder()]
  // As published: the main package, and that of this platform, which is too large to pack.
  await run(process.execPath, ['scripts/platforms.mjs', npm], { cwd: root })
  const pack = ['pack', '--json', '--pack-destination', project]
  const { stdout } = await run('npm', pack, { cwd: path.join(npm, 'holdpoint') })
  const [{ filename }] = Object.values(JSON.parse(stdout))
  const platform = path.join(npm, `${process.platform}-${process.arch}`)
  await writeFile(path.join(project, 'package.json'), JSON.stringify({ name: 'fresh', private: true }))
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', platform, `./${filename}`], { cwd: project })
  for (const name of ['holdpoint', `@holdpoint/${process.platform}-${process.arch}`]) {
    const has = await readdir(path.join(project, 'node_modules', name))
    for (const file of ['LICENSE-APACHE', 'LICENSE-MIT']) assert.ok(has.includes(file), `${name} has ${has}`)
  }
  await writeFile(path.join(project, 'esm.mjs'), `import ${NAMES} from 'holdpoint'\n${PROGRAM}`)
  await writeFile(path.join(project, 'cjs.cjs'), `const ${NAMES} = require('holdpoint')\n;(async () => {${PROGRAM}})()`)
  for (const program of ['esm.mjs', 'cjs.cjs']) {
    const { stdout } = await run(process.execPath, [program], { cwd: project, timeout: patience })
    assert.equal(stdout, 'done Done.\n', program)
  }
  assert.equal(await readFile(path.join(project, 'greeting'), 'utf8'), 'hello\n')

  // TypeScript with the strictest options, from both kinds of modules.
  const modules = path.join(project, 'node_modules')
  await mkdir(path.join(modules, '@types'), { recursive: true })
  for (const name of ['@types/node', '@types/react', 'undici-types', 'csstype', 'react', 'ink', 'type-fest', 'cli-boxes']) {
    await symlink(path.join(root, 'node_modules', name), path.join(modules, name))
  }
  const typed = `import ${NAMES} from 'holdpoint'
import { sessionAnswerQuestion } from 'holdpoint'
import { SessionsProvider, useRustSessionState, type SessionState } from 'holdpoint/react'
import type { Event, HoldpointError, PauseState, Sessions, Snapshot } from 'holdpoint'
export const seen = (event: Event): string => event.body.type === 'text' ? event.body.text : ''
export const codeOf = (error: HoldpointError): string => error.code
export const winner = (error: HoldpointError): string | undefined =>
  error.code === 'alreadyAnswered' && error.details?.by.type === 'client' ? error.details.by.name : undefined
export const twins = (error: HoldpointError): number => error.code === 'ambiguous' ? error.details?.ids.length ?? 0 : 0
// @ts-expect-error An error of this code has no such field.
export const wrong = (error: HoldpointError): unknown => error.code === 'queueFull' && error.details?.ids
export const asked = (sessions: Sessions, id: string): PauseState | null => sessions.sessionGetPauseState(id)
export const shown = (id: string): SessionState['pauseInfo'] => useRustSessionState(id).pauseInfo
export const provider: typeof SessionsProvider = SessionsProvider
export async function main(): Promise<Snapshot> {
  const id = await sessionOpen({ policy: 'edits', env: { ...process.env, ONE: 'more' } })
  await sessionAttach(id, (event) => console.log(seen(event)), { after: 3, onEnd: ({ reason }) => console.log(reason) })
  await sessionPauseConfirm(id, true, { always: true })
  await sessionAnswerQuestion(id, [{ id: 'colour', answer: null }])
  await sessionPrompt(id, 'say hello')
  // @ts-expect-error There is no such policy.
  await sessionOpen({ policy: 'everything' })
  // @ts-expect-error There is no such option.
  await sessionOpen({ polcy: 'edits' })
  return sessionSettled(id)
}
`
  const ofModules = `import * as parts from 'holdpoint/ink'
// @ts-expect-error There is none.
import holdpoint from 'holdpoint'
export const shown: string = parts.shown('text')
export { holdpoint }
`
  for (const [file, text] of [['typed.mts', typed], ['typed.cts', typed], ['module.mts', ofModules]]) {
    await writeFile(path.join(project, file), text)
  }
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
  const strict = ['--strict', '--skipLibCheck', 'false', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess']
  const options = ['--noEmit', ...strict, '--module', 'nodenext', '--target', 'es2023', '--types', 'node']
  const checked = run(process.execPath, [tsc, ...options, 'typed.mts', 'typed.cts', 'module.mts'], { cwd: project })
  await checked.catch(({ stdout }) => assert.fail(stdout))

  // TypeScript in older projects, which do not know `exports`.
  const old = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'commonjs', '--moduleResolution', 'node10', '--target', 'es2023']
  const oldText = `${typed}
import { shown as safe } from 'holdpoint/ink'
export const text: string = safe('text')
// @ts-expect-error There is no such part, and what there is has types.
import { Nothing } from 'holdpoint/ink'
// @ts-expect-error There is no such hook.
import { useNothing } from 'holdpoint/react'
`
  await writeFile(path.join(project, 'old.ts'), oldText)
  const checkedOld = run(process.execPath, [tsc, ...old, '--types', 'node', 'old.ts'], { cwd: project })
  await checkedOld.catch(({ stdout }) => assert.fail(stdout))
})
