// Runs the examples of docs/node.md that are not components, and checks that they print the text in
// their comments. Also runs the example of the first page.
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
  test(`m_f4_example_${at + 1}_of_the_page_prints_its_comments`, async () => {
    const { stdout } = await script(example)
    const expected = [...example.matchAll(/\) \/\/ (.*)$/gm)].map(([, expected]) => expected)
    assert.deepEqual(stdout.trim().split('\n'), expected)
  })
}

test('m_f4_the_example_of_the_first_page_runs_make', async () => {
  const [example, ...others] = await examplesOf('README.md')
  assert.deepEqual(others, [])
  // This `make` leaves a file that the test can check.
  const cwd = await folder()
  await writeFile(path.join(cwd, 'make'), '#!/bin/sh\necho "$PWD" > made\n', { mode: 0o755 })
  const env = { ...process.env, PATH: `${cwd}:${process.env.PATH}` }
  const { stdout } = await script(`process.chdir(${JSON.stringify(cwd)})\n${example}`, { env })
  assert.equal(stdout, '')
  assert.equal(await readFile(path.join(cwd, 'made'), 'utf8'), `${cwd}\n`)
})
