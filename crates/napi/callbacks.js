'use strict'
// Calls of user callbacks. An error in a callback is reported, and ends nothing else.

/** Returns a function that reports an error in a callback as a warning of the process. */
function warning(functionName) {
  return (error) => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    process.emitWarning(`a callback of ${functionName} failed: ${text}`, 'HoldpointWarning')
  }
}

/**
 * Returns a function that calls callbacks. Their errors, and the rejections of async ones, go to
 * `onError`.
 */
function caller(functionName, onError = warning(functionName)) {
  const report = (error) => {
    try {
      onError(error)
    } catch (another) {
      warning(functionName)(another)
    }
  }
  return (callback, value) => {
    try {
      const result = callback(value)
      // An async callback is not awaited, but its rejection must not end the process.
      if (typeof result?.then === 'function') result.then(undefined, report)
    } catch (error) {
      report(error)
    }
  }
}

module.exports = { caller, warning }
