// Generates types.d.ts from the OpenAPI description of the daemon's API, whose JSON types the addon
// also uses. With --check, reports whether the file is up to date.
import { readFile, writeFile } from 'node:fs/promises'
import { compile } from 'json-schema-to-typescript'

const api = new URL('../../../docs/openapi.json', import.meta.url)
const types = new URL('../types.d.ts', import.meta.url)

// Rewrites schemas that the generator misreads: it takes a reference with anything beside it, even
// a description, for another type, and drops fields beside alternatives, such as the one with the
// kind.
function alone(_, value) {
  if (value?.oneOf && value.properties) {
    const { oneOf, properties, required, type: _object, ...rest } = value
    const whole = (one) => ({ ...one, properties: { ...properties, ...one.properties }, required: [...required, ...one.required] })
    return { ...rest, oneOf: oneOf.map(whole) }
  }
  if (value?.anyOf && value.properties) {
    const { anyOf, description, ...fields } = value
    return { description, allOf: [{ anyOf }, fields] }
  }
  if (!value?.$ref) return value
  const { $ref, description, ...beside } = value
  const reference = { $ref: $ref.replace('/components/schemas/', '/definitions/') }
  return { allOf: [reference, ...(Object.keys(beside).length ? [beside] : [])], description }
}

const { components } = JSON.parse(await readFile(api, 'utf8'))
const definitions = JSON.parse(JSON.stringify(components.schemas), alone)
const compiled = await compile({ definitions }, 'Types', {
  additionalProperties: false,
  unreachableDefinitions: true,
  bannerComment: '// Written by scripts/types.mjs.\n',
  style: { semi: false, singleQuote: true, printWidth: 120 },
})
const text = compiled
  // The generator's remarks on its definitions say nothing here.
  .replace(/\n \*\n \* This interface was referenced by `Types`'s JSON-Schema\n \* via the `definition` "\w+"\./g, '')
  .replace(/\/\*\*\n \* This interface was referenced by `Types`'s JSON-Schema\n \* via the `definition` "\w+"\.\n \*\/\n/g, '')
  .replace(/export interface Types \{[^}]*\}\n/, '')

if (!process.argv.includes('--check')) {
  await writeFile(types, text)
} else if ((await readFile(types, 'utf8')) !== text) {
  console.error('types.d.ts is out of date: run `npm run types` in crates/napi and commit it')
  process.exitCode = 1
}
