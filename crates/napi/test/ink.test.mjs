// Tests of behaviour that all Ink components share: which turn they interrupt, which keys they take
// and which text they write.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'

import { createElement as h } from 'react'

import { InputTransition, PauseIndicator, QuestionPrompt, shown, shownLine, StatusBar } from 'holdpoint/ink'

import { CONFIRM, keys, opened, show, shownPart, WORDS } from './rendered.mjs'
import { everywhere, failure, record } from './support.mjs'

/** Returns a promise and the function that resolves it. */
function deferred() {
  let resolve
  const promise = new Promise((kept) => (resolve = kept))
  return { promise, resolve }
}

everywhere('the parts', (getSessions) => {
  for (const [Part, script] of [[InputTransition, 'hang'], [PauseIndicator, CONFIRM], [QuestionPrompt, WORDS]]) {
    test(`m_c5_esc_interrupts_the_turn_shown_by_${Part.name}_and_no_later_one`, async () => {
      const sessions = await getSessions()
      const id = await opened(sessions)
      const seen = await record(sessions, id)
      await sessions.sessionPrompt(id, script)
      // When the interrupt arrives, the turn is over and another one has started.
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

  test('m_f3_an_inactive_component_takes_no_keys', async () => {
    const { screen, sessions, id } = await shownPart(getSessions, PauseIndicator, { script: CONFIRM, props: { isActive: false } })
    await screen.shows(/\[Y\]/)
    screen.guard()
    await screen.press('y', keys.esc)
    screen.rerender(h(PauseIndicator, { sessionId: id }))
    await screen.press(keys.esc)
    const { lastTurn } = await sessions.sessionSettled(id)
    assert.equal(lastTurn.outcome, 'interrupted')
  })
})

test('t_c7_shown_escapes_control_characters', () => {
  assert.equal(shown('a\u001b[31m\u0007b\n\tc\u200b\u202e\u2066\u00ad\ufeff\u{e0041}é👍️'), 'a\\u{1b}[31m\\u{7}b\n\tc\\u{200b}\\u{202e}\\u{2066}\\u{ad}\\u{feff}\\u{e0041}é👍️')
  assert.equal(shownLine('a\r\nb\tc'), 'a\\u{d}\\u{a}b\\u{9}c')
  assert.equal(shown(shown('\u001b')), '\\u{1b}')
})

test('m_f4_commonjs_can_import_ink_but_not_require_it', async () => {
  const require = createRequire(import.meta.url)
  assert.match((await failure(() => require('holdpoint/ink'))).code, /^ERR_REQUIRE_(ESM|ASYNC_MODULE)$/)
  assert.equal((await import('holdpoint/ink')).StatusBar, StatusBar)
})
