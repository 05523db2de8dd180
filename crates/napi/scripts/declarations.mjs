// Writes index.d.ts, from what napi declares: its class, and the functions of the package, which are those of one of its
// instances; index.mjs, which names them all, and index.d.mts. With --check, says whether they are as they would be
// written.
import { readFile, writeFile } from 'node:fs/promises'

const root = new URL('../', import.meta.url)
const read = (name) => readFile(new URL(name, root), 'utf8')

const EVENTS = `  /**
   * A session's events, to be iterated: the past as \`options\` say, then what happens. The session never waits; leaving the
   * loop detaches. Node stays for it. It ends with the session; if the connection to a daemon breaks, it throws.
   */
  sessionEvents(id: string, options?: EventsOptions): AsyncGenerator<Event, StreamEnd, void>
`

/** A class of a declaration, with its doc and its body. */
const aClass = (name) => new RegExp(`(?:/\\*\\*(?:(?!\\*/)[^])*\\*/\\n)?export declare class ${name} \\{\\n([^]*?)\\n?\\}\\n\\n?`)

const header = await read('dts-header.d.ts')
// A class that only tests have.
let declared = (await read('native/native.d.ts')).replace(aClass('Panics'), '')
declared = declared.replace(/^[^]*?(?=\/\*\*|export)/, '')
// Nobody makes one: they are given.
const ofClass = (body) => `  private constructor()\n${body}\n${EVENTS}`.trimEnd()
declared = declared.replace(aClass('Sessions'), (whole, body) => whole.replace(body, ofClass(body)))

const members = [...declared.match(aClass('Sessions'))[1].matchAll(/( {2}\/\*\*(?:(?!\*\/)[^])*\*\/\n) {2}(\w+)(\(.*)/g)]
const functions = members.map(
  ([, doc, name, signature]) => `${doc.replace(/^ {2}/gm, '')}export declare function ${name}${signature}\n`,
)
const names = [...members.map(([, , name]) => name)].sort()
const types = `// Written by scripts/declarations.mjs.\n${header}\n${declared.trim()}\n\n${functions.join('\n')}`
const module = `// Written by scripts/declarations.mjs: the package, for \`import\`.
import holdpoint from './index.js'

export const {
  Sessions,
  AskForm,
  AfterAsk,
  connect,
  start,
  version,
${names.map((name) => `  ${name},\n`).join('')}} = holdpoint
`

const ofModule = `// Written by scripts/declarations.mjs: the declarations, for \`import\`, which has no default.
export * from './index.js'
`

for (const [name, text] of [['index.d.ts', types], ['index.mjs', module], ['index.d.mts', ofModule]]) {
  if (process.argv.includes('--check')) {
    if ((await read(name)) !== text) {
      console.error(`${name} is not as the addon is: run \`npm run build\` and commit it`)
      process.exitCode = 1
    }
  } else {
    await writeFile(new URL(name, root), text)
  }
}
