// Builds the addon and its program for this machine, or for `--target TRIPLE`, into native/PLATFORM-ARCH/; and writes what
// is made of them. `--debug` builds them quickly, with what the tests need.
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const PLATFORMS = {
  'x86_64-unknown-linux-gnu': 'linux-x64',
  'aarch64-unknown-linux-gnu': 'linux-arm64',
  'x86_64-apple-darwin': 'darwin-x64',
  'aarch64-apple-darwin': 'darwin-arm64',
}

const { values } = parseArgs({ options: { target: { type: 'string' }, debug: { type: 'boolean' } } })
const root = fileURLToPath(new URL('../', import.meta.url))
const folder = path.join(root, 'native', PLATFORMS[values.target] ?? `${process.platform}-${process.arch}`)

function run(command, args, options = {}) {
  const { status, stdout, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
  return stdout
}

const target = values.target ? ['--target', values.target] : []
const profile = values.debug ? ['--features', 'test-support'] : ['--release']
mkdirSync(folder, { recursive: true })
run('npx', ['napi', 'build', '--output-dir', 'native', '--dts', 'native.d.ts', ...target, ...profile])
run('cargo', ['build', '--quiet', '--bin', 'holdpoint-supervisor', ...target, ...profile])

// Replaced and not written over: a process may have them open.
const metadata = JSON.parse(
  run('cargo', ['metadata', '--format-version', '1', '--no-deps'], { stdio: ['inherit', 'pipe', 'inherit'], maxBuffer: 1 << 26 }),
)
const built = path.join(metadata.target_directory, values.target ?? '', values.debug ? 'debug' : 'release')
for (const [from, to] of [
  [path.join(root, 'native/holdpoint.node'), 'holdpoint.node'],
  [path.join(built, 'holdpoint-supervisor'), 'holdpoint-supervisor'],
]) {
  rmSync(path.join(folder, to), { force: true })
  copyFileSync(from, path.join(folder, to))
  // The names of functions stay, for stack traces; a debugger finds the rest where they were built.
  run('strip', ['-S', path.join(folder, to)])
}
rmSync(path.join(root, 'native/holdpoint.node'))

run(process.execPath, ['scripts/types.mjs'])
run(process.execPath, ['scripts/declarations.mjs'])
run('npm', ['run', '--silent', 'build:react'])
