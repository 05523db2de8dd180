// Builds the addon and its program for this machine, or for `--target TRIPLE`, into native/PLATFORM-ARCH/; and writes what
// is made of them. `--debug` builds them quickly, with what the tests need.
//
// Cargo is run here and not by `napi build`, which names a target always: then nothing that cargo has built for anything
// else is of use, and all of it is built twice.
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
  console.error(`error: no package is made for ${values.target}`)
  console.error(`hint: it can be ${Object.keys(PLATFORMS).join(', ')}`)
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
// What the functions are declared as is written there by the macros of napi, as they are compiled.
const declared = path.join(metadata.target_directory, values.debug ? 'napi-types-debug' : 'napi-types')
mkdirSync(declared, { recursive: true })
const target = values.target ? ['--target', values.target] : []
// With all that the workspace's tests are built with, and the program that starts daemons: what `cargo test` has built is
// not built anew.
const debug = ['--workspace', '--lib', '--bins', '--test', 'it', '--features', 'holdpoint-napi/test-support']
const what = values.debug ? debug : ['--release', '--package', 'holdpoint-napi']
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
  // Replaced and not written over: a process may have them open.
  rmSync(path.join(folder, to), { force: true })
  copyFileSync(path.join(built, from), path.join(folder, to))
  // The names of functions stay, for stack traces; a debugger finds the rest where they were built.
  run('strip', ['-S', path.join(folder, to)])
}

const { dts } = await generateTypeDef({ typeDefDir: declared, cwd: root })
writeFileSync(path.join(root, 'native/native.d.ts'), dts)
run(process.execPath, ['scripts/types.mjs'])
run(process.execPath, ['scripts/declarations.mjs'])
run('npm', ['run', '--silent', 'build:react'])
