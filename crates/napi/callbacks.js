'use strict'
// How callbacks are called: what they throw ends nothing, and is told.

/** Tells what a callback of this function has thrown, by a warning of the process. */
function warning(whose) {
  return (error) => {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error)
    process.emitWarning(`a callback of ${whose} has thrown: ${what}`, 'HoldpointWarning')
  }
}

/** Calls callbacks of this function. What they throw, or reject with if they are async, goes to `onError`. */
function caller(whose, onError = warning(whose)) {
  const failed = (error) => {
    try {
      onError(error)
    } catch (another) {
      warning(whose)(another)
    }
  }
  return (callback, value) => {
    try {
      const result = callback(value)
      // Nobody waits for a callback that is async, but what it throws is not to end the process.
      if (typeof result?.then === 'function') result.then(undefined, failed)
    } catch (error) {
      failed(error)
    }
  }
}

module.exports = { caller, warning }
