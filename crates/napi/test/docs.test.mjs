// The examples of docs/node.md that are no components, run: what their comments say is what they print.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'

import { root, script } from './support.mjs'

const page = await readFile(path.join(root, '../../docs/node.md'), 'utf8')
const examples = [...page.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, example]) => example)

test('m_f4_the_page_has_examples', () => assert.ok(examples.length >= 3))

for (const [at, example] of examples.entries()) {
  test(`m_f4_example_${at + 1}_of_the_page_does_what_it_says`, async () => {
    const { stdout } = await script(example)
    const said = [...example.matchAll(/\) \/\/ (.*)$/gm)].map(([, said]) => said)
    assert.deepEqual(stdout.trim().split('\n'), said)
  })
}
