'use strict'
// Checks arguments before they reach the addon, and converts the addon's errors to those of this
// package.

const parameters = require('./parameters.js')

/** Creates the error for an invalid argument. */
function argumentError(message) {
  return Object.assign(new TypeError(message), { code: 'invalidArgument' })
}

/** Returns a value's type for error messages. */
function typeName(value) {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : typeof value
}

const PRIMITIVES = { string: 'a string', number: 'a number', boolean: 'a boolean', function: 'a function' }

/** Refuses a value that does not have this primitive type. */
function checkType(name, type, value) {
  const isValid = typeof value === type && (type !== 'number' || Number.isFinite(value))
  if (!isValid) throw argumentError(`\`${name}\` must be ${PRIMITIVES[type]}, got ${typeName(value)}`)
}

/**
 * Refuses values that JSON would turn into `null` or `{}`, or leave out: a limit of `NaN` would
 * become no limit.
 */
function checkPlain(name, value, ancestors = []) {
  if (typeof value === 'number') checkType(name, 'number', value)
  if (['bigint', 'function', 'symbol'].includes(typeof value)) throw argumentError(`\`${name}\` can't be a ${typeof value}`)
  if (typeof value !== 'object' || value === null) return
  if (ancestors.includes(value)) throw argumentError(`\`${name}\` contains a circular reference`)
  checkCollection(name, value)
  for (const [key, part] of Object.entries(value)) {
    checkPlain(Array.isArray(value) ? `${name}[${key}]` : `${name}.${key}`, part, [...ancestors, value])
  }
}

/** Refuses collections that JSON would turn into `{}`. */
function checkCollection(name, value) {
  if (!(value instanceof Map) && !(value instanceof Set)) return
  throw argumentError(`\`${name}\` must be plain data, got ${value.constructor.name}`)
}

/** Returns the options of a call as an object. Options that are not among `known` are refused. */
function optionsOf(options, known) {
  if (options === undefined || options === null) return {}
  if (typeof options !== 'object' || Array.isArray(options)) {
    throw argumentError(`\`options\` must be an object, got ${typeName(options)}`)
  }
  checkCollection('options', options)
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown === undefined) return options
  const names = known.map((name) => `\`${name}\``)
  throw argumentError(`\`options.${unknown}\` is unknown; it can be one of ${names.slice(0, -1).join(', ')} and ${names.at(-1)}`)
}

/** Refuses arguments that the function with this name does not accept. */
function checkArguments(name, args) {
  for (const [index, { name: parameter, type, isOptional }] of (parameters[name] ?? []).entries()) {
    const value = args[index]
    if (isOptional && (value === undefined || value === null)) continue
    if (type in PRIMITIVES) checkType(parameter, type, value)
    else if (value === undefined) throw argumentError(`\`${parameter}\` is missing`)
    else checkData(parameter, value)
  }
}

/** Refuses a value that can't be converted to JSON as it is. */
function checkData(parameter, value) {
  try {
    checkPlain(parameter, value)
  } catch (error) {
    // A getter may throw, and objects may be nested too deeply.
    throw error.code === 'invalidArgument' ? error : argumentError(`\`${parameter}\` can't be read: ${error.message}`)
  }
}

/** Converts an error of the addon to one of this package. */
function toPackageError(error) {
  // The arguments have passed the checks, so this error is about `this`.
  if (/Expected$|^InvalidArg$/.test(error?.code)) return argumentError('`this` must be an object of the class of this method')
  if (error?.code === 'GenericFailure') error.code = 'failed'
  if (error?.code !== 'invalidArgument' || error instanceof TypeError) return error
  return Object.assign(new TypeError(error.message), error)
}

/** Wraps the function with this name: checks its arguments and converts its errors. */
function checked(call, name) {
  return function (...args) {
    try {
      checkArguments(name, args)
      return call.apply(this, args)
    } catch (error) {
      throw toPackageError(error)
    }
  }
}

/** Like `checked`, for a function that returns a promise. The promise rejects with the errors. */
function checkedAsync(call, name) {
  const checkedCall = checked(call, name)
  return async function (...args) {
    try {
      return await checkedCall.apply(this, args)
    } catch (error) {
      throw toPackageError(error)
    }
  }
}

module.exports = { checkType, checked, checkedAsync, optionsOf }
