// Builds the addon and its program for this machine, or for `--target TRIPLE`, into
// native/PLATFORM-ARCH/, and generates the files that depend on them. `--debug` is a fast build
// with everything that the tests need.
//
// This script runs cargo itself. `napi build` always passes a target, so that cargo can't reuse any
// other build and compiles everything twice.
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { generateTypeDef } from '@napi-rs/cli'

const PLATFORMS = {
  'x86_64-unknown-linux-gnu': 'linux-x64',
  'aarch64-unknown-linux-gnu': 'linux-arm64',
  'x86_64-apple-darwin': 'darwin-x64',
  'aarch64-apple-darwin': 'darwin-arm64',
}

const { values } = parseArgs({ options: { target: { type: 'string' }, debug: { type: 'boolean' } } })
const root = fileURLToPath(new URL('../', import.meta.url))
const platform = values.target ? PLATFORMS[values.target] : `${process.platform}-${process.arch}`
if (!platform) {
  console.error(`error: unsupported target ${values.target}`)
  console.error(`hint: use one of ${Object.keys(PLATFORMS).join(', ')}`)
  process.exit(2)
}
const folder = path.join(root, 'native', platform)

function run(command, args, options = {}) {
  const { status, stdout, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
  return stdout
}

const metadata = JSON.parse(
  run('cargo', ['metadata', '--format-version', '1', '--no-deps'], { stdio: ['inherit', 'pipe', 'inherit'], maxBuffer: 1 << 26 }),
)
// While compiling, the macros of napi write the declarations of the functions here.
const declared = path.join(metadata.target_directory, values.debug ? 'napi-types-debug' : 'napi-types')
mkdirSync(declared, { recursive: true })
const target = values.target ? ['--target', values.target] : []
// The features and targets of the workspace's tests, and the program that starts daemons. So builds
// of `cargo test` are reused.
const debug = ['--workspace', '--lib', '--bins', '--test', 'it', '--features', 'holdpoint-napi/test-support']
const release = ['--release', '--package', 'holdpoint-napi', '--lib', '--package', 'holdpoint', '--bin', 'holdpoint-supervisor']
const what = values.debug ? debug : release
run('cargo', ['build', '--quiet', ...what, ...target], {
  env: { ...process.env, NAPI_TYPE_DEF_TMP_FOLDER: declared },
})

const built = path.join(metadata.target_directory, values.target ?? '', values.debug ? 'debug' : 'release')
const library = platform.startsWith('darwin') ? 'libholdpoint_napi.dylib' : 'libholdpoint_napi.so'
mkdirSync(folder, { recursive: true })
for (const [from, to] of [
  [library, 'holdpoint.node'],
  ['holdpoint-supervisor', 'holdpoint-supervisor'],
]) {
  // Replace the file instead of overwriting it: a process may have it open.
  rmSync(path.join(folder, to), { force: true })
  copyFileSync(path.join(built, from), path.join(folder, to))
  // Keep the names of functions for stack traces. A debugger finds the rest in the build folder.
  run('strip', ['-S', path.join(folder, to)])
}

const { dts } = await generateTypeDef({ typeDefDir: declared, cwd: root })
writeFileSync(path.join(root, 'native/native.d.ts'), dts)
run(process.execPath, ['scripts/types.mjs'])
run(process.execPath, ['scripts/declarations.mjs'])
run('npm', ['run', '--silent', 'build:react'])
