// Tests of asks in an Ink program: their display, and the keys that answer them.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createElement as h } from 'react'

import { InputTransition, PauseIndicator, QuestionPrompt } from 'holdpoint/ink'

import { CHOICE, CONFIRM, keys, opened, show, shownPart, waiters, WORDS } from './rendered.mjs'
import { everywhere, holdpoint, record } from './support.mjs'

/**
 * Returns a generator of whole numbers below a bound, which gives the same numbers for the same
 * seed.
 */
function randomBySeed(seed) {
  let state = seed
  return (below) => {
    // The generator of Park and Miller.
    state = (state * 48_271) % (2 ** 31 - 1)
    return state % below
  }
}

everywhere('asks on a screen', (getSessions, { remote }) => {
  test('m_f3_a_confirm_shows_message_details_and_keys', async () => {
    const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM })
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
    test(`m_a10_${key}_answers_a_confirm: ${answer}`, async () => {
      const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM })
      await screen.shows(/\[Y\]/)
      screen.guard()
      await screen.press(key)
      assert.equal((await seen.event('askAnswered')).body.answer.type, answer)
      await seen.event('turnFinished')
    })
  }

  test('m_a10_nothing_but_an_approval_approves', async () => {
    const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM })
    await screen.shows(/\[Y\]/)
    screen.guard()
    await screen.press(keys.enter, ' ', 'a', 'j', keys.up, keys.paste('y'), keys.ctrl('y'), '\u001by', keys.backspace)
    // While the user is typing other text, no key counts until a pause.
    for (const key of 'by all means, yes') {
      screen.guard(1)
      await screen.press(key)
    }
    screen.guard()
    await screen.press('n')
    assert.equal((await seen.event('askAnswered')).body.answer.type, 'deny')
    await seen.event('turnFinished')
  })

  test('m_a10_any_terminal_input_delays_the_answer_keys', async () => {
    const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM })
    await screen.shows(/\[Y\]/)
    for (const input of [...keys.unknown, ...keys.replies, keys.shiftEnter, keys.tab, keys.backtab, keys.delete, keys.ctrl('d'), keys.paste(''), '👩‍👩‍👧']) {
      screen.guard()
      await screen.press(input)
      screen.guard(1)
      await screen.press('y')
    }
    screen.guard()
    await screen.press('n')
    assert.equal((await seen.event('askAnswered')).body.answer.type, 'deny')
    await seen.event('turnFinished')
  })

  test('m_a10_a_key_after_a_terminal_reply_does_not_answer', async () => {
    const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM })
    await screen.shows(/\[Y\]/)
    for (const reply of keys.replies) {
      screen.guard()
      await screen.press(`${reply}y`)
      // However slowly the reply arrives, the key after it is too early.
      screen.guard()
      for (const part of [reply.slice(0, 2), reply[2], reply[3], reply[4], `${reply.slice(5)}y`]) {
        screen.pass(99)
        await screen.press(part)
      }
    }
    screen.guard()
    await screen.press('n')
    assert.equal((await seen.event('askAnswered')).body.answer.type, 'deny')
    await seen.event('turnFinished')
  })

  test('m_a10_always_takes_a_second_press_of_a', async () => {
    // Wide enough for a rule with the path of the workspace in one line.
    const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM, columns: 400 })
    const { always } = (await seen.event('askRaised')).body.ask
    assert.ok((await screen.shows(/\[Y\]/)).includes(`[A] Approve [D] Deny always in this session: ${always}`))
    screen.guard()
    await screen.press('a')
    assert.ok((await screen.shows(/Press A/)).includes(`Press A again to approve always in this session: ${always}`))
    // Any other key cancels the first press.
    screen.guard()
    await screen.press('j')
    await screen.shows(/\[A\] Approve \[D\] Deny always/)
    screen.guard()
    await screen.press('A')
    await screen.shows(/Press A again/)
    // A held key repeats, and does not count as a second press.
    await screen.press('A')
    screen.alwaysGuard(1)
    await screen.press('a')
    await screen.shows(/Press A again/)
    screen.alwaysGuard()
    await screen.press('a')
    assert.deepEqual((await seen.event('askAnswered')).body.answer, { type: 'approve', always: true })
    await seen.event('turnFinished')
  })

  test('m_a10_always_takes_a_second_press_of_d', async () => {
    const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM })
    await screen.shows(/\[D\] Deny always/)
    screen.guard()
    await screen.press('d')
    await screen.shows(/Press D again to deny always/)
    screen.alwaysGuard()
    await screen.press('D')
    assert.deepEqual((await seen.event('askAnswered')).body.answer, { type: 'deny', always: true })
    await seen.event('turnFinished')
  })

  test('m_a10_r_denies_with_a_reason_and_esc_goes_back', async () => {
    const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM })
    await screen.shows(/\[R\] Deny and say why/)
    screen.guard()
    await screen.press('r', 'n', 'o', keys.esc)
    await screen.shows(/\[R\]/)
    screen.guard()
    await screen.press('R')
    await screen.shows(/> no[^]*Reason, then Enter \(Esc to go back\)/)
    await screen.press('t', ' ', 'y', keys.paste('et\nnow'), keys.left, keys.left, keys.left, keys.delete, 'N', keys.enter)
    assert.deepEqual((await seen.event('askAnswered')).body.answer, { type: 'deny', reason: 'not yet Now' })
    await seen.event('turnFinished')
  })

  test('m_a10_keys_count_only_after_the_guard_time', async () => {
    const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM })
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

  const BY_US = new RegExp(`^Answered from Node\\.js \\(pid ${process.pid}\\)$`, 'm')
  const UNSENT = new RegExp(`^Answered from Node\\.js \\(pid ${process.pid}\\); your words were not sent$`, 'm')

  test('m_a10_text_for_an_ask_answered_elsewhere_is_dropped_and_a_line_reports_who', async () => {
    const { sessions, id, screen, seen, isAttached } = await shownPart(getSessions, InputTransition, { script: WORDS })
    await isAttached
    await screen.shows(/What\?/)
    screen.guard()
    await screen.press('m', 'a', 'n')
    await screen.shows(/> man/)
    await sessions.sessionAnswerQuestion(id, [{ id: 'name', answer: 'Ann' }])
    await seen.event('turnFinished')
    assert.match(await screen.shows(/^>\s*\n/), UNSENT)
    // The rest of the user's text.
    for (const key of ['y', ' ', keys.paste('more'), keys.enter, keys.enter]) {
      screen.guard(1)
      await screen.press(key)
    }
    assert.match(await screen.shows(/^>\s*\n/), UNSENT)
    screen.guard()
    await screen.press('o')
    assert.doesNotMatch(await screen.shows(/^> o/), /Answered/)
    await screen.press('k', keys.enter)
    assert.equal((await seen.event('promptAccepted', 1)).body.text, 'ok')
    await seen.event('turnFinished', 1)
  })

  test('m_a10_text_for_an_ask_answered_elsewhere_does_not_answer_the_next_ask', async () => {
    const { sessions, id, screen, seen, isAttached } = await shownPart(getSessions, InputTransition, { script: `${WORDS}\n---\n${CONFIRM}` })
    await isAttached
    await screen.shows(/What\?/)
    screen.guard()
    await screen.press('m', 'a', 'n')
    await sessions.sessionAnswerQuestion(id, [{ id: 'name', answer: 'Ann' }])
    assert.match(await screen.shows(/\[Y\][^]*Answered from/), UNSENT)
    for (const key of ['y', ' ', keys.enter]) {
      screen.guard(1)
      await screen.press(key)
    }
    assert.match(await screen.shows(/\[Y\]/), UNSENT)
    screen.guard()
    await screen.press('n')
    assert.equal((await seen.event('askAnswered', 1)).body.answer.type, 'deny')
    await seen.event('turnFinished')
    assert.doesNotMatch(await screen.shows(/^>/), /Answered from/, 'this user has answered')
  })

  test('m_a10_a_line_reports_why_an_ask_closed_unless_this_user_interrupted', async () => {
    const { sessions, id, screen, seen, isAttached } = await shownPart(getSessions, InputTransition)
    await isAttached
    for (const [turn, [isOurs, words, line]] of [
      [false, [], /^Ask closed: the turn was interrupted$/m],
      [false, ['x'], /^Ask closed: the turn was interrupted; your words were not sent$/m],
      [true, [], null],
    ].entries()) {
      await sessions.sessionPrompt(id, WORDS)
      await screen.shows(/What\?/)
      screen.guard()
      await screen.press(...words)
      await (isOurs ? screen.press(keys.esc) : sessions.sessionInterrupt(id))
      await seen.event('turnFinished', turn)
      await sessions.sessionSettled(id)
      await screen.shows(/^>/)
      // The component gets the event from its own stream, perhaps after the state without the ask.
      if (line) await screen.shows(line)
      else assert.doesNotMatch(await screen.shows(/^>/), /Ask closed/)
    }
  })

  test('m_a10_keys_for_an_ask_answered_elsewhere_are_swallowed', async () => {
    const { sessions, id, screen, seen, isAttached } = await shownPart(getSessions, InputTransition, { script: CONFIRM })
    await isAttached
    await screen.shows(/\[Y\]/)
    await sessions.sessionPauseConfirm(id, false)
    await seen.event('turnFinished')
    await screen.shows((text) => !text.includes('[Y]') && !text.includes('Esc to interrupt'))
    // No text was typed.
    await screen.shows(BY_US)
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
      const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM })
      await screen.shows(/\[Y\]/)
      await screen.press(key)
      assert.equal((await seen.event('askClosed')).body.cause, 'interrupted')
      assert.equal((await seen.event('turnFinished')).body.outcome, 'interrupted')
      await screen.shows(/^$/)
    })
  }

  test('m_f3_enter_resumes_a_continue', { skip: remote && 'no built-in tool raises a Continue without a browser' }, async () => {
    const { screen, seen } = await shownPart(getSessions, PauseIndicator, { script: 'call probe', policy: 'all' })
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

  test('m_a7_the_number_of_waiting_asks_is_shown', async () => {
    const { screen, sessions, id } = await shownPart(getSessions, PauseIndicator, { script: 'shell: echo one\nshell: echo two\nshell: echo three' })
    await screen.shows(/2 more waiting/)
    screen.guard()
    await screen.press('n')
    // The next ask has just appeared: the key that answered the last one does not count for it yet.
    await screen.shows(/1 more waiting/)
    await screen.press('y')
    assert.equal(sessions.sessionSnapshot(id).asks.length, 2)
    await sessions.sessionInterrupt(id)
  })

  test('m_e4_a_question_is_answered_by_choice', async () => {
    const { screen, seen } = await shownPart(getSessions, InputTransition, { script: CHOICE })
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

  test('m_e4_esc_returns_from_typing_to_the_options_and_then_interrupts', async () => {
    const { screen, seen } = await shownPart(getSessions, QuestionPrompt, { script: CHOICE })
    await screen.shows(/\[1-2\]/)
    screen.guard()
    await screen.press('w', 'b', 'l', 'u')
    await screen.shows(/> blu[^]*Esc to go back/)
    await screen.press(keys.esc)
    await screen.shows(/\[1-2\]/)
    screen.guard()
    await screen.press('W', ' ', 'e', keys.home, keys.right, keys.delete, 'L', keys.enter)
    assert.deepEqual((await seen.event('askAnswered')).body.answer.answers, [{ id: 'colour', answer: 'bLu e' }])
    await seen.event('turnFinished')
  })

  test('m_a10_esc_clears_the_text_and_then_interrupts', async () => {
    const { screen, seen } = await shownPart(getSessions, QuestionPrompt, { script: WORDS })
    await screen.shows(/Esc to interrupt/)
    screen.guard()
    await screen.press('m', 'a', 'n')
    await screen.shows(/> man[^]*Esc to clear/)
    await screen.press(keys.esc)
    assert.doesNotMatch(await screen.shows(/Esc to interrupt/), /man/)
    await screen.press(keys.esc)
    assert.equal((await seen.event('askClosed')).body.cause, 'interrupted')
    await seen.event('turnFinished')
  })

  test('m_e4_esc_interrupts_if_nothing_was_typed', async () => {
    for (const script of [CHOICE, WORDS]) {
      const { screen, seen } = await shownPart(getSessions, QuestionPrompt, { script })
      await screen.shows(/Esc to interrupt/)
      await screen.press(keys.esc)
      assert.equal((await seen.event('turnFinished')).body.outcome, 'interrupted')
      await screen.shows(/^$/)
    }
  })

  test('m_e4_typed_text_answers_and_empty_text_does_not', async () => {
    const { screen, seen } = await shownPart(getSessions, QuestionPrompt, { script: WORDS })
    await screen.shows(/Your words/)
    await screen.press('z')
    screen.guard()
    await screen.press(keys.enter, ' ', keys.enter, keys.paste('two words'), keys.enter)
    assert.deepEqual((await seen.event('askAnswered')).body.answer.answers, [{ id: 'name', answer: 'two words' }])
    await seen.event('turnFinished')
  })

  test('m_a10_skip_declines_the_questions', async () => {
    for (const [script, key] of [[CHOICE, 's'], [CHOICE, 'S'], [WORDS, keys.ctrl('d')]]) {
      const { screen, seen } = await shownPart(getSessions, QuestionPrompt, { script })
      await screen.shows(/Skip/)
      screen.guard()
      await screen.press(key)
      assert.deepEqual((await seen.event('askAnswered')).body.answer, { type: 'cancel' })
      assert.equal((await seen.event('turnFinished')).body.outcome, 'done')
    }
  })

  const TWO = `call ask_user {"questions": [
    {"id": "one", "header": "One", "question": "First?", "options": [{"label": "a"}, {"label": "b"}]},
    {"id": "two", "header": "Two", "question": "Second?"}
  ]}`

  test('m_e4_questions_are_shown_one_at_a_time', async () => {
    const { screen, seen } = await shownPart(getSessions, QuestionPrompt, { script: TWO })
    await screen.shows(/First\? \(1 of 2\)[^]*\[S\] Skip \(Tab: next, Esc to interrupt\)$/m)
    screen.guard()
    await screen.press('2')
    await screen.shows(/Second\? \(2 of 2\)[^]*\(Ctrl\+D: Skip, Shift\+Tab: back, Esc to interrupt\)$/m)
    // The question has only just appeared.
    screen.guard(1)
    await screen.press('z')
    screen.guard()
    await screen.press('x', keys.enter)
    const { answers } = (await seen.event('askAnswered')).body.answer
    assert.deepEqual(answers, [{ id: 'one', answer: 'b' }, { id: 'two', answer: 'x' }])
    await seen.event('turnFinished')
  })

  const THREE = `call ask_user {"questions": [${['one', 'two', 'three'].map(
    (id) => `{"id": "${id}", "header": "Q", "question": "${id}?", "options": [{"label": "a"}, {"label": "b"}]}`,
  )}]}`

  test('m_a10_a_repeated_key_does_not_answer_the_next_question', async () => {
    const { screen, seen } = await shownPart(getSessions, QuestionPrompt, { script: THREE })
    await screen.shows(/one\? \(1 of 3\)/)
    screen.guard()
    await screen.press('11')
    await screen.shows(/two\? \(2 of 3\)[^]*\(Tab: next, Shift\+Tab: back, Esc to interrupt\)$/m)
    screen.guard(1)
    await screen.press('1')
    screen.guard()
    // The next question is drawn late. The time starts with that, and an earlier key does not
    // answer.
    const early = screen.press('1')
    screen.guard()
    const unseen = screen.press('1')
    screen.guard()
    await Promise.all([early, unseen])
    await screen.shows(/three\? \(3 of 3\)/)
    screen.guard(1)
    await screen.press('1')
    screen.guard()
    await screen.press('2')
    const { answers } = (await seen.event('askAnswered')).body.answer
    assert.deepEqual(answers.map(({ answer }) => answer), ['a', 'a', 'b'])
    await seen.event('turnFinished')
  })

  test('m_a10_tab_moves_between_questions_and_keeps_replies', async () => {
    const { screen, seen } = await shownPart(getSessions, QuestionPrompt, { script: TWO })
    await screen.shows(/First\?/)
    // Moving to another question answers none, so it needs no time.
    await screen.press(keys.tab)
    await screen.shows(/Second\?/)
    screen.guard()
    await screen.press('x', keys.backtab)
    await screen.shows(/First\?/)
    await screen.press(keys.right)
    await screen.shows(/Second\?[^]*> x/)
    await screen.press(`${keys.backtab}${keys.right}`, keys.backtab)
    screen.guard()
    await screen.press('2')
    await screen.shows(/Second\?[^]*> x/)
    await screen.press(keys.backtab)
    assert.doesNotMatch(await screen.shows(/2\. b ✓/), /1\. a ✓/)
    screen.guard()
    await screen.press('1')
    await screen.shows(/Second\?/)
    screen.guard()
    await screen.press(keys.enter)
    const { answers } = (await seen.event('askAnswered')).body.answer
    assert.deepEqual(answers, [{ id: 'one', answer: 'a' }, { id: 'two', answer: 'x' }])
    await seen.event('turnFinished')
  })

  test('m_a10_skip_skips_the_current_question', async () => {
    for (const [first, second, answers] of [
      [['s'], ['x', keys.enter], [null, 'x']],
      [['2'], ['x', keys.ctrl('d')], ['b', null]],
    ]) {
      const { screen, seen } = await shownPart(getSessions, QuestionPrompt, { script: TWO })
      await screen.shows(/First\?/)
      screen.guard()
      await screen.press(...first)
      await screen.shows(/Second\?/)
      await screen.press(keys.backtab)
      await screen.shows(answers[0] === null ? /First\? \(1 of 2, skipped\)$/m : /2\. b ✓/)
      await screen.press(keys.tab)
      screen.guard()
      await screen.press(...second)
      const { answer } = (await seen.event('askAnswered')).body
      assert.deepEqual(answer.answers, [{ id: 'one', answer: answers[0] }, { id: 'two', answer: answers[1] }])
      await seen.event('turnFinished')
    }
  })

  for (const [name, script, answer] of [['enter', WORDS, ['x', keys.enter]], ['y', CONFIRM, ['y']]]) {
    test(`m_a10_a_repeated_${name}_answers_only_once`, async () => {
      for (const gap of [0, 1, 150, 299]) {
        const { sessions, id, screen, seen } = await shownPart(getSessions, InputTransition)
        await screen.shows(/>/)
        await screen.press('s', 'a', 'y', ' ', '1')
        await sessions.sessionPrompt(id, script)
        await screen.shows(/⏸/)
        screen.guard()
        await screen.press(...answer, answer.at(-1))
        await seen.event('turnFinished')
        await screen.shows(/^> say 1/)
        for (let repeats = 0; repeats < 3; repeats++) {
          screen.pass(gap)
          await screen.press(answer.at(-1))
        }
        screen.guard()
        await screen.press('!', keys.enter)
        assert.equal((await seen.event('promptAccepted', 1)).body.text, 'say 1!')
        await seen.event('turnFinished', 1)
        screen.unmount()
        await sessions.sessionClose(id)
      }
    })
  }

  test('m_a10_keys_without_a_pause_around_the_end_of_an_ask_change_nothing', async () => {
    const KEYS = [
      ...'yYnNaArRsSwW129 ', '👩‍👩‍👧', ...[...'duwkaefbj'].map(keys.ctrl), keys.enter, keys.enter, keys.tab, keys.backtab, keys.left,
      keys.right, keys.up, keys.home, keys.end, keys.backspace, keys.delete, keys.paste('y\n'), ...keys.unknown, ...keys.replies,
    ]
    const scripts = { confirm: [CONFIRM, ['n']], choice: [CHOICE, ['1']], words: [WORDS, ['x', keys.enter]] }
    for (const [kind, [script, answer]] of Object.entries(scripts)) {
      const deny = kind === 'confirm' ? ['sessionPauseConfirm', false] : ['sessionAnswerQuestion', null]
      const ends = {
        answered: ({ screen }) => (screen.guard(), screen.press(...answer)),
        interrupted: ({ screen }) => screen.press(keys.esc),
        answeredByOther: ({ sessions, id }, ask) => sessions[deny[0]](id, deny[1], { askId: ask.id }),
        interruptedByOther: ({ sessions, id }) => sessions.sessionInterrupt(id),
      }
      for (const [how, end] of Object.entries(ends)) {
        const seed = 1 + Math.floor(Math.random() * 2 ** 31)
        const random = randomBySeed(Number(process.env.HOLDPOINT_SEED ?? seed))
        const shown = await shownPart(getSessions, InputTransition)
        const { sessions, id, screen, seen } = shown
        const pressed = []
        const typeOn = async () => {
          for (let count = random(12); count > 0; count--) {
            const gap = random(300)
            const key = KEYS[random(KEYS.length)]
            pressed.push([gap, key])
            screen.pass(gap)
            await screen.press(key)
          }
        }
        await screen.shows(/>/)
        await screen.press('d', 'r', 'a', 'f', 't')
        await sessions.sessionPrompt(id, script)
        const { ask } = (await seen.event('askRaised')).body
        await screen.shows(/⏸/)
        await typeOn()
        if (kind === 'words' && how.endsWith('ByOther')) {
          screen.guard()
          await screen.press('h', 'a', 'l', 'f')
        }
        await end(shown, ask)
        await typeOn()
        await seen.event('turnFinished')
        await screen.shows(/^>/)
        await typeOn()
        const story = `${kind} ${how}, HOLDPOINT_SEED=${seed}: ${JSON.stringify(pressed)}`
        assert.match(screen.text(), /^> draft\s/, story)
        const bodies = seen.events.map(({ body }) => body)
        assert.equal(bodies.filter(({ type }) => type === 'promptAccepted').length, 1, story)
        assert.ok(!bodies.some(({ answer }) => answer?.type === 'approve'), story)
        screen.unmount()
        await sessions.sessionClose(id)
      }
    }
  })

  test('t_c7_no_escape_reaches_the_terminal', async () => {
    const script = `call ask_user {"questions": [{"id": "a", "header": "\\u001b[31mred", "question": "\\u001b]0;title\\u0007 \\u202ex?",
      "options": [{"label": "\\u001b[2J", "description": "\\u009b1m"}, {"label": "b\\nc"}]}]}`
    const { screen, seen, sessions, id } = await shownPart(getSessions, QuestionPrompt, { script })
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

test('m_a10_a_refused_answer_is_reported_and_the_form_reopens', async () => {
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

test('m_a10_after_a_failed_interrupt_a_line_reports_who_closed_the_ask', async () => {
  const sessions = {
    ...holdpoint,
    sessionInterrupt: async () => {
      throw Object.assign(new Error('no daemon'), { code: 'disconnected' })
    },
  }
  for (const [line, close] of [
    [/^Answered from Node\.js \(pid \d+\)$/m, (id) => holdpoint.sessionPauseConfirm(id, false)],
    [/^Ask closed: the turn was interrupted$/m, (id) => holdpoint.sessionInterrupt(id)],
  ]) {
    const id = await opened(holdpoint)
    const screen = show(h(InputTransition, { sessionId: id }), { sessions })
    await screen.shows(/>/)
    await holdpoint.sessionPrompt(id, CONFIRM)
    await screen.shows(/\[Y\]/)
    await screen.press(keys.esc)
    await screen.shows(/no daemon/)
    await close(id)
    assert.match(await screen.shows(/^>[^]*(Answered|closed)/), line)
    screen.unmount()
  }
})
