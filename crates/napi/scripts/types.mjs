// Writes types.d.ts: what crosses as JSON, from the description of the daemon's API, which says the same.
import { readFile, writeFile } from 'node:fs/promises'
import { compile } from 'json-schema-to-typescript'

const api = new URL('../../../docs/openapi.json', import.meta.url)
const types = new URL('../types.d.ts', import.meta.url)

// A reference that has words of its own beside it would be taken for another type.
const alone = (_, value) =>
  value?.$ref
    ? { allOf: [{ $ref: value.$ref.replace('/components/schemas/', '/definitions/') }], description: value.description }
    : value

const { components } = JSON.parse(await readFile(api, 'utf8'))
const definitions = JSON.parse(JSON.stringify(components.schemas), alone)
const text = await compile({ definitions }, 'Types', {
  additionalProperties: false,
  unreachableDefinitions: true,
  bannerComment: '',
  style: { semi: false, singleQuote: true, printWidth: 120 },
})
await writeFile(types, text)
