// The examples of the README, run, each in a process of its own: what their comments say is what they print.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'

import { folder, root, script } from './support.mjs'

const readme = await readFile(path.join(root, 'README.md'), 'utf8')
const examples = [...readme.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, example]) => example)

test('m_f4_the_readme_has_examples', () => assert.ok(examples.length >= 4))

for (const [at, example] of examples.entries()) {
  test(`m_f4_example_${at + 1}_of_the_readme_does_what_it_says`, async () => {
    const cwd = await folder()
    const { stdout } = await script(`process.chdir(${JSON.stringify(cwd)})\n${example.replace("'holdpoint'", "'./index.mjs'")}`)
    const said = [...example.matchAll(/\) \/\/ (.*)$/gm)].map(([, said]) => said)
    assert.deepEqual(stdout.trim().split('\n').sort(), (said.length ? said : ['Hello.', 'Done.']).sort())
  })
}
