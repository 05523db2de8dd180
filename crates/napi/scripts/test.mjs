// Runs all tests, or those of the given files. If the variable CI is set, each file with a failed
// test runs once more; a test that then passes is printed as FLAKY at the end and does not fail the
// run. It is still a bug, to be fixed in the next commit (CONTRIBUTING.md).

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const OPTIONS = ['--test-concurrency=2', '--test-force-exit', '--test-timeout=1200000']

/**
 * Runs these files. Returns the exit status and the failed tests, each as its file, a tab and its
 * name.
 */
function run(files) {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdpoint-test-'))
  const list = path.join(folder, 'failed')
  const reporters = [
    ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
    ...['--test-reporter=./scripts/failed-tests.mjs', `--test-reporter-destination=${list}`],
  ]
  const { status } = spawnSync(process.execPath, ['--test', ...OPTIONS, ...reporters, ...files], { stdio: 'inherit' })
  const failed = readFileSync(list, 'utf8').split('\n').filter(Boolean)
  rmSync(folder, { recursive: true })
  return { status: status ?? 1, failed }
}

const named = process.argv.slice(2)
const all = readdirSync('test').filter((name) => name.endsWith('.test.mjs'))
const first = run(named.length ? named : all.map((name) => path.join('test', name)))
let { status } = first
if (status && first.failed.length && process.env.CI) {
  const again = run([...new Set(first.failed.map((test) => test.split('\t')[0]))])
  status = again.status
  for (const test of first.failed) if (!again.failed.includes(test)) console.log(`FLAKY ${test.replace('\t', ': ')}`)
}
process.exit(status)
