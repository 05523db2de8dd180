// What an Ink program shows of an ask, and the keys that answer it.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createElement as h } from 'react'

import { InputTransition, PauseIndicator, QuestionPrompt } from 'holdpoint/ink'

import { CHOICE, CONFIRM, keys, opened, show, shownPart, waiters, WORDS } from './rendered.mjs'
import { everywhere, holdpoint, record } from './support.mjs'

everywhere('asks on a screen', (place, { remote }) => {
  test('m_f3_a_confirm_shows_message_details_and_keys', async () => {
    const { screen, seen } = await shownPart(place, PauseIndicator, { script: CONFIRM })
    const { ask } = (await seen.event('askRaised')).body
    const text = await screen.shows(/\[Y\]/)
    assert.match(text, /^⏸ shell: /)
    assert.ok(text.includes(ask.request.message))
    assert.match(text, /^│ echo confirmed > made$/m)
    assert.match(text, /\[Y\] Approve \[N\] Deny \(Esc to interrupt\)$/m)
    screen.guard()
    await screen.press('y')
    assert.deepEqual((await seen.event('askAnswered')).body.answer, { type: 'approve' })
    await seen.event('turnFinished')
    await screen.shows(/^$/)
  })

  for (const [key, answer] of [['Y', 'approve'], ['n', 'deny'], ['N', 'deny']]) {
    test(`m_a10_${key}_in_this_case_answers_a_confirm: ${answer}`, async () => {
      const { screen, seen } = await shownPart(place, PauseIndicator, { script: CONFIRM })
      await screen.shows(/\[Y\]/)
      screen.guard()
      await screen.press(key)
      assert.equal((await seen.event('askAnswered')).body.answer.type, answer)
      await seen.event('turnFinished')
    })
  }

  test('m_a10_nothing_but_an_approval_approves', async () => {
    const { screen, seen } = await shownPart(place, PauseIndicator, { script: CONFIRM })
    await screen.shows(/\[Y\]/)
    screen.guard()
    await screen.press(keys.enter, ' ', 'a', 'j', keys.up, keys.paste('y'), keys.ctrl('y'), '\u001by', keys.backspace)
    // Somebody types on: no key of theirs counts, until they stop.
    for (const key of 'by all means, yes') {
      screen.guard(1)
      await screen.press(key)
    }
    screen.guard()
    await screen.press('n')
    assert.equal((await seen.event('askAnswered')).body.answer.type, 'deny')
    await seen.event('turnFinished')
  })

  test('m_a10_keys_count_only_after_a_while', async () => {
    const { screen, seen } = await shownPart(place, PauseIndicator, { script: CONFIRM })
    await screen.shows(/\[Y\]/)
    for (const key of ['y', 'Y']) {
      screen.guard(1)
      await screen.press(key)
    }
    screen.guard()
    await screen.press('n')
    assert.equal((await seen.event('askAnswered')).body.answer.type, 'deny')
    await seen.event('turnFinished')
  })

  test('m_a10_words_for_an_ask_that_somebody_else_answers_stay_until_they_are_left', async () => {
    const { sessions, id, screen, seen } = await shownPart(place, InputTransition, { script: `${WORDS}\n---\n${CONFIRM}` })
    await screen.shows(/What\?/)
    screen.guard()
    await screen.press('m', 'a', 'n')
    const { ask } = (await seen.event('askRaised')).body
    await sessions.sessionAnswerQuestion(id, [{ id: 'name', answer: 'Ann' }], { askId: ask.id })
    assert.match(await screen.shows(/It is no longer asked: nothing is sent \(Esc to leave\)/), /^> man/)
    await seen.event('askRaised', 1)
    // The rest of it, after however long.
    screen.guard()
    await screen.press('y', ' ', keys.backspace, 'n')
    await screen.press(keys.enter)
    await screen.shows(/\[Y\]/)
    screen.guard(1)
    await screen.press('y')
    screen.guard()
    await screen.press('n')
    const answered = await seen.event('askAnswered', 1)
    assert.equal(answered.body.answer.type, 'deny')
    await seen.event('turnFinished')
  })

  test('m_a10_keys_for_an_ask_that_somebody_else_answers_go_nowhere', async () => {
    const { sessions, id, screen, seen } = await shownPart(place, InputTransition, { script: CONFIRM })
    await screen.shows(/\[Y\]/)
    await sessions.sessionPauseConfirm(id, false)
    await seen.event('turnFinished')
    await screen.shows((text) => !text.includes('[Y]') && !text.includes('Esc to interrupt'))
    for (const key of ['y', 'e', keys.esc, 's', keys.enter]) {
      screen.guard(1)
      await screen.press(key)
    }
    screen.guard()
    await screen.press('o', 'h')
    await screen.shows(/^> oh/)
    await screen.press(keys.enter)
    assert.equal((await seen.event('promptAccepted', 1)).body.text, 'oh')
    await seen.event('turnFinished', 1)
  })

  for (const [name, key] of [['esc', keys.esc], ['ctrl_c', keys.ctrl('c')]]) {
    test(`m_a10_${name}_interrupts_a_pause_at_once`, async () => {
      const { screen, seen } = await shownPart(place, PauseIndicator, { script: CONFIRM })
      await screen.shows(/\[Y\]/)
      await screen.press(key)
      assert.equal((await seen.event('askClosed')).body.cause, 'interrupted')
      assert.equal((await seen.event('turnFinished')).body.outcome, 'interrupted')
      await screen.shows(/^$/)
    })
  }

  test('m_f3_a_continue_goes_on_with_enter', { skip: remote && 'no built-in tool stops without a browser' }, async () => {
    const { screen, seen } = await shownPart(place, PauseIndicator, { script: 'call probe', policy: 'all' })
    const text = await screen.shows(/⏸/)
    assert.equal(text.trim(), '⏸ probe: Look at the page (Press Enter to continue)')
    await screen.press(keys.enter)
    screen.guard()
    await screen.press('y', 'n', ' ', keys.enter)
    screen.guard()
    await screen.press(keys.enter)
    assert.equal((await seen.event('askAnswered')).body.answer.type, 'resume')
    await seen.event('turnFinished')
  })

  test('m_a7_how_many_wait_behind_it', async () => {
    const { screen, sessions, id } = await shownPart(place, PauseIndicator, { script: 'shell: echo one\nshell: echo two\nshell: echo three' })
    await screen.shows(/2 more wait/)
    screen.guard()
    await screen.press('n')
    // The next has appeared now: what answered the last does not count for it yet.
    await screen.shows(/1 more waits/)
    await screen.press('y')
    assert.equal(sessions.sessionSnapshot(id).asks.length, 2)
    await sessions.sessionInterrupt(id)
  })

  test('m_e4_a_question_is_answered_by_choice', async () => {
    const { screen, seen } = await shownPart(place, InputTransition, { script: CHOICE })
    const text = await screen.shows(/\[1-2\] Choose/)
    assert.match(text, /Colour: Which\?/)
    assert.match(text, /1\. red - afar/)
    assert.match(text, /2\. grey/)
    assert.match(text, /\[W\] Your own words \[S\] Skip \(Esc to interrupt\)/)
    await screen.press('1')
    screen.guard()
    await screen.press('3', '2', 'w', 's')
    screen.guard()
    await screen.press('2')
    assert.deepEqual((await seen.event('askAnswered')).body.answer, { type: 'reply', answers: [{ id: 'colour', answer: 'grey' }] })
    await seen.event('turnFinished')
  })

  test('m_e4_esc_goes_back_from_words_to_the_options_then_interrupts', async () => {
    const { screen, seen } = await shownPart(place, QuestionPrompt, { script: CHOICE })
    await screen.shows(/\[1-2\]/)
    screen.guard()
    await screen.press('w', 'b', 'l', 'u')
    await screen.shows(/> blu[^]*Esc to go back/)
    await screen.press(keys.esc)
    await screen.shows(/\[1-2\]/)
    screen.guard()
    await screen.press('W', ' ', 'b', 'l', 'u', 'e', keys.enter)
    assert.deepEqual((await seen.event('askAnswered')).body.answer.answers, [{ id: 'colour', answer: 'blue' }])
    await seen.event('turnFinished')
  })

  test('m_e4_esc_interrupts_where_there_is_nothing_to_go_back_to', async () => {
    for (const script of [CHOICE, WORDS]) {
      const { screen, seen } = await shownPart(place, QuestionPrompt, { script })
      await screen.shows(/Esc to interrupt/)
      await screen.press(keys.esc)
      assert.equal((await seen.event('turnFinished')).body.outcome, 'interrupted')
      await screen.shows(/^$/)
    }
  })

  test('m_e4_words_are_typed_and_nothing_is_no_answer', async () => {
    const { screen, seen } = await shownPart(place, QuestionPrompt, { script: WORDS })
    await screen.shows(/Your words/)
    await screen.press('z')
    screen.guard()
    await screen.press(keys.enter, ' ', keys.enter, keys.paste('two words'), keys.enter)
    assert.deepEqual((await seen.event('askAnswered')).body.answer.answers, [{ id: 'name', answer: 'two words' }])
    await seen.event('turnFinished')
  })

  test('m_a10_skip_is_a_choice_of_its_own', async () => {
    for (const [script, key] of [[CHOICE, 's'], [CHOICE, 'S'], [WORDS, keys.ctrl('d')]]) {
      const { screen, seen } = await shownPart(place, QuestionPrompt, { script })
      await screen.shows(/Skip/)
      screen.guard()
      await screen.press(key)
      assert.deepEqual((await seen.event('askAnswered')).body.answer, { type: 'cancel' })
      assert.equal((await seen.event('turnFinished')).body.outcome, 'done')
    }
  })

  test('m_e4_questions_come_one_after_the_other', async () => {
    const script = `call ask_user {"questions": [
      {"id": "one", "header": "One", "question": "First?", "options": [{"label": "a"}, {"label": "b"}]},
      {"id": "two", "header": "Two", "question": "Second?"}
    ]}`
    const { screen, seen } = await shownPart(place, QuestionPrompt, { script })
    await screen.shows(/First\? \(1 of 2\)[^]*Skip all/)
    screen.guard()
    await screen.press('2')
    await screen.shows(/Second\? \(2 of 2\)/)
    await screen.press('x', keys.enter)
    const { answers } = (await seen.event('askAnswered')).body.answer
    assert.deepEqual(answers, [{ id: 'one', answer: 'b' }, { id: 'two', answer: 'x' }])
    await seen.event('turnFinished')
  })

  test('t_c7_no_escape_reaches_the_terminal', async () => {
    const script = `call ask_user {"questions": [{"id": "a", "header": "\\u001b[31mred", "question": "\\u001b]0;title\\u0007 \\u202ex?",
      "options": [{"label": "\\u001b[2J", "description": "\\u009b1m"}, {"label": "b\\nc"}]}]}`
    const { screen, seen, sessions, id } = await shownPart(place, QuestionPrompt, { script })
    const text = await screen.shows(/\[1-2\]/)
    const bare = text.replace(/\u001b\[[\d;]*m/g, '')
    assert.doesNotMatch(bare.replace(/\n/g, ''), /[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/)
    assert.doesNotMatch(text, /\u001b\[31mred/)
    assert.ok(bare.includes('\\u{1b}[2J'))
    assert.ok(bare.includes('\\u{202e}'))
    await sessions.sessionInterrupt(id)
    await seen.event('turnFinished')
  })
})

test('m_a10_an_answer_that_is_not_taken_is_told_and_asked_for_again', async () => {
  const id = await opened(holdpoint)
  const seen = await record(holdpoint, id)
  await holdpoint.sessionPrompt(id, CONFIRM)
  let refusals = 0
  const { look, until } = waiters(() => `${refusals} refusals`)
  const sessions = {
    ...holdpoint,
    sessionPauseConfirm: async (...args) => {
      if (refusals++ === 0) throw Object.assign(new Error('the daemon is \u001b[31mgone'), { code: 'disconnected', hint: 'wait' })
      look()
      return holdpoint.sessionPauseConfirm(...args)
    },
  }
  const screen = show(h(PauseIndicator, { sessionId: id }), { sessions })
  await screen.shows(/\[Y\]/)
  screen.guard()
  await screen.press('y')
  await screen.shows((text) => text.includes('the daemon is \\u{1b}[31mgone (wait)'))
  await screen.press('y')
  assert.equal(refusals, 1)
  screen.guard()
  await screen.press('y', 'y')
  await until(() => refusals === 2)
  await seen.event('turnFinished')
  assert.equal(refusals, 2, 'an answer is sent once')
})
