'use strict'
// What the addon itself throws, at arguments of a wrong type, as all errors of this package are: with a code of ours.

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
