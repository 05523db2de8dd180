// The parts of an Ink program, in every state and with every key, over real sessions.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'

import { createElement as h } from 'react'

import { InputTransition, PauseIndicator, QuestionPrompt, shown, shownLine, StatusBar } from 'holdpoint/ink'

import { keys, opened, show, waiters } from './rendered.mjs'
import { everywhere, failure, holdpoint, record } from './support.mjs'

const CONFIRM = 'shell: echo confirmed > made'
const CHOICE = `call ask_user {"questions": [
  {"id": "colour", "header": "Colour", "question": "Which?", "options": [{"label": "red", "description": "afar"}, {"label": "grey"}]}
]}`
const WORDS = `call ask_user {"questions": [{"id": "name", "header": "Name", "question": "What?"}]}`

/** A session, what it has done, and a part of it on a screen. */
async function shownPart(place, Part, { columns, script, props, ...options } = {}) {
  const sessions = await place()
  const id = await opened(sessions, options)
  const seen = await record(sessions, id)
  if (script) await sessions.sessionPrompt(id, script)
  const screen = show(h(Part, { sessionId: id, ...props }), { sessions, columns })
  return { sessions, id, seen, screen }
}

/** A promise, and how it is kept. */
function deferred() {
  let resolve
  const promise = new Promise((kept) => (resolve = kept))
  return { promise, resolve }
}

everywhere('the parts', (place, { remote }) => {
  test('m_f3_input_while_idle_thinking_while_running', async () => {
    const { screen, seen, sessions, id } = await shownPart(place, InputTransition, { props: { placeholder: 'What next?' } })
    await screen.shows(/> .*What next\?/)
    await screen.press('h', 'a', 'n', 'g', keys.enter)
    assert.equal((await seen.event('promptAccepted')).body.text, 'hang')
    const text = await screen.shows(/Thinking\.\.\. \(Esc to interrupt\)/)
    assert.doesNotMatch(text, /hang/)
    // What is pressed meanwhile goes nowhere.
    await screen.press('x', 'y')
    await screen.press(keys.esc)
    assert.equal((await seen.event('turnFinished')).body.outcome, 'interrupted')
    assert.match(await screen.shows(/What next\?/), /> {2}?/)
    assert.equal(sessions.sessionGetStatus(id), 'idle')
    assert.equal(seen.events.filter(({ body }) => body.type === 'promptAccepted').length, 1)
  })

  test('m_f3_a_confirm_shows_message_details_and_keys', async () => {
    const { screen, seen } = await shownPart(place, PauseIndicator, { script: CONFIRM })
    const { ask } = (await seen.event('askRaised')).body
    const text = await screen.shows(/\[Y\]/)
    assert.match(text, /^⏸ shell: /)
    assert.ok(text.includes(ask.request.message))
    assert.match(text, /echo confirmed > made/)
    assert.match(text, /\[Y\] Approve \[N\] Deny \(Esc to interrupt\)$/m)
    await screen.guard()
    await screen.press('y')
    assert.deepEqual((await seen.event('askAnswered')).body.answer, { type: 'approve' })
    await seen.event('turnFinished')
    await screen.shows(/^$/)
  })

  for (const [key, answer] of [['Y', 'approve'], ['n', 'deny'], ['N', 'deny']]) {
    test(`m_a10_${key}_in_this_case_answers_a_confirm: ${answer}`, async () => {
      const { screen, seen } = await shownPart(place, PauseIndicator, { script: CONFIRM })
      await screen.shows(/\[Y\]/)
      await screen.guard()
      await screen.press(key)
      assert.equal((await seen.event('askAnswered')).body.answer.type, answer)
      await seen.event('turnFinished')
    })
  }

  test('m_a10_nothing_but_an_approval_approves', async () => {
    const { screen, seen } = await shownPart(place, PauseIndicator, { script: CONFIRM })
    await screen.shows(/\[Y\]/)
    await screen.guard()
    await screen.press(keys.enter, ' ', 'a', 'j', keys.up, keys.paste('y'), keys.ctrl('y'), '\u001by', keys.backspace)
    await screen.press('n')
    assert.equal((await seen.event('askAnswered')).body.answer.type, 'deny')
    await seen.event('turnFinished')
  })

  test('m_a10_keys_count_only_after_a_while', async () => {
    const { screen, seen } = await shownPart(place, PauseIndicator, { script: CONFIRM })
    await screen.shows(/\[Y\]/)
    await screen.press('y', 'Y')
    await screen.guard()
    await screen.press('n')
    assert.equal((await seen.event('askAnswered')).body.answer.type, 'deny')
    await seen.event('turnFinished')
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
    await screen.guard()
    await screen.press('y', 'n', ' ')
    await screen.press(keys.enter)
    assert.equal((await seen.event('askAnswered')).body.answer.type, 'resume')
    await seen.event('turnFinished')
  })

  test('m_a7_how_many_wait_behind_it', async () => {
    const { screen, sessions, id } = await shownPart(place, PauseIndicator, { script: 'shell: echo one\nshell: echo two\nshell: echo three' })
    await screen.shows(/2 more wait/)
    await screen.guard()
    await screen.press('n')
    // The next has appeared now: what answered the last does not count for it yet.
    await screen.shows(/1 more waits/)
    await screen.press('y')
    assert.equal(sessions.sessionSnapshot(id).asks.length, 2)
    await sessions.sessionInterrupt(id)
  })

  test('m_a10_the_draft_is_kept_and_no_key_leaks_into_it', async () => {
    const { screen, seen, sessions, id } = await shownPart(place, InputTransition)
    await screen.shows(/>/)
    await screen.press('d', 'r', 'a', 'f', 't')
    await screen.shows(/> draft/)
    await sessions.sessionPrompt(id, CONFIRM)
    await screen.shows(/\[Y\]/)
    await screen.press('y', 'q', keys.backspace, keys.backspace)
    await screen.guard()
    await screen.press('q', keys.backspace, 'n')
    await seen.event('turnFinished')
    await screen.shows(/> draft/)
    await screen.press('s', keys.enter)
    assert.equal((await seen.event('promptAccepted', 1)).body.text, 'drafts')
    await seen.event('turnFinished', 1)
  })

  test('m_e4_a_question_is_answered_by_choice', async () => {
    const { screen, seen } = await shownPart(place, InputTransition, { script: CHOICE })
    const text = await screen.shows(/\[1-2\] Choose/)
    assert.match(text, /Colour: Which\?/)
    assert.match(text, /1\. red - afar/)
    assert.match(text, /2\. grey/)
    assert.match(text, /\[W\] Your own words \[S\] Skip \(Esc to interrupt\)/)
    await screen.press('1')
    await screen.guard()
    await screen.press('3', '2')
    assert.deepEqual((await seen.event('askAnswered')).body.answer, { type: 'reply', answers: [{ id: 'colour', answer: 'grey' }] })
    await seen.event('turnFinished')
  })

  test('m_e4_esc_goes_back_from_words_to_the_options_then_interrupts', async () => {
    const { screen, seen } = await shownPart(place, QuestionPrompt, { script: CHOICE })
    await screen.shows(/\[1-2\]/)
    await screen.guard()
    await screen.press('w', 'b', 'l', 'u')
    await screen.shows(/> blu[^]*Esc to go back/)
    await screen.press(keys.esc)
    await screen.shows(/\[1-2\]/)
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
    await screen.guard()
    await screen.press(keys.enter, ' ', keys.enter, keys.paste('two words'), keys.enter)
    assert.deepEqual((await seen.event('askAnswered')).body.answer.answers, [{ id: 'name', answer: 'two words' }])
    await seen.event('turnFinished')
  })

  test('m_a10_skip_is_a_choice_of_its_own', async () => {
    for (const [script, key] of [[CHOICE, 's'], [CHOICE, 'S'], [WORDS, keys.ctrl('d')]]) {
      const { screen, seen } = await shownPart(place, QuestionPrompt, { script })
      await screen.shows(/Skip/)
      await screen.guard()
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
    await screen.guard()
    await screen.press('2')
    await screen.shows(/Second\? \(2 of 2\)/)
    await screen.press('x', keys.enter)
    const { answers } = (await seen.event('askAnswered')).body.answer
    assert.deepEqual(answers, [{ id: 'one', answer: 'b' }, { id: 'two', answer: 'x' }])
    await seen.event('turnFinished')
  })

  test('m_d7_ctrl_x_p_holds_and_releases_above_any_prompt', async () => {
    const { screen, seen, sessions, id } = await shownPart(place, InputTransition)
    await screen.shows(/ctrl\+x p pause/)
    await screen.press('o', 'k', keys.ctrl('x'))
    await screen.shows(/ctrl\+x … p pause, Esc back/)
    // An unknown key leaves, and is not typed.
    await screen.press('z')
    assert.match(await screen.shows(/ctrl\+x p pause/), /> ok\s/)
    await screen.press(keys.ctrl('x'), keys.esc)
    assert.match(await screen.shows(/ctrl\+x p pause/), /> ok\s/)
    await screen.press(`${keys.ctrl('x')}p`)
    assert.equal((await seen.event('holdChanged')).body.hold.state, 'standing')
    await screen.shows(/ctrl\+x p play/)
    // A prompt waits for the release.
    await screen.press(keys.ctrl('u'), 's', 'a', 'y', ' ', '1', keys.enter)
    await seen.event('promptAccepted')
    assert.equal(sessions.sessionGetStatus(id), 'paused')
    await screen.press(keys.ctrl('x'), 'p')
    assert.equal((await seen.event('holdChanged', 1)).body.hold.state, 'off')
    await seen.event('turnFinished')
    // Above an ask: neither key answers it.
    await sessions.sessionPrompt(id, CONFIRM)
    await screen.shows(/\[Y\]/)
    await screen.guard()
    await screen.press(keys.ctrl('x'), 'y', keys.ctrl('x'), 'p')
    assert.equal((await seen.event('holdChanged', 2)).body.hold.state, 'requested')
    assert.equal(sessions.sessionSnapshot(id).asks.length, 1)
    await sessions.sessionInterrupt(id)
  })

  test('m_a10_ctrl_c_clears_and_then_leaves', async () => {
    let left
    const leaves = new Promise((resolve) => (left = resolve))
    const { screen } = await shownPart(place, InputTransition, { props: { onLeave: left } })
    await screen.shows(/>/)
    await screen.press('a', 'b', keys.ctrl('c'))
    assert.doesNotMatch(await screen.shows(/Ctrl\+C again to leave/), /ab/)
    // Whatever else is pressed, it is the first one again.
    await screen.press('c', keys.ctrl('c'))
    await screen.shows(/again/)
    await screen.press(keys.ctrl('c'))
    await leaves
  })

  test('m_a10_ctrl_c_interrupts_what_runs_and_what_is_held', async () => {
    const { screen, seen, sessions, id } = await shownPart(place, InputTransition, { script: 'hang' })
    await screen.shows(/Thinking/)
    await screen.press(keys.ctrl('c'))
    assert.equal((await seen.event('turnFinished')).body.outcome, 'interrupted')
    await sessions.sessionPrompt(id, `call list_dir\n---\nhang`)
    await seen.event('turnStarted', 1)
    await sessions.sessionHold(id)
    await screen.shows(/play/)
    await screen.press(keys.esc)
    assert.equal((await seen.event('turnFinished', 1)).body.outcome, 'interrupted')
  })

  test('m_f3_text_is_edited_where_the_cursor_is', async () => {
    const { screen, seen } = await shownPart(place, InputTransition)
    await screen.shows(/>/)
    await screen.press(keys.paste('sai\r\nxy👩‍👩‍👧'), keys.left, 'd', keys.end, keys.backspace, keys.backspace, keys.home, 'z')
    await screen.press(keys.up, keys.ctrl('e'), keys.ctrl('w'), '!', keys.left, keys.left, keys.right, '?')
    await screen.press(keys.enter)
    assert.equal((await seen.event('promptAccepted')).body.text, 'sai\n?!')
    await seen.event('turnFinished')
  })

  test('m_f3_every_key_that_edits', async () => {
    const { screen, seen } = await shownPart(place, InputTransition)
    await screen.shows(/>/)
    const sent = async (...pressed) => {
      const before = seen.events.filter(({ body }) => body.type === 'promptAccepted').length
      await screen.press(...pressed, keys.enter)
      const { text } = (await seen.event('promptAccepted', before)).body
      await seen.event('turnFinished', before)
      await screen.shows(/^>/)
      return text
    }
    const ctrl = (letters) => [...letters].map(keys.ctrl)
    assert.equal(await sent('a', 'b', 'c', ...ctrl('bbd'), '1', ...ctrl('f'), '2'), 'a1c2')
    assert.equal(await sent('a', 'b', ...ctrl('j'), 'c', 'd', ...ctrl('a'), '1', ...ctrl('e'), '2'), 'ab\n1cd2')
    assert.equal(await sent('a', 'b', ...ctrl('j'), 'c', 'd', keys.left, ...ctrl('k'), ...ctrl('u'), 'e'), 'ab\ne')
    assert.equal(await sent(keys.paste('one two  '), ...ctrl('w'), '2'), 'one 2')
    // Where an empty line is the first, nothing is before it.
    assert.equal(await sent('x', ...ctrl('ja'), keys.left, keys.backspace, keys.left, ...ctrl('ua'), keys.home, 'y'), 'y\n')
    // Keys that do nothing here.
    assert.equal(await sent('a', '\t', '\u001b[5~', '\u001b[6~', keys.up, '\u001b[B', '\u001bx', ...ctrl('gy'), 'b'), 'ab')
  })

  test('m_f3_what_stands_there_and_what_enter_does_can_be_said', async () => {
    const given = []
    const props = { thinking: 'Musing', onSubmit: (text) => given.push(text) }
    const { screen, sessions, id } = await shownPart(place, InputTransition, { props })
    await screen.shows(/>/)
    await screen.press('h', 'i', keys.enter)
    assert.deepEqual(given, ['hi'])
    await screen.shows(/^>\s*\n/)
    await sessions.sessionPrompt(id, 'hang')
    await screen.shows(/Musing \(Esc to interrupt\)/)
    await sessions.sessionInterrupt(id)
  })

  test('m_c5_what_takes_its_time_to_end_is_interrupting', async () => {
    const script = 'shell: trap "" TERM; echo up; while :; do sleep 1; done'
    const { screen, seen, sessions, id } = await shownPart(place, InputTransition, { script, policy: 'all' })
    const bar = show(h(StatusBar, { sessionId: id }), { sessions })
    await seen.event('output')
    await screen.shows(/Thinking/)
    await screen.press(keys.esc)
    await screen.shows(/^Interrupting\.\.\./)
    await bar.shows(/[◐◓◑◒] interrupting$/)
    // Nothing is typed meanwhile.
    await screen.press('x')
    assert.equal((await seen.event('turnFinished')).body.outcome, 'interrupted')
    await screen.shows(/^>\s*\n/)
  })

  test('m_f3_a_prompt_that_is_refused_is_given_back', async () => {
    const { screen, sessions, id } = await shownPart(place, InputTransition)
    await sessions.sessionHold(id)
    for (let waiting = 0; waiting < 32; waiting++) await sessions.sessionPrompt(id, 'say one of many')
    await screen.shows(/play/)
    await screen.press('o', 'n', 'e', keys.enter)
    assert.match(await screen.shows(/32/), /> one/)
    await sessions.sessionInterrupt(id)
  })

  test('m_c5_what_is_handed_back_is_typed_again', async () => {
    const { screen, seen, sessions, id } = await shownPart(place, InputTransition, { script: 'say on it\nhang' })
    await screen.shows(/Thinking/)
    await sessions.sessionPrompt(id, 'say one')
    await sessions.sessionPrompt(id, 'say two')
    await seen.event('promptAccepted', 2)
    await screen.press(keys.esc)
    await seen.event('promptReturned', 1)
    await screen.shows(/> say one\nsay two/)
    // It is as if it had been typed: sent with what is added.
    await screen.press('!', keys.enter)
    assert.equal((await seen.event('promptAccepted', 3)).body.text, 'say one\nsay two!')
    await seen.event('turnFinished', 1)
  })

  test('m_c5_what_is_handed_back_does_not_take_the_place_of_a_draft', async () => {
    const { screen, seen, sessions, id } = await shownPart(place, InputTransition)
    await screen.shows(/>/)
    await screen.press('m', 'i', 'n', 'e')
    await sessions.sessionPrompt(id, 'hang')
    await sessions.sessionPrompt(id, 'say later')
    await screen.shows(/Thinking/)
    await screen.press(keys.esc)
    await seen.event('promptReturned')
    await seen.event('turnFinished')
    await screen.shows(/> mine\s/)
  })

  for (const [Part, script] of [[InputTransition, 'hang'], [PauseIndicator, CONFIRM], [QuestionPrompt, WORDS]]) {
    test(`m_c5_esc_ends_the_turn_that_${Part.name}_shows_and_no_later_one`, async () => {
      const sessions = await place()
      const id = await opened(sessions)
      const seen = await record(sessions, id)
      await sessions.sessionPrompt(id, script)
      // Before the interrupt arrives, the turn is over and another one has begun.
      const { promise: late, resolve: sent } = deferred()
      const slow = new Proxy(sessions, {
        get: (_, name) => {
          const value = sessions[name]
          if (name !== 'sessionInterrupt') return typeof value === 'function' ? value.bind(sessions) : value
          return async (...args) => {
            await sessions.sessionInterrupt(id)
            await sessions.sessionPrompt(id, 'hang')
            const { found } = await sessions.sessionInterrupt(...args)
            sent(found)
            return { found }
          }
        },
      })
      const screen = show(h(Part, { sessionId: id }), { sessions: slow })
      await screen.shows(/Esc/)
      await screen.press(keys.esc)
      assert.equal(await late, 'nothing')
      assert.equal(sessions.sessionGetStatus(id), 'running')
      await sessions.sessionInterrupt(id)
      await seen.event('turnFinished', 1)
    })
  }

  test('m_f3_a_part_that_is_not_active_takes_no_key', async () => {
    const { screen, sessions, id } = await shownPart(place, PauseIndicator, { script: CONFIRM, props: { isActive: false } })
    await screen.shows(/\[Y\]/)
    await screen.guard()
    await screen.press('y', keys.esc)
    screen.rerender(h(PauseIndicator, { sessionId: id }))
    await screen.press(keys.esc)
    const { lastTurn } = await sessions.sessionSettled(id)
    assert.equal(lastTurn.outcome, 'interrupted')
  })

  test('m_c7_no_escape_reaches_the_terminal', async () => {
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

everywhere('the status bar', (place) => {
  test('m_d6_idle_running_asking_pausing_paused', async () => {
    const { screen, seen, sessions, id } = await shownPart(place, StatusBar, { columns: 100 })
    const { name } = sessions.sessionSnapshot(id).settings
    assert.equal(await screen.shows(/holdpoint/), `holdpoint | ${name}`)
    await sessions.sessionPrompt(id, `${CONFIRM}\n---\nhang`)
    await screen.shows(/⏸ asks you$/)
    await sessions.sessionHold(id)
    await screen.shows(/[◐◓◑◒] PAUSING\.\.\.$/)
    await sessions.sessionPauseConfirm(id, true)
    assert.doesNotMatch(await screen.shows(/⏸ PAUSED$/), /[◐◓◑◒]/)
    await sessions.sessionRelease(id)
    await screen.shows(/[◐◓◑◒]$/)
    // It turns, and the time runs.
    const spinners = new Set()
    await screen.shows((text) => spinners.add(text.at(-1)).size === 4)
    await screen.shows(/\| 00:00:0\d .$/)
    await sessions.sessionInterrupt(id)
    await seen.event('turnFinished')
    await screen.shows(/[^◐◓◑◒]$/)
  })

  test('m_d6_runs_tasks_and_files', async () => {
    const { screen, sessions, id } = await shownPart(place, StatusBar, { asks: 'approve' })
    const goal = '```rehearsal\ncall write_file {"path": "one.txt", "content": "1"}\n---\nhang\n```'
    await sessions.sessionRun(id, { goal, tasks: ['first', 'second'] })
    await screen.shows(/\| Iteration #1 \| ✓0 ●0 ○2 \| 1 file modified [◐◓◑◒]$/)
    // A narrow terminal shortens whole segments; the label stays.
    await sessions.sessionHold(id)
    await screen.shows(/PAUSING\.\.\.$/)
    for (const width of [80, 60, 48, 40, 30, 24, 14]) {
      screen.resize(width)
      const text = await screen.shows((text) => text.length <= width && /[◐◓◑◒] PAUSING\.\.\.$/.test(text))
      for (const segment of text.slice(0, -12).trim().split(' | ')) {
        assert.match(segment, /^(holdpoint|hp-\S+|\d\d:\d\d:\d\d|(Iteration )?#1|✓0 ●0 ○2|1 file( modified)?|)$/, text)
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
  for (const [said, script, limits] of LIMITS) {
    test(`m_d6_a_limit_is_said: ${said}`, async () => {
      const { screen, sessions, id } = await shownPart(place, StatusBar, { columns: 200 })
      await sessions.sessionRun(id, { goal: `\`\`\`rehearsal\n${script}\n\`\`\``, tasks: ['a'], limits })
      await screen.shows((text) => text.endsWith(`⏸ PAUSED: ${said}`))
      await sessions.sessionInterrupt(id)
    })
  }
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
  await screen.guard()
  await screen.press('y')
  await screen.shows((text) => text.includes('the daemon is \\u{1b}[31mgone (wait)'))
  await screen.press('y')
  assert.equal(refusals, 1)
  await screen.guard()
  await screen.press('y', 'y')
  await until(() => refusals === 2)
  await seen.event('turnFinished')
  assert.equal(refusals, 2, 'an answer is sent once')
})

test('m_c7_shown', () => {
  assert.equal(shown('a\u001b[31m\u0007b\n\tc\u200b\u202e\u2066\u00ad\ufeff\u{e0041}é👍️'), 'a\\u{1b}[31m\\u{7}b\n\tc\\u{200b}\\u{202e}\\u{2066}\\u{ad}\\u{feff}\\u{e0041}é👍️')
  assert.equal(shownLine('a\r\nb\tc'), 'a\\u{d}\\u{a}b\\u{9}c')
  assert.equal(shown(shown('\u001b')), '\\u{1b}')
})

test('m_f4_from_commonjs_it_is_imported', async () => {
  const require = createRequire(import.meta.url)
  assert.match((await failure(() => require('holdpoint/ink'))).code, /^ERR_REQUIRE_(ESM|ASYNC_MODULE)$/)
  assert.equal((await import('holdpoint/ink')).StatusBar, StatusBar)
})
