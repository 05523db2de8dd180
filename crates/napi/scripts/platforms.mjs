// Creates the packages of a release: one for each platform that was built into native/, and the
// main package, which depends on the one for the user's platform. They are written to npm/ here, or
// to the given folder; nothing is published.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
const main = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
const { version, license, repository, engines } = main
const licenses = ['LICENSE-APACHE', 'LICENSE-MIT']
const npm = path.resolve(process.argv[2] ?? path.join(root, 'npm'))
rmSync(npm, { recursive: true, force: true })

function write(folder, files, manifest) {
  mkdirSync(folder, { recursive: true })
  const place = (file) => (file.startsWith('native') ? path.basename(file) : file)
  for (const file of files) cpSync(path.join(root, file), path.join(folder, place(file)), { recursive: true })
  for (const file of licenses) cpSync(path.join(root, '../..', file), path.join(folder, file))
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}

const packages = {}
for (const platform of ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64']) {
  const files = ['holdpoint.node', 'holdpoint-supervisor'].map((file) => path.join('native', platform, file))
  if (!files.every((file) => existsSync(path.join(root, file)))) {
    console.error(`native/${platform} is not built: skipped`)
    continue
  }
  const [os, cpu] = platform.split('-')
  const name = `@holdpoint/${platform}`
  const libc = os === 'linux' ? { libc: ['glibc'] } : {}
  const manifest = { name, version, description: `The addon of holdpoint for ${platform}`, license, repository, engines }
  write(path.join(npm, platform), files, { ...manifest, os: [os], cpu: [cpu], ...libc })
  packages[name] = version
}

const { devDependencies, scripts, ...manifest } = main
const files = main.files.filter((file) => !file.startsWith('native/'))
write(path.join(npm, 'holdpoint'), [...files, 'README.md'], { ...manifest, files: [...files, ...licenses], optionalDependencies: packages })
console.log(readdirSync(npm).map((folder) => path.join(npm, folder)).join('\n'))
