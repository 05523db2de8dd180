// Compares real results and callback arguments with the declarations, by means of the TypeScript
// compiler.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'

import { everywhere, failure, folder, open, record, root, run } from './support.mjs'
import { test } from 'node:test'

const CHOICE = `call ask_user {"questions": [{"id": "c", "header": "C", "question": "Which?", "options": [{"label": "red"}, {"label": "grey"}]}, {"id": "d", "header": "D", "question": "And?"}]}`

everywhere('types', (getSessions) => {
  test('m_f4_results_and_events_match_their_declarations', async () => {
    const sessions = await getSessions()
    const id = await open(sessions)
    const seen = await record(sessions, id)
    /** Values, each with its declared type. */
    const values = [['Snapshot', seen.snapshot], ['SessionId', id]]
    const keep = async (type, value) => (values.push([type, await value]), values.at(-1)[1])
    const ask = async (skip) => (await seen.event('askRaised', skip)).body.ask.id

    await keep('Prompted', sessions.sessionPrompt(id, `think Well.\nsay Hello.\nshell: echo made > made; cat made\n---\n${CHOICE}`))
    const first = await ask(0)
    await keep('PauseState | null', sessions.sessionGetPauseState(id))
    await keep('InboxAsk[]', sessions.sessionInbox())
    await keep('SessionSummary[]', sessions.sessionList())
    await keep('Answered', sessions.sessionPauseConfirm(id, true, { askId: first, always: true }))
    const { code, message, details } = await failure(sessions.sessionPauseConfirm(id, true, { askId: first }))
    values.push(['ErrorBody', { code, message, details }], ["NonNullable<HoldpointError['details']>", details])
    await keep('Answered', sessions.sessionAnswerQuestion(id, [{ id: 'c', answer: 'red' }, { id: 'd', answer: null }], { askId: await ask(1) }))
    await keep('Snapshot', sessions.sessionSettled(id))

    await keep('Hold', sessions.sessionHold(id))
    await keep('Snapshot', sessions.sessionSnapshot(id))
    await sessions.sessionPrompt(id, 'say Held.')
    await keep('Hold', sessions.sessionRelease(id))
    await sessions.sessionSettled(id)
    await keep('RunStarted', sessions.sessionRun(id, { goal: 'to do', tasks: ['a', 'b'], limits: { iterations: 1 } }))
    await seen.event('runStarted')
    await keep('Snapshot', sessions.sessionSettled(id))
    await keep('Interrupted', sessions.sessionInterrupt(id))
    await sessions.sessionSettled(id)
    await keep('Interrupted', sessions.sessionInterrupt(id))
    await sessions.sessionPrompt(id, 'shell: echo up; sleep 1000')
    await seen.event('output')
    await sessions.sessionPrompt(id, 'say Later.')
    const { prompt } = await sessions.sessionPrompt(id, 'say Never.')
    await keep('Unqueued', sessions.sessionUnqueue(id, prompt))
    await keep('Interrupted', sessions.sessionInterrupt(id))
    await sessions.sessionRename(id, `named-${id}`)
    await sessions.sessionSetDebug(id, true)
    await sessions.sessionSetAsks(id, 'wait')
    await sessions.sessionSetAsks(id, 'deny')
    await sessions.sessionSetPolicy(id, 'readonly')
    await sessions.sessionSetModel(id, 'rehearsal')
    await keep('Snapshot', sessions.sessionSettled(id))
    await sessions.sessionClose(id)
    values.push(['StreamEnd', await seen.end()], ['Event[]', seen.events])
    await keep('SessionSummary[]', sessions.sessionList())
    const kinds = new Set(seen.events.map(({ body }) => body.type))
    assert.ok(kinds.size >= 25, [...kinds].join(' '))

    const project = await folder()
    const types = [...new Set(values.flatMap(([type]) => type.match(/[A-Z]\w+/g)))].filter((name) => name !== 'NonNullable')
    const lines = values.map(([type, value], at) => `export const v${at}: ${type} = ${JSON.stringify(value, null, 1)}\n`)
    const text = `import type { ${types.join(', ')} } from '${path.join(root, 'index.js')}'\n${lines.join('')}`
    await writeFile(path.join(project, 'values.mts'), text)
    const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
    const strict = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target', 'es2023']
    await run(process.execPath, [tsc, ...strict, 'values.mts'], { cwd: project }).catch(({ stdout }) => assert.fail(stdout))
  })
})
