'use strict'
// Loads the addon, and gives it the path of the program that supervises the processes of tools.

const { existsSync } = require('node:fs')
const path = require('node:path')
const { isMainThread } = require('node:worker_threads')

const target = `${process.platform}-${process.arch}`

/**
 * Yields the folders that may contain the addon and its program: built or packed here, or in the
 * package for this platform.
 */
function* folders() {
  yield path.join(__dirname, 'native', target)
  try {
    yield path.dirname(require.resolve(`@holdpoint/${target}/package.json`))
  } catch {
    // The package for this platform is not installed.
  }
}

function load() {
  for (const folder of folders()) {
    const addon = path.join(folder, 'holdpoint.node')
    if (!existsSync(addon)) continue
    const native = require(addon)
    native.superviseWith(path.join(folder, 'holdpoint-supervisor'))
    if (isMainThread) process.once('exit', () => native.stop())
    return native
  }
  const error = new Error(`holdpoint has no addon for ${target}`)
  error.code = 'noAddon'
  error.hint = `install @holdpoint/${target}, or run \`npm run build\` in the folder of the package`
  throw error
}

module.exports = load()
