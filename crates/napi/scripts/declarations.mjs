// Generates files from the declarations of napi: index.d.ts with the class and the package's
// functions, which are the methods of one instance; index.mjs and index.d.mts, which export them;
// and parameters.js, which the checks of arguments use. With --check, reports whether the files are
// up to date.
import { readFile, writeFile } from 'node:fs/promises'

const root = new URL('../', import.meta.url)
const read = (name) => readFile(new URL(name, root), 'utf8')

const EVENTS = `  /**
   * Iterates over a session's events: first the past ones that \`options\` select, then new ones, with
   * strictly rising numbers. Leaving the loop detaches. The session never waits for the loop, and
   * Node stays alive during it. The loop ends when the session is closed, and throws if the
   * connection to a daemon breaks.
   */
  sessionEvents(id: string, options?: EventsOptions): AsyncGenerator<Event, StreamEnd, void>
`

/** Matches the declaration of a class, with its doc and its body. */
const aClass = (name) => new RegExp(`(?:/\\*\\*(?:(?!\\*/)[^])*\\*/\\n)?export declare class ${name} \\{\\n([^]*?)\\n?\\}\\n\\n?`)

const header = await read('dts-header.d.ts')
// This class exists only in tests.
let declared = (await read('native/native.d.ts')).replace(aClass('Panics'), '')
declared = declared.replace(/^[^]*?(?=\/\*\*|export)/, '')
// Programs do not construct this class.
const ofClass = (body) => `  private constructor()\n${body}\n${EVENTS}`.trimEnd()
declared = declared.replace(aClass('Sessions'), (whole, body) => whole.replace(body, ofClass(body)))

const members = [...declared.match(aClass('Sessions'))[1].matchAll(/( {2}\/\*\*(?:(?!\*\/)[^])*\*\/\n) {2}(\w+)(\(.*)/g)]
const functions = members.map(
  ([, doc, name, signature]) => `${doc.replace(/^ {2}/gm, '')}export declare function ${name}${signature}\n`,
)

/** Returns the parameters of a signature: `(id: string, options?: CloseOptions): Promise<void>`. */
function parametersOf(signature) {
  const [, list] = signature.match(/^\((.*)\)(?:: |$)/)
  return list.split(/, (?=\w+\??: )/).filter(Boolean).map((parameter) => {
    const [, name, optional, type] = parameter.match(/^(\w+)(\??): (.*)$/)
    const kind = type.startsWith('(') ? 'function' : ['string', 'number', 'boolean'].includes(type) ? type : 'data'
    return `{ name: '${name}', type: '${kind}', isOptional: ${optional !== ''} }`
  })
}

const signatures = members.map(([, , name, signature]) => [name, signature])
for (const [, name, signature] of declared.matchAll(/^export declare function (\w+)(\(.*)/gm)) signatures.push([name, signature])
for (const name of ['AfterAsk', 'AskForm']) {
  for (const [, member, signature] of declared.match(aClass(name))[1].matchAll(/^ {2}(\w+)(\(.*)/gm)) {
    signatures.push([member === 'constructor' ? name : `${name}.${member}`, signature])
  }
}
const parameters = `'use strict'
// Written by scripts/declarations.mjs: the declared parameters of every function. The addon itself
// checks those of type \`data\`.

module.exports = {
${signatures.map(([name, signature]) => `  '${name}': [${parametersOf(signature).join(', ')}],\n`).join('')}}
`
const names = [...members.map(([, , name]) => name)].sort()
const types = `// Written by scripts/declarations.mjs.\n${header}\n${declared.trim()}\n\n${functions.join('\n')}`
const module = `// Written by scripts/declarations.mjs: the package, for \`import\`.
import holdpoint from './index.js'

export const {
  Sessions,
  AskForm,
  AfterAsk,
  clientOrigin,
  connect,
  start,
  version,
${names.map((name) => `  ${name},\n`).join('')}} = holdpoint
`

const ofModule = `// Written by scripts/declarations.mjs: the declarations, for \`import\`, which has no default.
export * from './index.js'
`

for (const [name, text] of [['index.d.ts', types], ['index.mjs', module], ['index.d.mts', ofModule], ['parameters.js', parameters]]) {
  if (process.argv.includes('--check')) {
    if ((await read(name)) !== text) {
      console.error(`${name} is out of date: run \`npm run build\` and commit it`)
      process.exitCode = 1
    }
  } else {
    await writeFile(new URL(name, root), text)
  }
}
