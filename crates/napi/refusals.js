'use strict'
// Refuses arguments before the addon has them, and makes the addon's errors those of this package.

const parameters = require('./parameters.js')

/** The error for an argument that is refused. */
function refused(message) {
  return Object.assign(new TypeError(message), { code: 'invalidArgument' })
}

/** A value's type, as an error says it. */
function kindOf(value) {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : typeof value
}

const PRIMITIVES = { string: 'a string', number: 'a number', boolean: 'a boolean', function: 'a function' }

/** Refuses a value that is not of this primitive type. */
function checkType(name, type, value) {
  const fits = typeof value === type && (type !== 'number' || Number.isFinite(value))
  if (!fits) throw refused(`\`${name}\` must be ${PRIMITIVES[type]}, got ${kindOf(value)}`)
}

/** Refuses values that JSON would turn into `null`, `{}` or nothing: with a limit of `NaN` there would be no limit. */
function checkPlain(name, value, around = []) {
  if (typeof value === 'number') checkType(name, 'number', value)
  if (['bigint', 'function', 'symbol'].includes(typeof value)) throw refused(`\`${name}\` can't be a ${typeof value}`)
  if (typeof value !== 'object' || value === null) return
  if (around.includes(value)) throw refused(`\`${name}\` refers back to an object that it is in`)
  checkCollection(name, value)
  for (const [key, part] of Object.entries(value)) {
    checkPlain(Array.isArray(value) ? `${name}[${key}]` : `${name}.${key}`, part, [...around, value])
  }
}

/** Refuses collections that JSON would turn into `{}`. */
function checkCollection(name, value) {
  if (!(value instanceof Map) && !(value instanceof Set)) return
  throw refused(`\`${name}\` must be plain data, got ${value.constructor.name}`)
}

/** The options that a call was given, as an object. Those that are not among `known` are refused. */
function optionsOf(options, known) {
  if (options === undefined || options === null) return {}
  if (typeof options !== 'object' || Array.isArray(options)) {
    throw refused(`\`options\` must be an object, got ${kindOf(options)}`)
  }
  checkCollection('options', options)
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown === undefined) return options
  const names = known.map((name) => `\`${name}\``)
  throw refused(`\`options.${unknown}\` is not known; it can be one of ${names.slice(0, -1).join(', ')} and ${names.at(-1)}`)
}

/** Refuses arguments that the function of this name does not take. */
function check(name, args) {
  for (const [at, { name: parameter, type, isOptional }] of (parameters[name] ?? []).entries()) {
    const value = args[at]
    if (isOptional && (value === undefined || value === null)) continue
    if (type in PRIMITIVES) checkType(parameter, type, value)
    else if (value === undefined) throw refused(`\`${parameter}\` is missing`)
    else readable(parameter, value)
  }
}

function readable(parameter, value) {
  try {
    checkPlain(parameter, value)
  } catch (error) {
    // A getter may throw, and objects may be too deep.
    throw error.code === 'invalidArgument' ? error : refused(`\`${parameter}\` can't be read: ${error.message}`)
  }
}

/** An error of the addon as one of this package. */
function ours(error) {
  // The types of arguments are checked above: this is about `this`.
  if (/Expected$|^InvalidArg$/.test(error?.code)) return refused('`this` must be an object of the class of this method')
  if (error?.code === 'GenericFailure') error.code = 'failed'
  if (error?.code !== 'invalidArgument' || error instanceof TypeError) return error
  return Object.assign(new TypeError(error.message), error)
}

/** The function of this name, with its arguments checked and errors of this package. */
function thrown(call, name) {
  return function (...args) {
    try {
      check(name, args)
      return call.apply(this, args)
    } catch (error) {
      throw ours(error)
    }
  }
}

/** The same for a function that returns a promise, which rejects with the errors. */
function promised(call, name) {
  const throwing = thrown(call, name)
  return async function (...args) {
    try {
      return await throwing.apply(this, args)
    } catch (error) {
      throw ours(error)
    }
  }
}

module.exports = { checkType, optionsOf, promised, thrown }
