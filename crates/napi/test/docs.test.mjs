// The examples of docs/node.md that are no components, run: what their comments say is what they print. And the one of the
// first page.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'

import { folder, root, script } from './support.mjs'

const examplesOf = async (page) => {
  const text = await readFile(path.join(root, '../..', page), 'utf8')
  return [...text.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, example]) => example)
}
const examples = await examplesOf('docs/node.md')

test('m_f4_the_page_has_examples', () => assert.ok(examples.length >= 3))

for (const [at, example] of examples.entries()) {
  test(`m_f4_example_${at + 1}_of_the_page_does_what_it_says`, async () => {
    const { stdout } = await script(example)
    const said = [...example.matchAll(/\) \/\/ (.*)$/gm)].map(([, said]) => said)
    assert.deepEqual(stdout.trim().split('\n'), said)
  })
}

test('m_f4_the_example_of_the_first_page_has_it_made', async () => {
  const [example, ...others] = await examplesOf('README.md')
  assert.deepEqual(others, [])
  // Here, `make` does what can be seen afterwards.
  const cwd = await folder()
  await writeFile(path.join(cwd, 'make'), '#!/bin/sh\necho "$PWD" > made\n', { mode: 0o755 })
  const env = { ...process.env, PATH: `${cwd}:${process.env.PATH}` }
  const { stdout } = await script(`process.chdir(${JSON.stringify(cwd)})\n${example}`, { env })
  assert.equal(stdout, '')
  assert.equal(await readFile(path.join(cwd, 'made'), 'utf8'), `${cwd}\n`)
})
