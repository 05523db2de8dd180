// Tests of the input of an Ink program: typing, the line while the session works, and prompts that
// an interrupt hands back.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createElement as h } from 'react'

import { InputTransition, StatusBar } from 'holdpoint/ink'

import { draftOf, edit } from '../ink/dist/draft.js'
import { CONFIRM, keys, opened, show, shownPart } from './rendered.mjs'
import { everywhere, patience, record } from './support.mjs'

everywhere('the input', (getSessions) => {
  test('m_f3_shows_the_input_while_idle_and_thinking_while_running', async () => {
    const { screen, seen, sessions, id } = await shownPart(getSessions, InputTransition, { props: { placeholder: 'What next?' } })
    await screen.shows(/> .*What next\?/)
    await screen.press('h', 'a', 'n', 'g', keys.enter)
    assert.equal((await seen.event('promptAccepted')).body.text, 'hang')
    const text = await screen.shows(/Thinking\.\.\. \(Esc to interrupt\)/)
    assert.doesNotMatch(text, /hang/)
    // Keys pressed meanwhile have no effect.
    await screen.press('x', 'y')
    await screen.press(keys.esc)
    assert.equal((await seen.event('turnFinished')).body.outcome, 'interrupted')
    assert.match(await screen.shows(/What next\?/), /> {2}?/)
    assert.equal(sessions.sessionGetStatus(id), 'idle')
    assert.equal(seen.events.filter(({ body }) => body.type === 'promptAccepted').length, 1)
  })

  test('m_f3_enter_reopens_a_closed_session', async () => {
    const { screen, sessions, id, isAttached } = await shownPart(getSessions, InputTransition, { props: { placeholder: 'What next?' } })
    await isAttached
    for (const typed of ['', 'say again']) {
      await sessions.sessionClose(id)
      await screen.shows(/> .*Closed: Enter opens it again/)
      await screen.press(...typed, keys.enter)
      await screen.shows(/> .*What next\?/)
    }
    assert.equal((await sessions.sessionSettled(id)).lastTurn.outcome, 'done')
  })

  test('m_a10_the_draft_is_kept_during_an_ask_and_gets_no_keys', async () => {
    const { screen, seen, sessions, id } = await shownPart(getSessions, InputTransition)
    await screen.shows(/>/)
    await screen.press('d', 'r', 'a', 'f', 't')
    await screen.shows(/> draft/)
    await sessions.sessionPrompt(id, CONFIRM)
    await screen.shows(/\[Y\]/)
    await screen.press('y', 'q', keys.backspace, keys.backspace)
    screen.guard()
    await screen.press('q', keys.backspace)
    screen.guard()
    await screen.press('n')
    await seen.event('turnFinished')
    await screen.shows(/> draft/)
    screen.guard()
    await screen.press('s', keys.enter)
    assert.equal((await seen.event('promptAccepted', 1)).body.text, 'drafts')
    await seen.event('turnFinished', 1)
  })

  test('m_d7_ctrl_x_p_holds_and_releases_above_any_prompt', async () => {
    const { screen, seen, sessions, id } = await shownPart(getSessions, InputTransition)
    await screen.shows(/ctrl\+x p pause/)
    await screen.press('o', 'k', keys.ctrl('x'))
    await screen.shows(/ctrl\+x … p pause, Esc back/)
    // An unknown key leaves the mode, and is not typed.
    await screen.press('z')
    assert.match(await screen.shows(/ctrl\+x p pause/), /> ok\s/)
    await screen.press(keys.ctrl('x'), keys.esc)
    assert.match(await screen.shows(/ctrl\+x p pause/), /> ok\s/)
    await screen.press(`${keys.ctrl('x')}p`)
    assert.equal((await seen.event('holdChanged')).body.hold.state, 'standing')
    await screen.shows(/ctrl\+x p play/)
    // A prompt waits until the hold is released.
    await screen.press(keys.ctrl('u'), 's', 'a', 'y', ' ', '1', keys.enter)
    await seen.event('promptAccepted')
    assert.equal(sessions.sessionGetStatus(id), 'paused')
    await screen.press(keys.ctrl('x'), 'p')
    assert.equal((await seen.event('holdChanged', 1)).body.hold.state, 'off')
    await seen.event('turnFinished')
    // While an ask is open, neither key answers it.
    await sessions.sessionPrompt(id, CONFIRM)
    await screen.shows(/\[Y\]/)
    screen.guard()
    await screen.press(keys.ctrl('x'), 'y', keys.ctrl('x'), 'p')
    assert.equal((await seen.event('holdChanged', 2)).body.hold.state, 'requested')
    // A key right after them does not answer either.
    screen.guard(1)
    await screen.press('y')
    assert.equal(sessions.sessionSnapshot(id).asks.length, 1)
    await sessions.sessionInterrupt(id)
  })

  test('m_a10_ctrl_c_clears_the_input_and_then_leaves', async () => {
    let left
    const leaves = new Promise((resolve) => (left = resolve))
    const { screen } = await shownPart(getSessions, InputTransition, { props: { onLeave: left } })
    await screen.shows(/>/)
    await screen.press('a', 'b', keys.ctrl('c'))
    assert.doesNotMatch(await screen.shows(/Ctrl\+C again to leave/), /ab/)
    // After any other key, the next Ctrl+C counts as the first again.
    await screen.press('c', keys.ctrl('c'))
    await screen.shows(/again/)
    await screen.press(keys.ctrl('c'))
    await leaves
  })

  test('m_a10_ctrl_c_interrupts_running_and_held_turns', async () => {
    const { screen, seen, sessions, id } = await shownPart(getSessions, InputTransition, { script: 'hang' })
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

  test('m_f3_text_is_edited_at_the_cursor', async () => {
    const { screen, seen } = await shownPart(getSessions, InputTransition)
    await screen.shows(/>/)
    await screen.press(keys.paste('sai\r\nxy👩‍👩‍👧'), keys.left, 'd', keys.end, keys.backspace, keys.backspace, keys.home, 'z')
    await screen.press(keys.up, keys.ctrl('e'), keys.ctrl('w'), '!', keys.left, keys.left, keys.right, '?')
    await screen.press(keys.enter)
    assert.equal((await seen.event('promptAccepted')).body.text, 'sai\n?!')
    await seen.event('turnFinished')
  })

  test('m_f3_all_editing_keys_work', async () => {
    const { screen, seen } = await shownPart(getSessions, InputTransition)
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
    assert.equal(await sent('a', keys.shiftEnter, 'b'), 'a\nb')
    assert.equal(await sent('a', 'b', ...ctrl('j'), 'c', 'd', keys.left, ...ctrl('k'), ...ctrl('u'), 'e'), 'ab\ne')
    assert.equal(await sent(keys.paste('one two  '), ...ctrl('w'), '2', keys.home, keys.delete), 'ne 2')
    // On an empty first line there is nothing before the cursor.
    assert.equal(await sent('x', ...ctrl('ja'), keys.left, keys.backspace, keys.left, ...ctrl('ua'), keys.home, 'y'), 'y\n')
    // Keys without an effect here.
    assert.equal(await sent('a', '\t', '\u001b[5~', '\u001b[6~', keys.up, '\u001b[B', keys.backtab, ...keys.unknown, ...ctrl('gy'), 'b'), 'ab')
  })

  test('m_f3_terminal_replies_are_not_typed', async () => {
    const { screen, seen } = await shownPart(getSessions, InputTransition)
    await screen.shows(/>/)
    await screen.press('a', ...keys.replies)
    for (const reply of keys.replies) {
      await screen.press(...[reply.slice(0, 2), ...reply.slice(2)])
      for (let at = 2; at < reply.length; at++) await screen.press(reply.slice(0, at), reply.slice(at))
      await screen.press(`${reply}b${reply}`)
    }
    // Without an end, or after another sequence, keys are typed again.
    await screen.press('\u001bX', 'lost')
    screen.pass(100)
    await screen.press('c', '\u001bPlost', keys.left, keys.end, 'd', '\u001b]lost', `${keys.paste('e')}${keys.replies[0]}`)
    await screen.shows(/de/)
    await screen.press('f', keys.enter)
    assert.equal((await seen.event('promptAccepted')).body.text, 'abbbbbbbbcdef')
    await seen.event('turnFinished')
    await screen.shows(/^>/)
    // Ink reads an escape at the end of a chunk, or before another escape, as the key.
    for (const reply of keys.replies) await screen.press('\u001b', reply.slice(1), `\u001b${reply}`)
    await screen.press('g', keys.enter)
    assert.equal((await seen.event('promptAccepted', 1)).body.text, 'g')
    await seen.event('turnFinished', 1)
    await screen.shows(/^>/)
    await screen.press('\u001b]', 'lost', keys.ctrl('c'))
    await screen.shows(/Ctrl\+C again to leave/)
  })

  test('m_f3_the_thinking_text_and_the_submit_action_can_be_set', async () => {
    const given = []
    const props = { thinking: 'Musing', onSubmit: (text) => given.push(text) }
    const { screen, sessions, id } = await shownPart(getSessions, InputTransition, { props })
    await screen.shows(/>/)
    await screen.press('h', 'i', keys.enter)
    assert.deepEqual(given, ['hi'])
    await screen.shows(/^>\s*\n/)
    await sessions.sessionPrompt(id, 'hang')
    await screen.shows(/Musing \(Esc to interrupt\)/)
    await sessions.sessionInterrupt(id)
  })

  test('m_c5_a_slow_interrupt_is_shown_as_interrupting', async () => {
    const script = 'shell: trap "" TERM; echo up; while :; do sleep 1; done'
    const { screen, seen, sessions, id } = await shownPart(getSessions, InputTransition, { script, policy: 'all' })
    const bar = show(h(StatusBar, { sessionId: id }), { sessions })
    await seen.event('output')
    await screen.shows(/Thinking/)
    await screen.press(keys.esc)
    await screen.shows(/^Interrupting\.\.\./)
    await bar.shows(/[◐◓◑◒] interrupting$/)
    // Nothing can be typed meanwhile.
    await screen.press('x')
    assert.equal((await seen.event('turnFinished')).body.outcome, 'interrupted')
    await screen.shows(/^>\s*\n/)
  })

  test('m_f3_a_refused_prompt_becomes_the_draft_again', async () => {
    const { screen, sessions, id } = await shownPart(getSessions, InputTransition)
    await sessions.sessionHold(id)
    for (let waiting = 0; waiting < 32; waiting++) await sessions.sessionPrompt(id, 'say one of many')
    await screen.shows(/play/)
    await screen.press('o', 'n', 'e', keys.enter)
    assert.match(await screen.shows(/32/), /> one/)
    await sessions.sessionInterrupt(id)
  })

  test('m_c5_returned_prompts_become_the_draft', async () => {
    const { screen, seen, sessions, id, isAttached } = await shownPart(getSessions, InputTransition, { script: 'say on it\nhang' })
    await screen.shows(/Thinking/)
    await isAttached
    await sessions.sessionPrompt(id, 'say one')
    await sessions.sessionPrompt(id, 'say two')
    await seen.event('promptAccepted', 2)
    await screen.press(keys.esc)
    await seen.event('promptReturned', 1)
    await screen.shows(/> say one\nsay two/)
    // The text is edited and sent as if the user had typed it.
    await screen.press('!', keys.enter)
    assert.equal((await seen.event('promptAccepted', 3)).body.text, 'say one\nsay two!')
    await seen.event('turnFinished', 1)
  })

  test('m_c5_returned_prompts_do_not_replace_a_draft', async () => {
    const { screen, seen, sessions, id, isAttached } = await shownPart(getSessions, InputTransition)
    await screen.shows(/>/)
    await isAttached
    await screen.press('m', 'i', 'n', 'e')
    await sessions.sessionPrompt(id, 'hang')
    await sessions.sessionPrompt(id, 'say later')
    await screen.shows(/Thinking/)
    await screen.press(keys.esc)
    await seen.event('promptReturned')
    await seen.event('turnFinished')
    await screen.shows(/> mine\s/)
  })

  test('m_c5_only_prompts_of_the_shown_session_return_to_the_input', async () => {
    const { screen, sessions, id, isAttached } = await shownPart(getSessions, InputTransition)
    const other = await opened(sessions)
    for (const each of [other, id]) {
      if (each === id) await isAttached
      await sessions.sessionPrompt(each, 'hang')
      await sessions.sessionPrompt(each, 'say later')
    }
    const seen = await record(sessions, other)
    await screen.shows(/Thinking/)
    while (sessions.sessionSnapshot(id).queue.length === 0) await new Promise((resolve) => setImmediate(resolve))
    screen.rerender(h(InputTransition, { sessionId: other }))
    await screen.shows(/Thinking/)
    while (sessions.sessionSnapshot(other).clients < 2) await new Promise((resolve) => setImmediate(resolve))
    await screen.press(keys.esc)
    await seen.event('promptReturned')
    await seen.event('turnFinished')
    assert.doesNotMatch(await screen.shows(/^>/), /later/)
    await sessions.sessionInterrupt(id)
  })

  test('m_a10_text_after_an_end_sequence_in_a_paste_is_not_read_as_keys', async () => {
    const { screen, seen } = await shownPart(getSessions, InputTransition)
    await screen.shows(/>/)
    await screen.press(keys.paste(`one${keys.pasted}\rtwo`))
    await screen.shows(/two/)
    await screen.press(keys.enter)
    assert.equal((await seen.event('promptAccepted')).body.text, 'one\ntwo')
    await seen.event('turnFinished')
  })

  test('m_f3_an_unfinished_paste_is_ended', async () => {
    const { screen, id } = await shownPart(getSessions, InputTransition)
    const begin = '\u001b[200~'
    await screen.shows(/>/)
    await screen.press(begin, 'lost', keys.ctrl('c'), 'o', 'k')
    await screen.shows(/> ok\s/)
    await screen.press(begin, 'lost')
    for (const isActive of [false, true]) screen.rerender(h(InputTransition, { sessionId: id, isActive }))
    await screen.press('!')
    await screen.shows(/> ok!\s/)
  })
})

test('ctrl_w_takes_linear_time_for_a_huge_draft', { timeout: patience }, () => {
  const word = 'x'.repeat(400_000)
  for (const [before, after] of [[`${word} b c`, `${word} b `], [`${word}\nb \n `, `${word}\n`], [` ${word}`, ' '], [' ', '']]) {
    const { text, cursor } = edit(draftOf(before), { name: 'ctrl+w' })
    assert.ok(text === after && cursor === after.length, `${text.length} characters`)
  }
})
