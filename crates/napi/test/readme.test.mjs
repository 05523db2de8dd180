// Runs the examples of the README, each in its own process, and checks that they print the text in
// their comments.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'

import { folder, root, script } from './support.mjs'

const readme = await readFile(path.join(root, 'README.md'), 'utf8')
const examples = [...readme.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, example]) => example)

test('m_f4_the_readme_has_examples', () => assert.ok(examples.length >= 4))

for (const [at, example] of examples.entries()) {
  test(`m_f4_example_${at + 1}_of_the_readme_prints_its_comments`, async () => {
    const cwd = await folder()
    const { stdout } = await script(`process.chdir(${JSON.stringify(cwd)})\n${example.replace("'holdpoint'", "'./index.mjs'")}`)
    const expected = [...example.matchAll(/\) \/\/ (.*)$/gm)].map(([, expected]) => expected)
    assert.deepEqual(stdout.trim().split('\n').sort(), (expected.length ? expected : ['Hello.', 'Done.']).sort())
  })
}
