// Tests of wrong arguments: every declared parameter and option, each with values of a wrong kind.
// The error must be a TypeError in JavaScript terms that names the wrong part.
import assert from 'node:assert/strict'
import path from 'node:path'
import { before, describe, test } from 'node:test'

import ts from 'typescript'

import { failure, holdpoint, open, root } from './support.mjs'

const { TypeFlags } = ts

const file = path.join(root, 'index.d.ts')
const program = ts.createProgram([file], { strict: true, module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, types: [] })
const checker = program.getTypeChecker()
const declared = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)))

/** Words of Rust, serde and napi-rs, which must not occur in a message. */
const RUST = /\b(napi|serde|rust|struct|enum|variant|tuple|sequence|map|unit|option::|usize|[uif](8|16|32|64)|expected|invalid (type|value|length)|field|line \d|column|none|some)\b/i

const CONFIRM = {
  id: 'k3v9x2m7qa.1', call: 1, origin: 'policy', since: 1,
  request: { type: 'pause', kind: 'confirm', toolName: 'shell', message: 'Run this?' },
}

/** Returns a valid value of this type. */
function sample(type, name) {
  if (name === 'ask') return CONFIRM
  if (checker.isArrayType(type)) return []
  if (type.flags & TypeFlags.StringLike) return 'x'
  if (type.flags & TypeFlags.NumberLike) return 1
  if (type.flags & TypeFlags.BooleanLike || isBoolean(type)) return true
  if (isWord(type)) return type.types[0].value
  if (type.getCallSignatures().length > 0) return () => {}
  const required = type.getProperties().filter(({ flags }) => !(flags & ts.SymbolFlags.Optional))
  return Object.fromEntries(required.map((property) => [property.name, sample(typeOf(property), property.name)]))
}

const typeOf = (symbol) => checker.getNonNullableType(checker.getTypeOfSymbol(symbol))
const isBoolean = (type) => type.isUnion() && type.types.every(({ flags }) => flags & TypeFlags.BooleanLike)
const isWord = (type) => type.isUnion() && type.types.every(({ flags }) => flags & TypeFlags.StringLiteral)

/** Yields values that this type does not have, each with the path of the wrong part. */
function* wrong(type, at, name, takesNull) {
  const are = (...values) => values.map((value) => [at, value])
  if (!takesNull && !type.isUnion()) yield* are(null)
  if (isWord(type)) yield* are(5, 'nonsense', {}, [])
  else if (type.flags & TypeFlags.BooleanLike || isBoolean(type)) yield* are('yes', 1, {}, NaN)
  else if (type.flags & TypeFlags.StringLike) yield* are(5, true, {}, [], NaN, Symbol('x'))
  else if (type.flags & TypeFlags.NumberLike) {
    yield* are('now', true, {}, [], NaN, Infinity, -1, 1e300, 10n)
    if (name !== 'at') yield* are(1.5)
  } else if (checker.isArrayType(type)) {
    yield* are(5, 'x', {})
    const [item] = checker.getTypeArguments(type)
    for (const [part, value] of wrong(item, `${at}[0]`, name)) yield [part, [value]]
  } else if (type.getCallSignatures().length > 0) yield* are(5, 'later', {})
  else if (type.isUnion()) yield* are(5, 'x', [])
  else {
    yield* are(5, 'x', true, [], () => {}, new Map())
    const given = sample(type, name)
    const circle = { ...given }
    yield [`${at}.circle`, Object.assign(circle, { circle })]
    if (type.getStringIndexType()) return yield [`${at}.name`, { name: 5 }]
    yield [`${at}.unknown`, { ...given, unknown: 1 }]
    for (const property of type.getProperties()) {
      const isOptional = property.flags & ts.SymbolFlags.Optional
      const part = `${at}.${property.name}`
      if (!isOptional) {
        const { [property.name]: _, ...rest } = given
        yield [part, rest]
      }
      for (const [wrongPart, value] of wrong(typeOf(property), part, property.name, isOptional || takesNullItself(property))) {
        yield [wrongPart, { ...given, [property.name]: value }]
      }
    }
  }
}

const takesNullItself = (symbol) => checker.getTypeOfSymbol(symbol) !== typeOf(symbol)

/** Yields calls with one wrong argument each, for all parameters of these signatures. */
function* wrongCalls(signature, samples = {}) {
  const parameters = signature.getParameters().map((symbol) => ({
    symbol,
    name: symbol.name,
    isOptional: Boolean(symbol.valueDeclaration.questionToken),
    type: typeOf(symbol),
  }))
  const good = parameters.map(({ type, name }) => samples[name] ?? sample(type, name))
  for (const [at, { symbol, type, name, isOptional }] of parameters.entries()) {
    if (!isOptional) yield [name, good.slice(0, at)]
    for (const [part, value] of wrong(type, name, name, isOptional || takesNullItself(symbol))) {
      yield [part, good.with(at, value)]
    }
  }
}

async function refuses(what, part, call) {
  const error = await failure(call)
  const context = `${what}, ${part}: ${error.stack}`
  assert.equal(error.code, 'invalidArgument', context)
  assert.ok(error instanceof TypeError, context)
  assert.doesNotMatch(error.message.replaceAll(/`[^`]*`|"[^"]*"|got \w+$/g, ''), RUST, context)
  const [named] = error.message.match(/^`[^`]+`/) ?? assert.fail(context)
  // Inside a tagged object, the error does not have the names of the fields.
  const outer = part.startsWith('ask.request') ? 'ask.request' : part
  assert.ok(named.slice(1, -1).startsWith(outer) || part.startsWith('ask.request'), context)
  assert.ok(named.startsWith(`\`${part.match(/^\w+/)[0]}`), context)
}

/** The functions and their valid arguments. */
const functions = declared.filter(({ flags, name }) => flags & ts.SymbolFlags.Function && name !== 'version')

describe('arguments', () => {
  let id
  before(async () => {
    id = await open(holdpoint)
  })

  for (const symbol of functions) {
    test(`m_f1_wrong_arguments_of_${symbol.name}_are_named`, async () => {
      const [signature] = typeOf(symbol).getCallSignatures()
      let count = 0
      for (const [part, args] of wrongCalls(signature, { id, what: id })) {
        count += 1
        await refuses(symbol.name, part, async () => {
          const result = await holdpoint[symbol.name](...args)
          // A loop reports the error when it begins.
          return result?.next?.()
        })
      }
      assert.ok(signature.getParameters().length === 0 || count > 4, `${count}`)
    })
  }

  for (const name of ['AskForm', 'AfterAsk']) {
    test(`m_f1_wrong_arguments_of_${name}_are_named`, async () => {
      const type = typeOf(declared.find((symbol) => symbol.name === name))
      const [constructor] = type.getConstructSignatures()
      const made = () => (name === 'AskForm' ? new holdpoint.AskForm(CONFIRM, 0) : new holdpoint.AfterAsk())
      for (const [part, args] of wrongCalls(constructor)) await refuses(name, part, () => new holdpoint[name](...args))
      let methods = 0
      for (const member of constructor.getReturnType().getProperties()) {
        const [signature] = typeOf(member).getCallSignatures()
        if (!signature) continue
        methods += 1
        for (const [part, args] of wrongCalls(signature)) {
          await refuses(`${name}.${member.name}`, part, () => made()[member.name](...args))
        }
      }
      assert.ok(methods >= 2)
      const method = name === 'AskForm' ? 'appear' : 'begin'
      const { message } = await failure(() => made()[method].call({}, 1))
      assert.match(message, /^`this`|^Illegal invocation$/)
    })
  }

  test('m_f1_an_argument_error_names_the_allowed_values', async () => {
    const message = async (call) => (await failure(call)).message
    const { sessionAttach, sessionEvents, sessionOpen, sessionPrompt, sessionRun, start } = holdpoint
    assert.equal(await message(sessionOpen(5)), '`options` must be an object, got number')
    assert.equal(await message(sessionOpen({ model: 5 })), '`options.model` must be a string, got number')
    assert.equal(await message(sessionOpen({ maxSteps: 1.5 })), '`options.maxSteps` must be a whole number from 0 to 4294967295, got 1.5')
    assert.equal(await message(sessionOpen({ policy: 'al' })), '`options.policy` must be one of `ask`, `edits`, `sandboxed`, `all` and `readonly`, got "al"')
    assert.equal(await message(sessionOpen({ rules: { alow: [] } })), '`options.rules.alow` is unknown; it can be one of `allow`, `ask` and `deny`')
    assert.equal(await message(sessionOpen({ rules: { deny: ['x', 5] } })), '`options.rules.deny[1]` must be a string, got number')
    assert.equal(await message(sessionRun(id, { task: 1 })), '`run.goal` is missing')
    assert.equal(await message(sessionPrompt(id, NaN)), '`text` must be a string, got NaN')
    assert.equal(await message(sessionRun(id, { goal: '\ud800' })), '`run` has text that is not Unicode')
    const deep = Array.from({ length: 200 }).reduce((inner) => [inner], 1)
    assert.equal(await message(sessionRun(id, { goal: deep })), '`run` is nested too deeply')
    assert.equal(await message(sessionAttach(id)), '`callback` must be a function, got undefined')
    assert.equal(await message(sessionOpen(new Map())), '`options` must be plain data, got Map')
    const known = (list) => `\`options.other\` is unknown; it can be one of ${list}`
    const attaching = known('`after`, `limit`, `keepAlive`, `onEnd` and `onError`')
    assert.equal(await message(sessionAttach(id, () => {}, { other: 1 })), attaching)
    assert.equal(await message(sessionEvents(id, { other: 1 }).next()), known('`after` and `limit`'))
    assert.equal(await message(async () => start({ other: 1 })), known('`config`, `stateDir` and `log`'))
  })
})
