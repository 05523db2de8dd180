// Tests of `AskForm` and `AfterAsk`, used like in a custom user interface.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { AfterAsk, AskForm, clientOrigin } from '../index.mjs'
import { failure } from './support.mjs'

const ask = (request, more) => ({ id: 's.1', call: 1, origin: 'tool', since: 0, request, ...more })
const CONFIRM = ask({ type: 'pause', kind: 'confirm', toolName: 'shell', message: 'Run it?' }, { always: 'shell: ls' })
const QUESTIONS = ask({
  type: 'question',
  toolName: 'ask_user',
  questions: [
    { id: 'colour', header: 'Colour', question: 'Which?', options: [{ label: 'red' }, { label: 'grey' }] },
    { id: 'name', header: 'Name', question: 'What?' },
  ],
})

test('m_a10_a_form_turns_keys_into_an_answer', () => {
  const form = new AskForm(CONFIRM, 0)
  assert.deepEqual(form.press('y', 299), { type: 'nothing' })
  assert.deepEqual(form.press('y', 598.5), { type: 'nothing' }, 'the first y was too early')
  assert.deepEqual([form.questionNumber, form.questionCount, form.entry, form.reply], [0, 0, 'choice', null])
  assert.deepEqual(form.press('A', 1000), { type: 'turned' })
  assert.equal(form.armed, 'approve')
  assert.deepEqual(form.press('nothing of ours', 1300), { type: 'turned' })
  assert.equal(form.armed, null)
  assert.deepEqual(form.press('r', 1600), { type: 'turned' })
  assert.equal(form.entry, 'ownWords')
  assert.deepEqual(form.paste('no', 1600), { type: 'typed' })
  assert.equal(form.isDone, false)
  assert.deepEqual(form.press('enter', 1600), { type: 'answer', answer: { type: 'deny', reason: 'no' } })
  assert.equal(form.isDone, true)
  form.reopen(2000)
  assert.deepEqual([form.isDone, form.press('n', 2299).type, form.press('n', 2599).type], [false, 'nothing', 'answer'])
  assert.deepEqual(new AskForm(CONFIRM, 0).press('ctrl+c', 0), { type: 'interrupt' })
})

test('m_a10_a_second_a_or_d_counts_after_700_ms', () => {
  for (const [key, type] of [['a', 'approve'], ['d', 'deny']]) {
    const form = new AskForm(CONFIRM, 0)
    assert.deepEqual(form.press(key, 300), { type: 'turned' })
    assert.equal(form.armed, type)
    assert.deepEqual(form.press(key, 999), { type: 'nothing' })
    assert.deepEqual(form.press(key, 1699), { type: 'answer', answer: { type, always: true } })
  }
})

test('m_a10_a_question_form_keeps_replies_and_text', () => {
  const form = new AskForm(QUESTIONS, 0)
  form.appear(1000)
  assert.deepEqual([form.press('2', 1299).type, form.isBegun], ['nothing', false])
  assert.deepEqual([form.press('2', 1599).type, form.isBegun], ['moved', true])
  assert.deepEqual([form.questionNumber, form.questionCount, form.entry, form.reply], [2, 2, 'words', null])
  // Keys count from the appearance of the next question, and an earlier time does not move it back.
  form.appear(2000)
  form.appear(1600)
  assert.deepEqual([form.press('enter', 2299).type, form.press('x', 2598).type, form.text], ['nothing', 'nothing', ''])
  // The cursor counts UTF-16 code units, and moves by whole characters.
  for (const key of ['é', '€']) form.press(key, 3000)
  form.paste('👨‍👩‍👧', 3000)
  assert.deepEqual([form.text, form.cursor], ['é€👨‍👩‍👧', 10])
  for (const [key, cursor] of [['left', 2], ['home', 0], ['right', 1], ['end', 10], ['left', 2], ['backspace', 1]]) {
    assert.deepEqual(form.press(key, 3000), { type: 'typed' })
    assert.equal(form.cursor, cursor, key)
  }
  form.press('delete', 3000)
  assert.deepEqual([form.press('backtab', 3000), form.reply, form.text], [{ type: 'moved' }, { answer: 'grey' }, ''])
  assert.deepEqual([form.press('s', 3299).type, form.press('s', 3599).type], ['nothing', 'moved'])
  assert.equal(form.press('left', 3899).type, 'typed')
  form.press('backtab', 3899)
  assert.deepEqual(form.reply, { answer: null })
  assert.deepEqual([form.press('tab', 3899).type, form.text], ['moved', 'é'])
  const answers = [{ id: 'colour', answer: null }, { id: 'name', answer: 'é' }]
  assert.deepEqual(form.press('enter', 4199), { type: 'answer', answer: { type: 'reply', answers } })
  assert.equal(form.isBegun, false, 'the replies are sent')
})

test('m_a10_keys_after_an_ask_are_swallowed_until_a_pause', () => {
  const after = new AfterAsk()
  assert.equal(after.swallows('enter', 0), false)
  after.begin(100)
  for (const [at, key] of ['enter', 'y', 'tab', 'paste', '', '\r'].entries()) assert.equal(after.swallows(key, 399 + at * 299), true, key)
  for (const key of ['esc', 'ctrl+c']) assert.equal(after.swallows(key, 2000), false)
  assert.equal(after.swallows('enter', 2299), true)
  assert.equal(after.swallows('enter', 2599), false)
})

test('m_f1_a_form_refuses_invalid_arguments', async () => {
  const form = new AskForm(CONFIRM, 0)
  const after = new AfterAsk()
  for (const refused of [
    () => new AskForm(),
    () => new AskForm(null, 0),
    () => new AskForm({ ...CONFIRM, more: 1 }, 0),
    () => new AskForm({ ...CONFIRM, id: 'none' }, 0),
    () => new AskForm(CONFIRM),
    () => new AskForm(CONFIRM, -1),
    () => new AskForm(CONFIRM, NaN),
    () => form.press('y'),
    () => form.press('y', 1e300),
    () => form.press(1, 0),
    () => form.paste(null, 0),
    () => form.appear(-1),
    () => form.reopen('now'),
    () => after.begin(Infinity),
    () => after.swallows({}, 0),
  ]) {
    assert.equal((await failure(refused)).code, 'invalidArgument', String(refused))
  }
  assert.ok(form instanceof AskForm && after instanceof AfterAsk)
})

test('m_f1_client_origin_describes_the_kind_of_client', () => {
  assert.equal(clientOrigin('approve', 7), 'from the command line (pid 7)')
  assert.equal(clientOrigin('tui', 7), 'from the screen (pid 7)')
  assert.equal(clientOrigin('node'), 'from Node.js')
  assert.equal(clientOrigin('curl/8.5.0'), 'by curl/8.5.0')
})
