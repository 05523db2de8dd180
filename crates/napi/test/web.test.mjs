// Tests of the tool `web` in this process: a paused page is read when the user continues, with a
// real browser.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import { after, test } from 'node:test'

import { folder, script } from './support.mjs'

function browser() {
  try {
    return execFileSync('sh', ['-c', 'command -v chromium || command -v google-chrome'], { encoding: 'utf8' }).trim()
  } catch {
    return undefined
  }
}

test('m_a9_a_paused_page_is_read_after_the_user_continues', { skip: !browser() && 'no browser is installed' }, async () => {
  let visits = 0
  const server = createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html')
    answer.end(`<title>Page</title><main><p>Words of visit ${++visits}, and enough of them to be what the page is about.</p></main>`)
  })
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
  after(() => server.close())
  const url = `http://127.0.0.1:${server.address().port}/`
  const home = await folder()
  const config = `[web]\npause_headless = true\nallow = ["127.0.0.1:${server.address().port}"]`
  const { stdout } = await script(
    `
    import { start, sessionOpen, sessionAttach, sessionPrompt, sessionSettled, sessionGetPauseState, sessionPauseResume } from './index.mjs'
    start({ config: ${JSON.stringify(config)} })
    const id = await sessionOpen({ cwd: '/tmp', model: 'rehearsal', policy: 'all' })
    await sessionAttach(id, ({ body }) => {
      if (body.type === 'askRaised') {
        const { kind, toolName, message } = sessionGetPauseState(id)
        console.log(kind, toolName, message)
        sessionPauseResume(id)
      }
      if (body.type === 'toolFinished') console.log(body.status, JSON.stringify(body))
    })
    await sessionPrompt(id, ${JSON.stringify(`call web {"action": "open_page", "url": "${url}", "pause": true}`)})
    await sessionSettled(id)
    `,
    { env: { ...process.env, HOME: home, XDG_DATA_HOME: home } },
  )
  const [asked, finished] = stdout.trim().split('\n')
  assert.equal(asked, `continue web Page loaded: ${url}`)
  assert.match(finished, /^ok .*Words of visit 1/)
})
