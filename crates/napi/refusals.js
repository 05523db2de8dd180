'use strict'
// What is refused before the addon has it, and what the addon itself throws at arguments of a wrong type: as all errors
// of this package are, with a code of ours.

/** An argument that can't be meant. */
function refused(what) {
  return Object.assign(new TypeError(what), { code: 'invalidArgument' })
}

/**
 * Refuses what JSON has no word for, and would make `null`, an empty object or nothing: a limit of `NaN` would be none.
 * Callbacks are arguments of their own.
 */
function check(argument) {
  if (typeof argument === 'number' && !Number.isFinite(argument)) throw refused(`${argument} is no number that can be meant`)
  if (typeof argument !== 'object' || argument === null) return
  try {
    JSON.stringify(argument, (name, value) => {
      const where = name === '' ? 'an argument' : `\`${name}\``
      if (typeof value === 'number' && !Number.isFinite(value)) throw refused(`${where} is ${value}, which can't be meant`)
      if (typeof value === 'function' || typeof value === 'symbol') throw refused(`${where} is a ${typeof value}, which can't be meant`)
      if (value instanceof Map || value instanceof Set) throw refused(`${where} is a ${value.constructor.name}: give a plain object or an array`)
      return value
    })
  } catch (error) {
    throw error.code === 'invalidArgument' ? error : refused(error.message)
  }
}

/** An error, with a code of ours. */
function ours(error) {
  if (/Expected$|^InvalidArg$/.test(error?.code)) error.code = 'invalidArgument'
  else if (error?.code === 'GenericFailure') error.code = 'failed'
  return error
}

/** The same function, whose errors are ours. */
function thrown(call) {
  return function (...args) {
    try {
      args.forEach(check)
      return call.apply(this, args)
    } catch (error) {
      throw ours(error)
    }
  }
}

/** The same, with a promise for all that goes wrong. */
function promised(call) {
  const throwing = thrown(call)
  return async function (...args) {
    return throwing.apply(this, args)
  }
}

module.exports = { promised, thrown }
